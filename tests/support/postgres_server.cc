#include "tests/support/postgres_server.h"

#include <libpq-fe.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

constexpr char kSettings[] =
    "listen_addresses = '127.0.0.1'\n"
    "max_connections = 300\n"
    "shared_buffers = 32MB\n"
    "timezone = 'UTC'\n"
    "log_timezone = 'UTC'\n";

std::string ConnectionString(int port) {
  return absl::StrCat("host=127.0.0.1 port=", port,
                      " user=postgres dbname=postgres sslmode=disable connect_timeout=5");
}

absl::Status AwaitConnections(int port, ChildProcess& server) {
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (absl::Now() < end) {
    if (PQping(ConnectionString(port).c_str()) == PQPING_OK) return absl::OkStatus();
    if (!server.Running()) return absl::InternalError("PostgreSQL ended while starting");
    absl::SleepFor(absl::Milliseconds(10));
  }
  return absl::DeadlineExceededError("PostgreSQL takes no connections after 60 s");
}

// The pids of all children of `parent`.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::ifstream in(absl::StrCat("/proc/", parent, "/task/", parent, "/children"));
  std::vector<pid_t> pids;
  for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
  return pids;
}

// SIGSTOP is on its way when kill(2) returns; this is when it has arrived, or the process has gone.
void AwaitStopped(pid_t pid) {
  while (true) {
    std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
    std::string number, name, state;  // a server's name has no blanks: (postgres)
    if (!(in >> number >> name >> state) || state == "T" || state == "Z") return;
    absl::SleepFor(absl::Microseconds(100));
  }
}

int TheSharedPort() { return SharedPort<PostgresServer>("MATINS_TEST_POSTGRES", "PostgreSQL"); }

std::string MakeSchema(int port, int url_port) {
  const std::string schema = FreshName();
  const auto made = PostgresQuery(port, absl::StrCat("CREATE SCHEMA ", schema));
  if (!made.ok()) {
    std::fprintf(stderr, "no schema for this test: %s\n", made.status().ToString().c_str());
    std::exit(1);
  }
  return absl::StrCat("postgresql://postgres@127.0.0.1:", url_port, "/postgres?schema=", schema);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresServer>> PostgresServer::Start(const Options& options) {
  std::unique_ptr<PostgresServer> server(new PostgresServer());
  RETURN_IF_ERROR(server->Initialize(options));
  RETURN_IF_ERROR(LaunchOnFreePort(absl::StrCat(server->directory_, "/log"), server->port_,
                                   [&] { return server->Launch(); }));
  return server;
}

PostgresServer::~PostgresServer() {
  if (directory_.empty()) return;
  // Its data go with it: an end in order would first write out the tens of thousands of files that
  // the tests have made, which takes a minute or two.
  Crash();
  RemoveDirectory(directory_);
}

absl::Status PostgresServer::Initialize(const Options& options) {
  ASSIGN_OR_RETURN(directory_, MakeServerDirectory("matins-postgres"));
  ASSIGN_OR_RETURN(const std::string initdb, FindServerProgram("initdb"));
  ChildProcess::Options run;
  run.argv = {initdb, "-D",   directory_ + "/data", "-U",       "postgres", "-A", "trust",
              "-E",   "UTF8", "--locale=C",         "--no-sync"};
  run.output = directory_ + "/initdb.log";
  run.as_server_user = true;
  RETURN_IF_ERROR(RunProgram(run));
  std::ofstream settings(directory_ + "/data/postgresql.conf", std::ios::app);
  settings << kSettings << "unix_socket_directories = '" << directory_ << "'\n"
           << absl::StrJoin(options.settings, "\n") << "\n";
  return absl::OkStatus();
}

absl::Status PostgresServer::Launch() {
  ASSIGN_OR_RETURN(const std::string postgres, FindServerProgram("postgres"));
  ChildProcess::Options run;
  run.argv = {postgres, "-D", directory_ + "/data", "-p", absl::StrCat(port_)};
  run.output = directory_ + "/log";
  run.as_server_user = true;
  ASSIGN_OR_RETURN(process_, ChildProcess::Start(run));
  return AwaitConnections(port_, process_);
}

std::string PostgresServer::FreshSchemaUrl(int port) const { return MakeSchema(port_, port); }

void PostgresServer::Stop() { process_.Stop(SIGINT); }

void PostgresServer::Crash() {
  Continue();
  process_.Stop(SIGQUIT);
}

absl::Status PostgresServer::Restart() { return Launch(); }

absl::Status PostgresServer::Pause() {
  if (!process_.Running()) return absl::FailedPreconditionError("the server does not run");
  process_.Signal(SIGSTOP);
  AwaitStopped(process_.pid());  // from here on it makes no more backends
  paused_ = ChildrenOf(process_.pid());
  for (pid_t pid : paused_) kill(pid, SIGSTOP);
  for (pid_t pid : paused_) AwaitStopped(pid);
  return absl::OkStatus();
}

void PostgresServer::Continue() {
  for (pid_t pid : paused_) kill(pid, SIGCONT);
  paused_.clear();
  process_.Signal(SIGCONT);
}

std::string TestPostgresUrl() {
  const int port = TheSharedPort();
  return MakeSchema(port, port);
}

int TestPostgresPort() { return TheSharedPort(); }

absl::StatusOr<std::string> PostgresQuery(int port, absl::string_view sql) {
  PGconn* connection = PQconnectdb(ConnectionString(port).c_str());
  PGresult* result = PQexec(connection, std::string(sql).c_str());
  absl::StatusOr<std::string> answer;
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
    std::vector<std::string> rows;
    for (int row = 0; row < PQntuples(result); ++row) {
      std::vector<std::string> columns;
      for (int column = 0; column < PQnfields(result); ++column) {
        columns.push_back(PQgetvalue(result, row, column));
      }
      rows.push_back(absl::StrJoin(columns, "|"));
    }
    answer = absl::StrJoin(rows, "\n");
  } else {
    answer = absl::InternalError(absl::StrCat(PQerrorMessage(connection), " in: ", sql));
  }
  PQclear(result);
  PQfinish(connection);
  return answer;
}

std::string SchemaOf(absl::string_view url) {
  const std::vector<std::string> parts = absl::StrSplit(url, absl::MaxSplits("schema=", 1));
  return parts.size() == 2 ? std::vector<std::string>(absl::StrSplit(parts[1], '&'))[0] : "";
}

}  // namespace matins::testing
