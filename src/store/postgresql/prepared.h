// Which texts a connection has prepared. A text that comes again is parsed once by the server, and
// planned once where it takes the same plan for any values; what comes once leaves nothing there.
#ifndef MATINS_STORE_POSTGRESQL_PREPARED_H_
#define MATINS_STORE_POSTGRESQL_PREPARED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace matins::postgresql {

// Of one connection. Not thread-safe.
class PreparedStatements {
 public:
  PreparedStatements();

  enum class How {
    kPlain,    // unnamed
    kPrepare,  // under `name` first, then executed by it
    kExecute,  // by `name`
  };
  struct Use {
    How how = How::kPlain;
    std::string name = "";
  };
  // How the next statement of this text is sent; `at_once`: it is known to come again.
  Use Next(const std::string& text, bool at_once = false);
  // The server has answered: the oldest of those that were to be prepared is.
  void Confirm();
  // The answers are over: what was not confirmed is not there.
  void Settle();

  // The session is another: nothing is prepared in it.
  void Forget();
  // Nor will be: transactions of this connection are given to sessions that others use too.
  void Stop();
  bool stopped() const { return stopped_; }

 private:
  const std::string prefix_;  // such that no other connection has the same names
  absl::flat_hash_map<std::string, std::string> names_;  // by text; "": not prepared
  std::vector<std::string> sent_;  // texts whose preparation is on its way, in order
  int64_t count_ = 0;              // of names given so far
  bool stopped_ = false;
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_PREPARED_H_
