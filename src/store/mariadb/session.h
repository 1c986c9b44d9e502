// What every verb of a store and of its acts works with: a connection, and the rules for trying
// again.
#ifndef MATINS_STORE_MARIADB_SESSION_H_
#define MATINS_STORE_MARIADB_SESSION_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/fault.h"
#include "base/random.h"
#include "store/mariadb/connection.h"
#include "store/mariadb/sql.h"

namespace matins::mariadb {

// A fault point inside an open transaction, which the caller ends where it is told to fail.
inline absl::Status Reach(absl::string_view point) {
#if MATINS_LAB
  return ReachFaultPoint(point);
#else
  return absl::OkStatus();
#endif
}

// Not thread-safe.
class Session {
 public:
  explicit Session(ConnectionOptions options) : connection(std::move(options)) {}

  // Sends the whole transaction again after a deadlock or a collision on a lock key: up to five
  // times, with jitter; once more after a row that somebody kept locked. `transaction` answers a
  // StatusOr, and leaves nothing open. `waits`: 1 where the caller itself comes back to a locked
  // row.
  template <typename F>
  auto Retried(F transaction, int waits = 2) -> decltype(transaction()) {
    for (int tries = 1;; ++tries) {
      auto answer = transaction();
      if (answer.ok() || !MayRetry(answer.status(), tries, waits)) return answer;
      connection.Rollback();
      Pause(tries);
    }
  }

  Connection connection;

 private:
  static bool MayRetry(const absl::Status& status, int tries, int waits);
  void Pause(int tries);

  SystemRandom random_;
};

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_SESSION_H_
