#include "backends/backends.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "store/sqlite/sqlite_database.h"
#if MATINS_MARIADB
#include "store/mariadb/database.h"
#include "store/mariadb/url.h"
#endif
#if MATINS_POSTGRESQL
#include "store/postgresql/database.h"
#include "store/postgresql/url.h"
#endif

namespace matins {
namespace {

[[maybe_unused]] bool IsPostgresql(absl::string_view url) {
  return absl::StartsWith(url, "postgresql:") || absl::StartsWith(url, "postgres:");
}

[[maybe_unused]] bool IsMariadb(absl::string_view url) { return absl::StartsWith(url, "mariadb:"); }

absl::Status UnknownScheme(absl::string_view url) {
  const absl::string_view scheme = url.substr(0, std::min(url.find(':'), url.size()));
  return BadInput("store", absl::StrCat("'", scheme, "' is no store of this version"),
                  "write sqlite:PATH, postgresql://user@host/database?schema=matins or "
                  "mariadb://user@host/matins");
}

}  // namespace

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
  if (IsPostgresql(url)) return OpenPostgresDatabase(url, options);
#endif
#if MATINS_MARIADB
  if (IsMariadb(url)) return OpenMariadbDatabase(url, options);
#endif
  return UnknownScheme(url);
}

absl::StatusOr<CommitPlace> CommitPlaceOf(absl::string_view url) {
  if (absl::StartsWith(url, "sqlite:")) return CommitPlace{FenceDialect::kSqlite, ""};
#if MATINS_POSTGRESQL
  if (IsPostgresql(url)) {
    ASSIGN_OR_RETURN(postgresql::Url parsed, postgresql::ParseUrl(url));
    return CommitPlace{FenceDialect::kPostgresql, std::move(parsed.schema)};
  }
#endif
#if MATINS_MARIADB
  if (IsMariadb(url)) {
    ASSIGN_OR_RETURN(mariadb::Url parsed, mariadb::ParseUrl(url));
    return CommitPlace{FenceDialect::kMariadb, std::move(parsed.database)};
  }
#endif
  return UnknownScheme(url);
}

void OwnTheProcess() { sqlite::CountNoMemory(); }

}  // namespace matins
