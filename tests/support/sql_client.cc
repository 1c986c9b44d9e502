#include "tests/support/sql_client.h"

#include <libpq-fe.h>

#include "absl/strings/str_cat.h"

namespace matins::testing {

absl::StatusOr<std::unique_ptr<SqlClient>> SqlClient::Connect(const std::string& url) {
  const std::string plain = url.substr(0, url.find("?schema="));
  PGconn* conn = PQconnectdb(plain.c_str());
  PQsetNoticeProcessor(
      conn, [](void*, const char*) {}, nullptr);
  std::unique_ptr<SqlClient> client(new SqlClient(conn));
  if (PQstatus(conn) != CONNECTION_OK) return absl::UnavailableError(PQerrorMessage(conn));
  return client;
}

SqlClient::~SqlClient() { PQfinish(conn_); }

absl::StatusOr<std::vector<std::vector<std::string>>> SqlClient::Query(absl::string_view sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(
      PQexec(conn_, std::string(sql).c_str()), PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return absl::InternalError(absl::StrCat(PQerrorMessage(conn_), " in: ", sql));
  }
  std::vector<std::vector<std::string>> rows(static_cast<size_t>(PQntuples(result.get())));
  for (int i = 0; i < PQntuples(result.get()); ++i) {
    for (int j = 0; j < PQnfields(result.get()); ++j) {
      rows[static_cast<size_t>(i)].push_back(
          PQgetisnull(result.get(), i, j) != 0 ? "NULL" : PQgetvalue(result.get(), i, j));
    }
  }
  return rows;
}

}  // namespace matins::testing
