#include <sqlite3.h>

#include <map>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "demo/sql_open.h"

namespace matins::demo {
namespace {

constexpr int kBusyMs = 20'000;

class SqliteSql final : public Sql {
 public:
  explicit SqliteSql(sqlite3* db) : db_(db) {}
  ~SqliteSql() override {
    for (auto& [text, statement] : statements_) sqlite3_finalize(statement);
    sqlite3_close_v2(db_);
  }

  FenceDialect dialect() const override { return FenceDialect::kSqlite; }

  absl::Status DoAll(absl::string_view script) override {
    const int code = sqlite3_exec(db_, std::string(script).c_str(), nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : Failure(script);
  }

  absl::StatusOr<Answer> Do(absl::string_view text, const std::vector<Param>& params) override {
    ASSIGN_OR_RETURN(sqlite3_stmt* const statement, Prepared(text));
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string& value = params[i].text();
      int64_t number;
      // Numbers go as numbers: a column without affinity in an expression must not compare text
      // with them.
      if (absl::SimpleAtoi(value, &number) && absl::StrCat(number) == value) {
        sqlite3_bind_int64(statement, static_cast<int>(i) + 1, number);
      } else {
        sqlite3_bind_text(statement, static_cast<int>(i) + 1, value.data(),
                          static_cast<int>(value.size()), SQLITE_TRANSIENT);
      }
    }
    Answer answer;
    const int before = sqlite3_total_changes(db_);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      std::vector<std::string>& row = answer.rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        row.emplace_back(
            bytes == nullptr
                ? ""
                : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement, i))));
      }
    }
    const absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : Failure(text);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    RETURN_IF_ERROR(status);
    answer.changed = sqlite3_total_changes(db_) - before;
    return answer;
  }

 private:
  absl::StatusOr<sqlite3_stmt*> Prepared(absl::string_view text) {
    const auto found = statements_.find(std::string(text));
    if (found != statements_.end()) return found->second;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, text.data(), static_cast<int>(text.size()), &statement, nullptr) !=
        SQLITE_OK) {
      return Failure(text);
    }
    statements_.emplace(std::string(text), statement);
    return statement;
  }

  absl::Status Failure(absl::string_view text) const {
    const int code = sqlite3_errcode(db_);
    const std::string message =
        absl::StrCat("ledger: ", sqlite3_errmsg(db_), ", in: ", text.substr(0, 120));
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) return absl::AbortedError(message);
    if (code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_CANTOPEN)
      return absl::UnavailableError(message);
    return absl::InternalError(message);
  }

  sqlite3* const db_;
  std::map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sql>> OpenSqlite(const std::string& path) {
  sqlite3* db = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  auto sql = std::make_unique<SqliteSql>(db);
  if (code != SQLITE_OK) {
    return BadInput(path, absl::StrCat("the ledger cannot be opened: ", sqlite3_errmsg(db)),
                    "name a file in a folder that can be written");
  }
  sqlite3_busy_timeout(db, kBusyMs);
  RETURN_IF_ERROR(sql->DoAll("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"));
  return sql;
}

}  // namespace matins::demo
