#include "backends/backends.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "store/sqlite/sqlite_database.h"
#if MATINS_POSTGRESQL
#include "store/postgresql/database.h"
#endif

namespace matins {

absl::StatusOr<std::unique_ptr<Database>> DatabaseFromUrl(absl::string_view url,
                                                          DatabaseOptions options) {
  absl::string_view path = url;
  if (absl::ConsumePrefix(&path, "sqlite:")) {
    absl::ConsumePrefix(&path, "//");  // sqlite:///srv/matins.db
    if (path.empty()) {
      return BadInput("store", "'sqlite:' names no file", "write it like sqlite:matins.db");
    }
    return sqlite::NewDatabase(std::string(path), std::move(options));
  }
#if MATINS_POSTGRESQL
  if (absl::StartsWith(url, "postgresql:") || absl::StartsWith(url, "postgres:")) {
    return OpenPostgresDatabase(url, options);
  }
#endif
  const absl::string_view scheme = url.substr(0, std::min(url.find(':'), url.size()));
  return BadInput("store", absl::StrCat("'", scheme, "' is no store of this version"),
                  "write sqlite:PATH or postgresql://user@host/database?schema=matins");
}

}  // namespace matins
