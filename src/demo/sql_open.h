// The kinds of ledger database; only sql.cc asks for them by name.
#ifndef MATINS_DEMO_SQL_OPEN_H_
#define MATINS_DEMO_SQL_OPEN_H_

#include <memory>
#include <string>

#include "demo/sql.h"

namespace matins::demo {

absl::StatusOr<std::unique_ptr<Sql>> OpenSqlite(const std::string& path);
absl::StatusOr<std::unique_ptr<Sql>> OpenPostgresql(const std::string& url);
absl::StatusOr<std::unique_ptr<Sql>> OpenMariadb(const std::string& url);

}  // namespace matins::demo

#endif  // MATINS_DEMO_SQL_OPEN_H_
