// A MariaDB database as a store: mariadb://user@host:port/database.
#ifndef MATINS_STORE_MARIADB_DATABASE_H_
#define MATINS_STORE_MARIADB_DATABASE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "store/database.h"

namespace matins {

// Reads the URL (store/mariadb/url.h), connects to nothing yet.
absl::StatusOr<std::unique_ptr<Database>> OpenMariadbDatabase(absl::string_view url,
                                                              const DatabaseOptions& options);

}  // namespace matins

#endif  // MATINS_STORE_MARIADB_DATABASE_H_
