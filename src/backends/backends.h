// From a URL to a database: the only place that names the databases there are.
#ifndef MATINS_BACKENDS_BACKENDS_H_
#define MATINS_BACKENDS_BACKENDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "store/database.h"
#include "store/fence_sql.h"

namespace matins {

// "sqlite:PATH" (a relative path is relative to the working folder),
// "postgresql://user@host:port/database?schema=matins" (also "postgres://") or
// "mariadb://user@host:port/database". Opens nothing yet.
// InvalidArgument for anything else; the message never repeats a password.
absl::StatusOr<std::unique_ptr<Database>> DatabaseFromUrl(absl::string_view url,
                                                          DatabaseOptions options = {});
// Where a job of that store with `commit: job` writes DONE.
absl::StatusOr<CommitPlace> CommitPlaceOf(absl::string_view url);

// For a program that is Matins and nothing else, before it opens a store: SQLite then keeps no count
// of its memory, for which all connections of a process share a lock (a tenth of a drain's time).
// Not for one that embeds Matins: the setting is the whole process's, and its owner's to choose.
void OwnTheProcess();

}  // namespace matins

#endif  // MATINS_BACKENDS_BACKENDS_H_
