// Small things that the SQL of all verbs shares.
#ifndef MATINS_STORE_POSTGRESQL_SQL_H_
#define MATINS_STORE_POSTGRESQL_SQL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/json_rows.h"
#include "store/postgresql/connection.h"

namespace matins::postgresql {

//   from json_to_recordset($1::json) as x(job text, period text, ...); bytes: decode(x.c, 'hex')
class JsonRows : public ::matins::JsonRows {
 public:
  JsonRows() : ::matins::JsonRows(JsonForm::kPostgresql) {}
};

void Append(std::vector<Statement>& to, std::vector<Statement> more);

// An instant as a parameter of type timestamptz; nothing where it is infinite.
std::optional<std::string> TimeParam(absl::Time t);
std::string IntervalText(absl::Duration d);

// Of kPeriodColumns (store/server_rows.h).
PeriodRow ReadRow(const Rows& rows, int row, int first_column = 0);

// Names of a schema put into SQL: "@." becomes the quoted schema and a dot, "@NOW" the store's
// clock (with a mutant: the clock as it was before the rows were locked), "@FENCE" the next
// fence, "@STEPPED" whether the clock stepped (I8), "@FROZEN" the same to nodes: or has jumped
// forward, and no tick has judged that yet.
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
