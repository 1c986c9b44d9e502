#include "bench/drive/sql.h"

#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>

#include <cstring>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace matins::bench {
namespace {

std::string SqlitePath(const Options& options) {
  const std::string& url = options.Text("store");
  return url.substr(url.find(':') + 1);
}

std::string QuerySqlite(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) Die(absl::StrCat("cannot open ", path));
  sqlite3_busy_timeout(db, 10'000);
  std::string value;
  const auto first = [](void* out, int columns, char** values, char**) {
    auto& text = *static_cast<std::string*>(out);
    if (columns > 0 && values[0] != nullptr && text.empty()) text = values[0];
    return 0;
  };
  if (sqlite3_exec(db, sql.c_str(), first, &value, nullptr) != SQLITE_OK) {
    Die(absl::StrCat(sql, ": ", sqlite3_errmsg(db)));
  }
  sqlite3_close(db);
  return value;
}

PGconn* ConnectPostgres(const Options& options) {
  // libpq does not know the store's own parameter.
  const std::string& url = options.Text("store");
  return PQconnectdb(url.substr(0, url.find('?')).c_str());
}

std::string QueryPostgres(PGconn* connection, const std::string& sql) {
  PGresult* const result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    Die(absl::StrCat(sql, ": ", PQerrorMessage(connection)));
  }
  std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
  PQclear(result);
  return value;
}

// mariadb://USER@HOST:PORT/DATABASE, as `./dev bench` names its server.
MYSQL* ConnectMariadb(const std::string& url) {
  const std::vector<std::string> parts =
      absl::StrSplit(url.substr(url.find("//") + 2), absl::ByAnyChar("@:/"));
  int port = 0;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &port)) {
    Die(absl::StrCat(url, ": write mariadb://USER@HOST:PORT/DATABASE"));
  }
  MYSQL* const connection = mysql_init(nullptr);
  const my_bool no = 0;
  mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
  if (mysql_real_connect(connection, parts[1].c_str(), parts[0].c_str(), "", parts[3].c_str(),
                         static_cast<unsigned>(port), nullptr, 0) == nullptr) {
    Die(mysql_error(connection));
  }
  return connection;
}

std::string QueryMariadb(const std::string& url, const std::string& sql) {
  MYSQL* const connection = ConnectMariadb(url);
  if (mysql_real_query(connection, sql.data(), sql.size()) != 0) {
    Die(absl::StrCat(sql, ": ", mysql_error(connection)));
  }
  std::string value;
  if (MYSQL_RES* const result = mysql_store_result(connection); result != nullptr) {
    if (MYSQL_ROW row = mysql_fetch_row(result); row != nullptr && row[0] != nullptr)
      value = row[0];
    mysql_free_result(result);
  }
  mysql_close(connection);
  return value;
}

}  // namespace

std::string QueryStore(const Options& options, const std::string& sql) {
  if (options.IsMariadb()) return QueryMariadb(options.Text("store"), sql);
  if (!options.IsPostgres()) return QuerySqlite(SqlitePath(options), sql);
  PGconn* const connection = ConnectPostgres(options);
  std::string value = QueryPostgres(connection, sql);
  PQfinish(connection);
  return value;
}

OpenTransaction::OpenTransaction(const Options& options) : connection_(ConnectPostgres(options)) {
  Query("begin isolation level repeatable read");
  Query("select count(*) from matins.job");
}

OpenTransaction::~OpenTransaction() { PQfinish(connection_); }

std::string OpenTransaction::Query(const std::string& sql) {
  return QueryPostgres(connection_, sql);
}

int64_t TransactionsSoFar(const Options& options) {
  if (options.IsPostgres()) {
    const std::string text = QueryStore(options,
                                        "select xact_commit + xact_rollback from pg_stat_database "
                                        "where datname = current_database()");
    int64_t count = 0;
    return absl::SimpleAtoi(text, &count) ? count : 0;
  }
  // The wal-index's header, which SQLite keeps beside the file: its third word counts transactions.
  std::ifstream index(SqlitePath(options) + "-shm", std::ios::binary);
  uint32_t words[3] = {};
  if (!index.read(reinterpret_cast<char*>(words), sizeof(words))) Die("no write-ahead log");
  return words[2];
}

}  // namespace matins::bench
