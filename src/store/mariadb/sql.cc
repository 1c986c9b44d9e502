#include "store/mariadb/sql.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins::mariadb {
namespace {

// By key, whatever the server thinks of the size of a table that was filled a moment ago: else it
// may read, and lock, what nobody has asked for.
constexpr absl::string_view kRows =
    "STRAIGHT_JOIN job_watermark r FORCE INDEX (PRIMARY) ON r.job_name = x.job AND "
    "r.period = x.period";
constexpr absl::string_view kJobs = "STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.name = x.job";

constexpr absl::string_view kBytes = " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";

std::string Quoted(absl::string_view text) {
  std::string out = "'";
  out.reserve(text.size() + 2);
  for (const char c : text) {
    // A quote is doubled, which is right whatever the session's sql_mode says of backslashes.
    if (c == '\'') {
      out += "''";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string TypeOf(absl::string_view type) {
  if (type == "int") return "BIGINT";
  if (type == "num") return "DOUBLE";
  if (type == "bool") return "TINYINT";
  if (type == "time") return "DATETIME(6)";
  if (type == "day") return "DATE";
  if (type == "name") return absl::StrCat("VARCHAR(190)", kBytes);
  if (type == "key") return absl::StrCat("VARCHAR(600)", kBytes);
  return absl::StrCat("LONGTEXT", kBytes);
}

}  // namespace

Value::Value(absl::string_view text) : sql_(Quoted(UsableText(text))) {}
Value::Value(int64_t number) : sql_(absl::StrCat(number)) {}
Value::Value(absl::Time t)
    : sql_(t == absl::InfinitePast() || t == absl::InfiniteFuture()
               ? "NULL"
               : absl::StrCat("TIMESTAMP'", UtcText(t), "'")) {}
Value::Value(absl::Duration d)
    : sql_(d == absl::InfiniteDuration() ? "NULL" : absl::StrCat(absl::ToInt64Microseconds(d))) {}
Value::Value(std::optional<int> number) : sql_(number ? absl::StrCat(*number) : "NULL") {}
Value Value::Null() {
  Value v;
  v.sql_ = "NULL";
  return v;
}
Value Value::Bytes(absl::string_view bytes) {
  Value v;
  v.sql_ = bytes.empty() ? "''" : absl::StrCat("X'", absl::BytesToHexString(bytes), "'");
  return v;
}
Value Value::Day(absl::CivilDay day) {
  Value v;
  v.sql_ = absl::StrCat("DATE'", FormatDay(day), "'");
  return v;
}
Value Value::OrNull(absl::string_view text) { return text.empty() ? Null() : Value(text); }

Value Value::Of(std::string sql) {
  Value v;
  v.sql_ = std::move(sql);
  return v;
}

void Tuples::Add(const std::vector<Value>& values) {
  absl::StrAppend(&sql_, sql_.empty() ? "(" : ",(");
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppend(&sql_, i > 0 ? "," : "", values[i].sql());
  }
  sql_ += ')';
}

Statement Sql(absl::string_view text, const std::vector<Value>& values) {
  absl::string_view now = "matins_now()";
  if (IsMutant(Mutant::kClockBeforeLock)) now = "CAST(@matins_early AS DATETIME(6))";
  if (IsMutant(Mutant::kNoClockMark)) now = "matins_clock()";
  const std::string named =
      absl::StrReplaceAll(text, {{"@NOW", now}, {"@ROWS", kRows}, {"@JOBS", kJobs}});
  std::string sql;
  size_t next = 0;
  for (const char c : named) {
    if (c == '?' && next < values.size()) {
      sql += values[next++].sql();
    } else {
      sql += c;
    }
  }
  return {std::move(sql)};
}

Value JsonTable(absl::string_view json, absl::string_view columns) {
  return JsonTableOf(Value::Of(Quoted(json)), columns);
}

Value JsonTableOf(const Value& json, absl::string_view columns) {
  std::vector<std::string> list;
  for (const absl::string_view column : absl::StrSplit(columns, ", ")) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(column, absl::MaxSplits(' ', 1));
    list.push_back(
        absl::StrCat("`", parts.first, "` ", TypeOf(parts.second), " PATH '$.", parts.first, "'"));
  }
  return Value::Of(absl::StrCat("JSON_TABLE(", json.sql(), ", '$[*]' COLUMNS(",
                                absl::StrJoin(list, ", "), ")) AS x"));
}

Value KeyTable(absl::string_view json) { return JsonTable(json, "job name, period name"); }

const std::string& RowColumns() {
  static const auto& columns = *new std::string(
      absl::StrCat(kPeriodColumns,
                   ", r.lock_key, r.priority, r.planned_at, r.dispatched_at, r.checkpointed_at, "
                   "r.cancel_by IS NOT NULL, r.cancel_why, r.tenant, r.limit_key"));
  return columns;
}

AttemptRow ReadRow(const Rows& rows, int i, int c) {
  AttemptRow row;
  ReadPeriod(rows, i, c, row);
  c += kPeriodColumnCount;
  row.lock_key = rows.Text(i, c);
  row.priority = static_cast<int>(rows.Int(i, c + 1));
  row.planned_at = rows.Time(i, c + 2);
  row.dispatched_at = rows.Time(i, c + 3);
  row.checkpointed_at = rows.Time(i, c + 4);
  row.cancel_asked = rows.Bool(i, c + 5);
  row.cancel_why = rows.Text(i, c + 6);
  row.tenant = rows.Text(i, c + 7);
  row.limit_key = rows.Text(i, c + 8);
  return row;
}

void Append(std::vector<Statement>& to, std::vector<Statement> more) {
  for (Statement& s : more) to.push_back(std::move(s));
}

}  // namespace matins::mariadb
