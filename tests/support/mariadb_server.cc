#include "tests/support/mariadb_server.h"

#include <mysql.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

using Rows = std::vector<std::vector<std::string>>;

st_mysql* ConnectTo(int port, const std::string& database) {
  MYSQL* conn = mysql_init(nullptr);
  const my_bool no = 0;
  mysql_options(conn, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
  mysql_options(conn, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_real_connect(conn, "127.0.0.1", "root", "", database.empty() ? nullptr : database.c_str(),
                     static_cast<unsigned>(port), nullptr, CLIENT_MULTI_STATEMENTS);
  return conn;
}

absl::StatusOr<Rows> RunOn(st_mysql* conn, absl::string_view sql) {
  Rows rows;
  int status = mysql_real_query(conn, sql.data(), sql.size());
  while (status == 0) {
    if (MYSQL_RES* result = mysql_store_result(conn); result != nullptr) {
      rows.clear();
      while (MYSQL_ROW row = mysql_fetch_row(result)) {
        const unsigned long* lengths = mysql_fetch_lengths(result);  // NOLINT: the client's type
        std::vector<std::string>& cells = rows.emplace_back();
        for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
          cells.push_back(row[i] == nullptr ? "NULL" : std::string(row[i], lengths[i]));
        }
      }
      mysql_free_result(result);
    }
    status = mysql_next_result(conn);
  }
  if (mysql_errno(conn) != 0) {
    return absl::InternalError(absl::StrCat(mysql_error(conn), " in: ", sql));
  }
  return rows;
}

absl::Status AwaitConnections(int port, ChildProcess& server) {
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (absl::Now() < end) {
    st_mysql* conn = ConnectTo(port, "");
    const bool up = mysql_errno(conn) == 0;
    mysql_close(conn);
    if (up) return absl::OkStatus();
    if (!server.Running()) return absl::InternalError("MariaDB ended while starting");
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError("MariaDB takes no connections after 60 s");
}

int TheSharedPort() { return SharedPort<MariadbServer>("MATINS_TEST_MARIADB", "MariaDB"); }

std::string MakeDatabase(int port, int url_port) {
  const std::string name = FreshName();
  st_mysql* conn = ConnectTo(port, "");
  const auto made = RunOn(conn, absl::StrCat("CREATE DATABASE ", name));
  mysql_close(conn);
  if (!made.ok()) {
    std::fprintf(stderr, "no database for this test: %s\n", made.status().ToString().c_str());
    std::exit(1);
  }
  return absl::StrCat("mariadb://root@127.0.0.1:", url_port, "/", name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MariadbServer>> MariadbServer::Start(const Options& options) {
  std::unique_ptr<MariadbServer> server(new MariadbServer());
  server->settings_ = options.settings;
  RETURN_IF_ERROR(server->Initialize());
  RETURN_IF_ERROR(LaunchOnFreePort(absl::StrCat(server->directory_, "/log"), server->port_,
                                   [&] { return server->Launch(); }));
  return server;
}

MariadbServer::~MariadbServer() {
  if (directory_.empty()) return;
  // Its data go with it: an end in order would first write out the tens of thousands of files that
  // the tests have made, which takes a minute or two.
  Crash();
  RemoveDirectory(directory_);
}

absl::Status MariadbServer::Initialize() {
  ASSIGN_OR_RETURN(directory_, MakeServerDirectory("matins-mariadb"));
  ASSIGN_OR_RETURN(const std::string install, FindServerProgram("mariadb-install-db"));
  ChildProcess::Options run;
  run.argv = {install,
              "--no-defaults",
              absl::StrCat("--datadir=", directory_, "/data"),
              "--auth-root-authentication-method=normal",
              "--skip-test-db",
              "--skip-name-resolve"};
  run.output = directory_ + "/install.log";
  run.as_server_user = true;
  return RunProgram(run);
}

absl::Status MariadbServer::Launch() {
  ASSIGN_OR_RETURN(const std::string mariadbd, FindServerProgram("mariadbd"));
  ChildProcess::Options run;
  run.argv = {mariadbd,
              "--no-defaults",
              absl::StrCat("--datadir=", directory_, "/data"),
              absl::StrCat("--socket=", socket()),
              absl::StrCat("--pid-file=", directory_, "/pid"),
              absl::StrCat("--tmpdir=", directory_),
              absl::StrCat("--port=", port_),
              "--bind-address=127.0.0.1",
              "--skip-name-resolve",
              "--max-connections=300",
              "--innodb-buffer-pool-size=64M",
              "--innodb-flush-log-at-trx-commit=1"};
  run.argv.insert(run.argv.end(), settings_.begin(), settings_.end());
  run.output = directory_ + "/log";
  run.as_server_user = true;
  ASSIGN_OR_RETURN(process_, ChildProcess::Start(run));
  return AwaitConnections(port_, process_);
}

std::string MariadbServer::FreshUrl(int port) const { return MakeDatabase(port_, port); }

void MariadbServer::Stop() { process_.Stop(SIGTERM); }

void MariadbServer::Crash() {
  Continue();
  process_.Stop(SIGKILL);
}

absl::Status MariadbServer::Restart() { return Launch(); }

void MariadbServer::Pause() { process_.Signal(SIGSTOP); }
void MariadbServer::Continue() { process_.Signal(SIGCONT); }

std::string TestMariadbUrl() {
  const int port = TheSharedPort();
  return MakeDatabase(port, port);
}

int TestMariadbPort() { return TheSharedPort(); }

std::string DatabaseOf(absl::string_view url) {
  const absl::string_view rest = url.substr(url.rfind('/') + 1);
  return std::string(rest.substr(0, rest.find('?')));
}

int PortOf(absl::string_view url) {
  const absl::string_view place = url.substr(url.rfind(':') + 1);
  int port = 0;
  return absl::SimpleAtoi(place.substr(0, place.find('/')), &port) ? port : 0;
}

absl::StatusOr<std::unique_ptr<MariadbClient>> MariadbClient::Connect(const std::string& url) {
  std::unique_ptr<MariadbClient> client(new MariadbClient(ConnectTo(PortOf(url), DatabaseOf(url))));
  if (mysql_errno(client->conn_) != 0) return absl::UnavailableError(mysql_error(client->conn_));
  return client;
}

MariadbClient::~MariadbClient() { mysql_close(conn_); }

absl::StatusOr<Rows> MariadbClient::Query(absl::string_view sql) { return RunOn(conn_, sql); }

}  // namespace matins::testing
