// A PostgreSQL database as a store: postgresql://user@host:port/database?schema=matins.
#ifndef MATINS_STORE_POSTGRESQL_DATABASE_H_
#define MATINS_STORE_POSTGRESQL_DATABASE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "store/database.h"

namespace matins {

// Reads the URL, connects to nothing yet. Parameters beside libpq's: `schema` (default "matins")
// and `listen_url`, a direct way to the server for LISTEN where the main one leads through a pooler
// in transaction mode.
absl::StatusOr<std::unique_ptr<Database>> OpenPostgresDatabase(absl::string_view url,
                                                               const DatabaseOptions& options);

}  // namespace matins

#endif  // MATINS_STORE_POSTGRESQL_DATABASE_H_
