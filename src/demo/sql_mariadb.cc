#include <mysqld_error.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "demo/sql_open.h"
#include "store/mariadb/libmariadb.h"
#include "store/mariadb/url.h"

namespace matins::demo {
namespace {

using mariadb::Client;

// MariaDB's words for what SQLite and PostgreSQL say alike.
std::string Translated(absl::string_view text) {
  std::string sql = absl::StrReplaceAll(
      text, {{" TEXT ", " VARCHAR(64) "},
             {"AS TEXT)", "AS CHAR)"},
             {"AS BIGINT)", "AS SIGNED)"},
             {"AS INTEGER)", "AS SIGNED)"},
             {"ON CONFLICT (biz_date) DO UPDATE SET", "ON DUPLICATE KEY UPDATE"}});
  const std::string excluded = "excluded.";
  for (size_t at; (at = sql.find(excluded)) != std::string::npos;) {
    size_t end = at + excluded.size();
    while (end < sql.size() && (absl::ascii_isalnum(sql[end]) || sql[end] == '_')) ++end;
    const std::string column = sql.substr(at + excluded.size(), end - at - excluded.size());
    sql.replace(at, end - at, absl::StrCat("VALUES(", column, ")"));
  }
  return sql;
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}, {"\\", "\\\\"}}), "'");
}

class MariadbSql final : public Sql {
 public:
  explicit MariadbSql(MYSQL* connection) : connection_(connection) {}
  ~MariadbSql() override { Client().mysql_close(connection_); }

  FenceDialect dialect() const override { return FenceDialect::kMariadb; }

  absl::Status DoAll(absl::string_view script) override { return Run(Translated(script)).status(); }

  absl::StatusOr<Answer> Do(absl::string_view text, const std::vector<Param>& params) override {
    std::string sql;
    size_t next = 0;
    for (const char c : Translated(text)) {
      if (c == '?') {
        sql += Quoted(params[next++].text());
      } else {
        sql += c;
      }
    }
    return Run(sql);
  }

 private:
  // One statement or several; the answer of the last.
  absl::StatusOr<Answer> Run(const std::string& sql) {
    Answer answer;
    int status = Client().mysql_real_query(connection_, sql.data(), sql.size());
    while (status == 0) {
      answer = Answer();
      if (MYSQL_RES* result = Client().mysql_store_result(connection_); result != nullptr) {
        while (MYSQL_ROW cells = Client().mysql_fetch_row(result)) {
          std::vector<std::string>& row = answer.rows.emplace_back();
          for (unsigned i = 0; i < Client().mysql_num_fields(result); ++i) {
            row.emplace_back(cells[i] == nullptr ? "" : cells[i]);
          }
        }
        Client().mysql_free_result(result);
      } else {
        answer.changed = static_cast<int64_t>(Client().mysql_affected_rows(connection_));
      }
      status = Client().mysql_next_result(connection_);
    }
    const unsigned error = Client().mysql_errno(connection_);
    if (error == 0) return answer;
    const std::string message =
        absl::StrCat("ledger: ", Client().mysql_error(connection_), ", in: ", sql.substr(0, 120));
    if (error >= 2000 && error < 3000) return absl::UnavailableError(message);
    if (error == ER_LOCK_DEADLOCK || error == ER_LOCK_WAIT_TIMEOUT) {
      return absl::AbortedError(message);
    }
    return absl::InternalError(message);
  }

  MYSQL* const connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sql>> OpenMariadb(const std::string& url) {
  ASSIGN_OR_RETURN(const mariadb::Url place, mariadb::ParseUrl(url));
  RETURN_IF_ERROR(mariadb::LoadLibmariadb());
  MYSQL* const connection = Client().mysql_init(nullptr);
  auto sql = std::make_unique<MariadbSql>(connection);
  const my_bool enforce = place.tls != mariadb::Tls::kOff;
  const my_bool verify = place.tls == mariadb::Tls::kVerify;
  Client().mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &enforce);
  Client().mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  Client().mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
  if (enforce) {
    Client().mysql_ssl_set(connection, text(place.tls_key), text(place.tls_cert),
                           text(place.tls_ca), nullptr, nullptr);
  }
  if (Client().mysql_real_connect(
          connection, place.socket.empty() ? place.host.c_str() : "localhost", text(place.user),
          place.password.c_str(), nullptr, static_cast<unsigned>(place.port), text(place.socket),
          CLIENT_MULTI_STATEMENTS) == nullptr) {
    return absl::UnavailableError(absl::StrCat("the ledger's database cannot be reached: ",
                                               Client().mysql_error(connection)));
  }
  RETURN_IF_ERROR(sql->DoAll(absl::StrCat(
      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; CREATE DATABASE IF NOT EXISTS `",
      place.database, "` CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin; USE `", place.database,
      "`")));
  return sql;
}

}  // namespace matins::demo
