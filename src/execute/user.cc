#include "execute/user.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <shadow.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins {
namespace {

using Buffer = std::array<char, 16384>;

bool LockedInShadow(const std::string& name) {
  Buffer buffer;
  spwd entry;
  spwd* found = nullptr;
  if (getspnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return false;
  }
  return IsLocked(found->sp_pwdp, found->sp_expire, time(nullptr) / 86400);
}

std::vector<uint32_t> GroupsOf(const char* name, gid_t gid) {
  int count = 64;
  std::vector<gid_t> groups(count);
  while (getgrouplist(name, gid, groups.data(), &count) < 0) groups.resize(count);
  groups.resize(count);
  return std::vector<uint32_t>(groups.begin(), groups.end());
}

}  // namespace

bool IsLocked(absl::string_view password, int64_t expires_day, int64_t today) {
  if (expires_day >= 0 && expires_day <= today) return true;
  const size_t marks = std::min(password.find_first_not_of('!'), password.size());
  const absl::string_view hash = password.substr(marks);
  return marks > 0 && !hash.empty() && hash != "*";
}

absl::StatusOr<UserAccount> LookUpUser(const std::string& name) {
  Buffer buffer;
  passwd entry;
  passwd* found = nullptr;
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    if (error != 0 && error != ENOENT && error != ESRCH) {
      return absl::UnavailableError(
          absl::StrCat("cannot look up the user '", name, "': ", strerror(error)));
    }
    return absl::NotFoundError(absl::StrCat("user: there is no user '", name,
                                            "' on this machine; create it, or change the job's "
                                            "user"));
  }
  return UserAccount{.name = name,
                     .uid = found->pw_uid,
                     .gid = found->pw_gid,
                     .groups = GroupsOf(name.c_str(), found->pw_gid),
                     .home = found->pw_dir,
                     .locked = LockedInShadow(name)};
}

UserAccount OwnUser() {
  UserAccount own{.uid = geteuid(), .gid = getegid(), .home = "/"};
  Buffer buffer;
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(own.uid, &entry, buffer.data(), buffer.size(), &found);
  own.name = found != nullptr ? found->pw_name : absl::StrCat(own.uid);
  if (found != nullptr && found->pw_dir[0] == '/') own.home = found->pw_dir;
  return own;
}

absl::Status CheckCanBecome(const UserAccount& account) {
  if (account.locked) {
    return absl::FailedPreconditionError(
        absl::StrCat("user: the account '", account.name,
                     "' is locked or has expired; unlock it, or change the job's user"));
  }
  if (geteuid() != 0 && geteuid() != account.uid) {
    return absl::PermissionDeniedError(
        absl::StrCat("user: this node runs as '", OwnUser().name, "' and cannot run a job as '",
                     account.name, "'; run the node as root, or take out the job's user"));
  }
  return absl::OkStatus();
}

}  // namespace matins
