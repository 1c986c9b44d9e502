#include "tests/support/pgbouncer_server.h"

#include <signal.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

absl::Status WriteConfig(const std::string& directory, int port, int postgres_port, int pool_size) {
  std::ofstream config(directory + "/pgbouncer.ini");
  config << "[databases]\n* = host=127.0.0.1 port=" << postgres_port << " user=postgres\n"
         << "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " << port << "\n"
         << "unix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
         << "max_client_conn = 1000\ndefault_pool_size = " << pool_size << "\n"
         << "logfile = " << directory << "/log\npidfile = " << directory << "/pid\n";
  return config.good() ? absl::OkStatus() : absl::InternalError("writing pgbouncer.ini");
}

absl::Status AwaitAnswer(int port, ChildProcess& server) {
  const absl::Time end = absl::Now() + absl::Seconds(30);
  absl::Status status;
  while (absl::Now() < end && server.Running()) {
    status = PostgresQuery(port, "SELECT 1").status();
    if (status.ok()) return status;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return Annotate(status.ok() ? absl::InternalError("it ended") : status, "starting pgbouncer");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PgbouncerServer>> PgbouncerServer::Start(int postgres_port,
                                                                        int pool_size) {
  std::unique_ptr<PgbouncerServer> server(new PgbouncerServer());
  ASSIGN_OR_RETURN(server->directory_, MakeServerDirectory("matins-pgbouncer"));
  ASSIGN_OR_RETURN(const std::string program, FindServerProgram("pgbouncer"));
  absl::Status status;
  for (int attempt = 0; attempt < 5; ++attempt) {  // somebody may take the free port first
    server->port_ = FreePort();
    RETURN_IF_ERROR(WriteConfig(server->directory_, server->port_, postgres_port, pool_size));
    ChildProcess::Options run;
    run.argv = {program, server->directory_ + "/pgbouncer.ini"};
    run.output = server->directory_ + "/output";
    run.as_server_user = true;
    ASSIGN_OR_RETURN(server->process_, ChildProcess::Start(run));
    status = AwaitAnswer(server->port_, server->process_);
    if (status.ok()) return server;
  }
  return status;
}

PgbouncerServer::~PgbouncerServer() {
  process_.Stop(SIGQUIT);
  if (!directory_.empty()) RemoveDirectory(directory_);
}

}  // namespace matins::testing
