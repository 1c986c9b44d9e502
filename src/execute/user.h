// Whom a run runs as.
#ifndef MATINS_EXECUTE_USER_H_
#define MATINS_EXECUTE_USER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

struct UserAccount {
  std::string name;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;
  std::string home;
  bool locked = false;  // it had a password and was locked, or its account has expired
};

// NotFound where there is none of that name.
using UserLookup = std::function<absl::StatusOr<UserAccount>(const std::string& name)>;

// Through the system's name service (and shadow, where it may be read). May block on a network.
absl::StatusOr<UserAccount> LookUpUser(const std::string& name);

// This process's own user; without an entry, its number, and / for a home.
UserAccount OwnUser();

// A service account, which never had a password ("*", "!"), is not locked. `password` is the shadow
// field; `expires_day` days since 1970, negative: never.
bool IsLocked(absl::string_view password, int64_t expires_day, int64_t today);

// Whether this process can run things as `account`: the same user, or root, and not locked.
absl::Status CheckCanBecome(const UserAccount& account);

}  // namespace matins

#endif  // MATINS_EXECUTE_USER_H_
