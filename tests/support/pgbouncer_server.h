// A private pgbouncer in transaction mode before a PostgreSQL of the tests:
//
//   auto pool = PgbouncerServer::Start(TestPostgresPort());
//   const std::string url = OnPort(TestPostgresUrl(), (*pool)->port());
//
// It is as strict as Debian 12's: session settings given at connection are refused, and named
// prepared statements fail as soon as another server connection answers.
#ifndef MATINS_TESTS_SUPPORT_PGBOUNCER_SERVER_H_
#define MATINS_TESTS_SUPPORT_PGBOUNCER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/child_process.h"

namespace matins::testing {

class PgbouncerServer {
 public:
  // Answers when it passes queries on. `pool_size`: connections it holds to the server.
  static absl::StatusOr<std::unique_ptr<PgbouncerServer>> Start(int postgres_port,
                                                                int pool_size = 20);
  ~PgbouncerServer();

  int port() const { return port_; }
  pid_t pid() const { return process_.pid(); }

 private:
  PgbouncerServer() = default;
  std::string directory_;
  int port_ = 0;
  ChildProcess process_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_PGBOUNCER_SERVER_H_
