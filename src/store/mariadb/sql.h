// Small things that the SQL of all verbs shares.
#ifndef MATINS_STORE_MARIADB_SQL_H_
#define MATINS_STORE_MARIADB_SQL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/attempt.h"
#include "store/json_rows.h"
#include "store/mariadb/connection.h"
#include "store/server_rows.h"

namespace matins::mariadb {

// A value as it stands in SQL: quoted, or a number, or NULL.
class Value {
 public:
  Value(absl::string_view text);                                      // NOLINT: made usable
  Value(const std::string& text) : Value(absl::string_view(text)) {}  // NOLINT
  Value(const char* text) : Value(absl::string_view(text)) {}         // NOLINT
  Value(int64_t number);                                              // NOLINT
  Value(int number) : Value(static_cast<int64_t>(number)) {}          // NOLINT
  Value(bool truth) : Value(int64_t{truth}) {}                        // NOLINT
  Value(absl::Time t);                                                // NOLINT: infinite: NULL
  Value(absl::Duration d);           // NOLINT: microseconds; infinite: NULL
  Value(std::optional<int> number);  // NOLINT
  static Value Null();
  static Value Bytes(absl::string_view bytes);
  static Value Day(absl::CivilDay day);
  static Value OrNull(absl::string_view text);  // empty: NULL
  // SQL that was made of values already.
  static Value Of(std::string sql);
  const std::string& sql() const { return sql_; }

 private:
  Value() = default;
  std::string sql_;
};

// The rows of an INSERT: "(1, 'a', NULL), (...)".
class Tuples {
 public:
  void Add(const std::vector<Value>& values);
  bool empty() const { return sql_.empty(); }
  Value Take() { return Value::Of(std::move(sql_)); }

 private:
  std::string sql_;
};

// The statement with each '?' in turn replaced by a value; "@NOW" by the store's clock (with a
// mutant: the clock as it was before the rows were locked); "@ROWS" and "@JOBS", behind a JsonTable
// with a column `job` (and `period`), by the join with job_watermark as r, or job as j, by key.
Statement Sql(absl::string_view text, const std::vector<Value>& values = {});
void Append(std::vector<Statement>& to, std::vector<Statement> more);

// "JSON_TABLE(...) AS x": a JSON array of JsonRows as a table. `columns` are "name type, ..." of
// the types int, num, bool, time, day, name (a job's or period's), key (a lock's) and text; what is
// missing, or does not fit, is NULL. Joined STRAIGHT_JOIN with job_watermark, its rows are visited
// in the array's order.
Value JsonTable(absl::string_view json, absl::string_view columns);
Value JsonTableOf(const Value& json, absl::string_view columns);  // of what the server has
Value KeyTable(absl::string_view json);                           // job, period

class JsonRows : public ::matins::JsonRows {
 public:
  JsonRows() : ::matins::JsonRows(JsonForm::kMariadb) {}
};

// kPeriodColumns and what an AttemptRow has beside, in the order that ReadRow reads.
const std::string& RowColumns();
inline constexpr int kRowColumnCount = kPeriodColumnCount + 9;
inline constexpr int kPriorityColumn = kPeriodColumnCount + 1;
AttemptRow ReadRow(const Rows& rows, int row, int first_column = 0);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_SQL_H_
