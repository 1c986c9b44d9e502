// A small way to speak SQL to the demo's ledger, which is a database of the business and not the
// scheduler's: SQLite, PostgreSQL or MariaDB. Statements are written once, for all; '?' marks a
// parameter.
#ifndef MATINS_DEMO_SQL_H_
#define MATINS_DEMO_SQL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "store/fence_sql.h"

namespace matins::demo {

// A parameter, as text; the database gives it its column's type.
class Param {
 public:
  Param(int64_t number) : text_(absl::StrCat(number)) {}  // NOLINT: meant to be implicit
  Param(int number) : Param(int64_t{number}) {}           // NOLINT
  Param(absl::string_view text) : text_(text) {}          // NOLINT
  Param(const char* text) : text_(text) {}                // NOLINT
  Param(const std::string& text) : text_(text) {}         // NOLINT
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Answer {
  std::vector<std::vector<std::string>> rows;  // NULL is the empty string
  int64_t changed = 0;                         // rows inserted, updated or deleted
  int64_t Number(size_t row, size_t column) const;
};

// Not thread-safe. Errors: Aborted where the transaction has to be done again (a lock, a deadlock),
// Unavailable where the database cannot be reached, Internal else.
class Sql {
 public:
  virtual ~Sql() = default;
  virtual absl::StatusOr<Answer> Do(absl::string_view statement,
                                    const std::vector<Param>& params = {}) = 0;
  // Several statements without parameters.
  virtual absl::Status DoAll(absl::string_view script) = 0;
  virtual FenceDialect dialect() const = 0;

  absl::Status Begin();
  absl::Status Commit();
  void Rollback();
};

// `url` is "sqlite:FILE", "postgresql://..." with "schema=NAME" in its query, or "mariadb://...";
// file, schema and database are made where missing.
absl::StatusOr<std::unique_ptr<Sql>> OpenSql(const std::string& url);

}  // namespace matins::demo

#endif  // MATINS_DEMO_SQL_H_
