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

}  // namespace matins

#endif  // MATINS_BACKENDS_BACKENDS_H_
