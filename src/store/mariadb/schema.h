// The schema's life: made, taken over, brought up to date under a lock, and looked at.
#ifndef MATINS_STORE_MARIADB_SCHEMA_H_
#define MATINS_STORE_MARIADB_SCHEMA_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/database.h"
#include "store/mariadb/session.h"

namespace matins::mariadb {

// Makes the database where the user may. FailedPrecondition where the schema is newer than this
// program. After a crash between two steps the next call goes on from there.
absl::Status MigrateSchema(Session& session);
// Calls `change`, which writes definitions, while nobody else does so in this database: they are in
// no transaction. Unavailable where another takes longer than a minute. The session's connection is
// another one afterwards.
absl::Status UnderSchemaLock(Session& session, const std::function<absl::Status()>& change);
// 0: none.
absl::StatusOr<int> SchemaVersion(Session& session);
// FailedPrecondition: no MariaDB from 10.6 on, read-only (a replica), a Galera cluster where nobody
// has said that all writes go to one of its nodes, a binary log of statements.
absl::Status CheckServer(Session& session);
// Settings that weaken a promise, each with its mend.
absl::StatusOr<std::vector<std::string>> ServerWarnings(Session& session);
absl::StatusOr<SchemaCheck> CheckSchema(Session& session);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_SCHEMA_H_
