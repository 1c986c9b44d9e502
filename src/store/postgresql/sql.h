// Small things that the SQL of all verbs shares.
#ifndef MATINS_STORE_POSTGRESQL_SQL_H_
#define MATINS_STORE_POSTGRESQL_SQL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/postgresql/connection.h"

namespace matins::postgresql {

// Rows as a JSON array of objects, the one parameter of set-based statements:
//   from json_to_recordset($1::json) as x(job text, period text, ...)
// Text that is no UTF-8, or holds a zero byte, has those bytes replaced by '?', because the server
// would refuse the whole batch for them; bytes go as hex (AddBytes, decode(x.c, 'hex')).
class JsonRows {
 public:
  JsonRows& Row();
  JsonRows& Add(absl::string_view column, absl::string_view text);
  JsonRows& AddInt(absl::string_view column, int64_t value);
  JsonRows& AddNumber(absl::string_view column, double value);
  JsonRows& AddBool(absl::string_view column, bool value);
  JsonRows& AddTime(absl::string_view column, absl::Time t);  // infinite: null
  JsonRows& AddDay(absl::string_view column, absl::CivilDay day);
  JsonRows& AddSpan(absl::string_view column, absl::Duration d);  // infinite: null; an interval
  JsonRows& AddBytes(absl::string_view column, absl::string_view bytes);
  JsonRows& AddKey(const PeriodKey& key);     // job, period
  JsonRows& AddTicket(const Ticket& ticket);  // job, period, gen, fence, nonce
  std::string Take();
  bool empty() const { return rows_ == 0; }

 private:
  void Name(absl::string_view column);
  std::string text_ = "[";
  int rows_ = 0;
  bool first_ = true;
};

// A JSON array of strings, and of the jobs' names.
std::string JsonStrings(const std::vector<std::string>& strings);
std::string UsableText(absl::string_view text);
// An instant as a parameter of type timestamptz; nothing where it is infinite.
std::optional<std::string> TimeParam(absl::Time t);
std::string IntervalText(absl::Duration d);

// The columns of a PeriodRow, of the table named `r`, in the order that ReadRow reads.
extern const char kRowColumns[];
inline constexpr int kRowColumnCount = 34;
PeriodRow ReadRow(const Rows& rows, int row, int first_column = 0);
absl::string_view StatusText(PeriodStatus status);
PeriodStatus StatusOf(absl::string_view text);

// Names of a schema put into SQL: "@." becomes the quoted schema and a dot, "@NOW" the store's
// clock (with a mutant: the clock as it was before the rows were locked), "@FENCE" the next
// fence, "@FROZEN" whether the clock stepped (I8).
class SqlNames {
 public:
  explicit SqlNames(absl::string_view schema);
  std::string operator()(absl::string_view sql) const;
  const std::string& schema() const { return schema_; }
  std::string channel() const;  // of NOTIFY, quoted

 private:
  std::string schema_;  // bare
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_SQL_H_
