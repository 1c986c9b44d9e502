// A plain connection to a PostgreSQL of the tests, for what another program would do: raw SQL, and
// locks that are held for as long as it lives. Blocking; not thread-safe.
#ifndef MATINS_TESTS_SUPPORT_SQL_CLIENT_H_
#define MATINS_TESTS_SUPPORT_SQL_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct pg_conn;

namespace matins::testing {

class SqlClient {
 public:
  // To a URL of TestPostgresUrl; the schema is left to the caller.
  static absl::StatusOr<std::unique_ptr<SqlClient>> Connect(const std::string& url);
  ~SqlClient();

  // One or more statements; the rows of the last, as text, NULL as "NULL".
  absl::StatusOr<std::vector<std::vector<std::string>>> Query(absl::string_view sql);

 private:
  explicit SqlClient(pg_conn* conn) : conn_(conn) {}
  pg_conn* const conn_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_SQL_CLIENT_H_
