// A private MariaDB for tests: Debian's packages, a folder of its own, a free port of 127.0.0.1,
// durable settings (innodb_flush_log_at_trx_commit = 1), root without password.
//
// Most tests only need an empty database:
//
//   const std::string url = TestMariadbUrl();   // mariadb://root@127.0.0.1:PORT/...
//
// and in CMake `matins_needs_mariadb(my_test)` after matins_test(...), so that one server serves
// all test programs of a ctest run. Run by hand, without ctest, a program starts a server of its
// own at the first call and stops it at its end. A test that stops, kills or pauses the server
// takes its own.
#ifndef MATINS_TESTS_SUPPORT_MARIADB_SERVER_H_
#define MATINS_TESTS_SUPPORT_MARIADB_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/child_process.h"

struct st_mysql;

namespace matins::testing {

// Not thread-safe, its constant functions excepted.
class MariadbServer {
 public:
  struct Options {
    std::vector<std::string> settings;  // "--name=value", after ours
  };

  // Answers when it takes connections.
  static absl::StatusOr<std::unique_ptr<MariadbServer>> Start(const Options& options = {});
  ~MariadbServer();  // ends it at once and removes its folder

  int port() const { return port_; }
  std::string socket() const { return directory_ + "/s"; }
  pid_t pid() const { return process_.pid(); }
  // A fresh, empty database of this server, or of what stands before it on `port`.
  std::string FreshUrl() const { return FreshUrl(port_); }
  std::string FreshUrl(int port) const;

  void Stop();             // in order
  void Crash();            // at once: the next start recovers from the log
  absl::Status Restart();  // after Stop or Crash, on the same port
  void Pause();            // SIGSTOP
  void Continue();

 private:
  MariadbServer() = default;
  absl::Status Initialize();
  absl::Status Launch();

  std::vector<std::string> settings_;
  std::string directory_;
  int port_ = 0;
  ChildProcess process_;
};

// A fresh, empty database of the server that this ctest run, or else this program, shares. Ends the
// program with a message when there is none to be had: a test that cannot run must not pass.
std::string TestMariadbUrl();
int TestMariadbPort();

// The database named in a URL of FreshUrl, and its port.
std::string DatabaseOf(absl::string_view url);
int PortOf(absl::string_view url);

// A plain connection, for what another program would do: raw SQL, and locks that are held for as
// long as it lives. Blocking; not thread-safe.
class MariadbClient {
 public:
  // To a URL of FreshUrl, in its database.
  static absl::StatusOr<std::unique_ptr<MariadbClient>> Connect(const std::string& url);
  ~MariadbClient();

  // One or more statements; the rows of the last that has any, as text, NULL as "NULL".
  absl::StatusOr<std::vector<std::vector<std::string>>> Query(absl::string_view sql);

 private:
  explicit MariadbClient(st_mysql* conn) : conn_(conn) {}
  st_mysql* const conn_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_MARIADB_SERVER_H_
