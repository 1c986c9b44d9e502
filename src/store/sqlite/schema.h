// The schema in SQLite: made and migrated in numbered steps, checked against what it must be.
#ifndef MATINS_STORE_SQLITE_SCHEMA_H_
#define MATINS_STORE_SQLITE_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/sqlite/connection.h"

namespace matins::sqlite {

// 0: none yet.
absl::StatusOr<int> SchemaVersion(Connection& db);
// Every missing step in order, each in one transaction under the write lock. A job_watermark table
// of the four well-known columns is taken over in the first: rows kept, key widened, further
// columns kept too. FailedPrecondition where the schema is newer than this program.
absl::Status MigrateSchema(Connection& db);
// FailedPrecondition unless the schema is the wanted one.
absl::Status RequireSchema(Connection& db);
// Integrity, and each table, index and trigger as this program makes them.
absl::StatusOr<std::vector<std::string>> SchemaProblems(Connection& db);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_SCHEMA_H_
