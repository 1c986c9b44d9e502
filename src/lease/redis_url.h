// Where a Redis is, as people write it.
#ifndef MATINS_LEASE_REDIS_URL_H_
#define MATINS_LEASE_REDIS_URL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

struct RedisPlace {
  std::string host;
  int port = 6379;
  bool operator==(const RedisPlace&) const = default;
};

struct RedisUrl {
  std::vector<RedisPlace> places;  // one server; or, where `master` is set, its sentinels
  std::string master;              // the name that the sentinels know the server by
  std::string user, password;      // user empty: the default user's password (AUTH password)
  std::string sentinel_user, sentinel_password;
  int database = 0;
  bool tls = false;
  std::string tls_ca, tls_cert, tls_key;  // files; no CA: the system's
  std::string prefix = "matins";          // every key of ours begins with it and a colon
  std::string description;                // without any password
};

//   redis://[user:password@]host[:6379][/database][?...]       user may be empty
//   redis+sentinel://[user:password@]host[:26379],host.../master[/database][?...]
// and rediss://, rediss+sentinel:// for TLS, which verifies the server's name and certificate.
// Parameters: prefix, password_file (read now, without the line end at its end), sentinel_user,
// sentinel_password, sentinel_password_file, tls_ca, tls_cert, tls_key. Anything but letters,
// digits and -._~ in a name, password or value is written %XX.
// InvalidArgument, with the mend; never repeats a password.
absl::StatusOr<RedisUrl> ParseRedisUrl(absl::string_view text);

// Whether it begins as such a URL does.
bool LooksLikeRedisUrl(absl::string_view text);

}  // namespace matins

#endif  // MATINS_LEASE_REDIS_URL_H_
