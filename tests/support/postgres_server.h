// A private PostgreSQL for tests: Debian's packages, a folder of its own, a free port of 127.0.0.1,
// Debian's durable settings (fsync on, synchronous commit on), no password.
//
// Most tests only need an empty schema:
//
//   const std::string url = TestPostgresUrl();   //
//   postgresql://postgres@127.0.0.1:PORT/postgres?schema=...
//
// and in CMake `matins_needs_postgres(my_test)` after matins_test(...), so that one server serves
// all test programs of a ctest run (a CTest fixture). Run by hand, without ctest, a program starts
// a server of its own at the first call and stops it at its end.
//
// A test that stops, kills or pauses the server takes its own:
//
//   auto server = PostgresServer::Start();  ...  (*server)->Crash(); (*server)->Restart();
#ifndef MATINS_TESTS_SUPPORT_POSTGRES_SERVER_H_
#define MATINS_TESTS_SUPPORT_POSTGRES_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/child_process.h"

namespace matins::testing {

// Not thread-safe, its constant functions excepted.
class PostgresServer {
 public:
  struct Options {
    std::vector<std::string> settings;  // lines of postgresql.conf, after ours
  };

  // Answers when it takes connections.
  static absl::StatusOr<std::unique_ptr<PostgresServer>> Start(const Options& options = {});
  ~PostgresServer();  // ends it at once and removes its folder

  int port() const { return port_; }
  pid_t pid() const { return process_.pid(); }
  const std::string& directory() const { return directory_; }
  // A fresh, empty schema of this server, or of what stands before it on `port`.
  std::string FreshSchemaUrl() const { return FreshSchemaUrl(port_); }
  std::string FreshSchemaUrl(int port) const;

  void Stop();             // in order: open transactions are rolled back, a checkpoint is written
  void Crash();            // at once: the next start recovers from the log
  absl::Status Restart();  // after Stop or Crash, on the same port
  absl::Status Pause();    // SIGSTOP to the server and its backends; answers when all stand still
  void Continue();         // the other way round

 private:
  PostgresServer() = default;
  absl::Status Initialize(const Options& options);
  absl::Status Launch();

  std::string directory_;
  int port_ = 0;
  ChildProcess process_;
  std::vector<pid_t> paused_;
};

// A fresh, empty schema of the server that this ctest run, or else this program, shares. Ends the
// program with a message when there is none to be had: a test that cannot run must not pass.
std::string TestPostgresUrl();

// Host and port of that server, for a proxy to stand before it.
int TestPostgresPort();

// Runs SQL on 127.0.0.1:`port`; answers rows joined by '\n', columns by '|', as psql -At does. For
// a test's own look at the tables, past the code under test.
absl::StatusOr<std::string> PostgresQuery(int port, absl::string_view sql);

// The schema named in a URL of FreshSchemaUrl.
std::string SchemaOf(absl::string_view url);

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_POSTGRES_SERVER_H_
