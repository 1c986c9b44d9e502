// The schema's life: made, taken over, brought up to date under a lock, and looked at.
#ifndef MATINS_STORE_POSTGRESQL_SCHEMA_H_
#define MATINS_STORE_POSTGRESQL_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/database.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// FailedPrecondition where the schema is newer than this program.
absl::Status MigrateSchema(Session& session);
// 0: none.
absl::StatusOr<int> SchemaVersion(Session& session);
// The same, of a server that can be used, in one round trip where there is a schema.
// FailedPrecondition: a standby, a version below 13, an encoding that is not UTF-8.
absl::StatusOr<int> CheckedVersion(Session& session);
// Settings that weaken a promise, each with its mend.
absl::StatusOr<std::vector<std::string>> ServerWarnings(Session& session);
absl::StatusOr<SchemaCheck> CheckSchema(Session& session);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_SCHEMA_H_
