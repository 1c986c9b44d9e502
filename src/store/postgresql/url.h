// The store's URL: postgresql://user:password@host:port/database?schema=matins, with libpq's own
// parameters (sslmode, host=/socket/folder, ...) beside ours.
#ifndef MATINS_STORE_POSTGRESQL_URL_H_
#define MATINS_STORE_POSTGRESQL_URL_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins::postgresql {

struct Url {
  std::vector<std::pair<std::string, std::string>> conninfo;  // libpq's keywords and values
  std::vector<std::pair<std::string, std::string>>
      listen;               // those of `listen_url`; empty: not given
  std::string schema;       // "matins" where none is named
  std::string description;  // for people and messages: no password, no user's secrets
};

// Takes `schema` (1 to 63 bytes, [A-Za-z_][A-Za-z0-9_$]*) and `listen_url` (percent-encoded, a
// direct connection for LISTEN where the main one goes through a pooler); everything else is
// libpq's to judge. InvalidArgument with the mend; never echoes a password.
absl::StatusOr<Url> ParseUrl(absl::string_view url);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_URL_H_
