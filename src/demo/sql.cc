#include "demo/sql.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/status.h"
#include "demo/sql_open.h"

namespace matins::demo {

int64_t Answer::Number(size_t row, size_t column) const {
  int64_t number = 0;
  if (row < rows.size() && column < rows[row].size())
    (void)absl::SimpleAtoi(rows[row][column], &number);
  return number;
}

absl::Status Sql::Begin() {
  return Do(dialect() == FenceDialect::kSqlite ? "BEGIN IMMEDIATE" : "BEGIN").status();
}
absl::Status Sql::Commit() { return Do("COMMIT").status(); }
void Sql::Rollback() { Do("ROLLBACK").IgnoreError(); }

absl::StatusOr<std::unique_ptr<Sql>> OpenSql(const std::string& url) {
  constexpr absl::string_view kSqlite = "sqlite:";
  if (absl::StartsWith(url, kSqlite)) return OpenSqlite(url.substr(kSqlite.size()));
  if (absl::StartsWith(url, "postgresql:") || absl::StartsWith(url, "postgres:"))
    return OpenPostgresql(url);
  if (absl::StartsWith(url, "mariadb:")) return OpenMariadb(url);
  return BadInput("ledger",
                  "is none of sqlite:, postgresql: and mariadb:", "write it like sqlite:ledger.db");
}

}  // namespace matins::demo
