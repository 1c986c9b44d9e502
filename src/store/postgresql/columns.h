// Rows as typed columns: the parameters of the statements that carry hundreds of rows.
#ifndef MATINS_STORE_POSTGRESQL_COLUMNS_H_
#define MATINS_STORE_POSTGRESQL_COLUMNS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/postgresql/connection.h"

namespace matins::postgresql {

// Built like JsonRows, and sent as one binary array a column; a column that is the same in every
// row is sent once. A row that leaves a column out has NULL there. Server and client spend a third
// of what JSON costs them.
//
//   ColumnRows rows;
//   rows.Row().AddKey(key).AddInt("n", 3);
//   std::vector<Parameter> params;
//   session.Of(StrCat("with x as materialized (", rows.Take(params), ") select ..."), params);
class ColumnRows {
 public:
  ColumnRows& Row();
  // Text is made usable (UsableText), as in JsonRows. Integers are int8.
  ColumnRows& Add(absl::string_view column, absl::string_view text);
  ColumnRows& AddInt(absl::string_view column, int64_t value);
  ColumnRows& AddInt(absl::string_view column, std::optional<int> value);  // nothing: NULL
  ColumnRows& AddNumber(absl::string_view column, double value);
  ColumnRows& AddBool(absl::string_view column, bool value);
  ColumnRows& AddTime(absl::string_view column, absl::Time t);  // infinite: NULL
  ColumnRows& AddDay(absl::string_view column, absl::CivilDay day);
  ColumnRows& AddSpan(absl::string_view column, absl::Duration d);  // infinite: NULL
  ColumnRows& AddBytes(absl::string_view column, absl::string_view bytes);
  ColumnRows& AddTid(absl::string_view column, absl::string_view bytes);  // as Rows::Text gives it
  ColumnRows& AddKey(const PeriodKey& key);                               // job, period
  ColumnRows& AddTicket(const Ticket& ticket);  // job, period, gen, fence, nonce
  int size() const { return rows_; }
  bool empty() const { return rows_ == 0; }

  // "select ... from unnest(...)", with its columns in the order in which they were first added;
  // its parameters are put behind those in `params`. For one use, and not without rows.
  std::string Take(std::vector<Parameter>& params);

 private:
  enum class Type { kText, kInt, kNumber, kBool, kTime, kDay, kSpan, kBytes, kTid };
  struct Column {
    std::string name;
    Type type;
    int rows = 0;          // filled, NULLs included
    std::string data;      // elements of the binary array
    size_t first = 0;      // length of the first element in `data`
    bool constant = true;  // all elements are alike
    bool nulls = false;
  };
  Column& Find(absl::string_view name, Type type);
  static void Append(Column& column, absl::string_view element);
  static void AppendNull(Column& column);
  static void Note(Column& column, size_t from);

  int rows_ = 0;
  size_t next_ = 0;  // the column that is likely to come next
  std::deque<Column> columns_;
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_COLUMNS_H_
