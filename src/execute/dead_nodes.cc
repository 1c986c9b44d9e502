#include "execute/dead_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "execute/guard_link.h"
#include "execute/process_tree.h"
#include "execute/run_folder.h"

namespace matins {
namespace {

constexpr absl::Duration kLook = absl::Seconds(5);
constexpr absl::Duration kLookAtTheWoken = absl::Seconds(1);
constexpr int kKillRounds = 100;

// Whose lock is on the file, as this process's numbers go; 0 where it cannot be seen from here; -1
// when nobody's is, or the file system has none.
pid_t HolderOf(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return -1;
  return lock.l_pid > 0 ? lock.l_pid : 0;
}

bool IsCalledAsAGuard(pid_t pid) {
  const int fd = open(absl::StrCat("/proc/", pid, "/cmdline").c_str(), O_RDONLY | O_CLOEXEC);
  char name[sizeof(kGuardName)] = {};
  const ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(kGuardName) - 1);
  if (fd >= 0) close(fd);
  return n >= 0 && absl::string_view(name) == kGuardName;
}

std::vector<std::string> EntriesOf(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    paths.push_back(it->path().string());
  }
  return paths;
}

// Each process of a run has its socket's path, in the run's folder, in its environment.
void KillWhatNames(const std::string& folder) {
  const std::string entry = absl::StrCat("MATINS_SOCKET=", folder, "/");
  // Again, against programs that fork faster than one walk sees.
  for (int round = 0; round < kKillRounds && KillByEnvironment(entry) > 0; ++round) {
  }
}

bool MayBeANodes(const std::string& path) {
  const absl::string_view name = absl::string_view(path).substr(path.rfind('/') + 1);
  if (!absl::StartsWith(name, kNodeFolderPrefix)) return false;
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid();
}

}  // namespace

bool DeadNodes::Wake(const std::string& record, absl::Duration now) {
  const int fd = open(record.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno != ENOENT;
  const absl::Cleanup close_record = [fd] { close(fd); };
  const pid_t pid = HolderOf(fd);
  if (pid <= 0) return pid == 0;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return true;
  const absl::Cleanup close_process = [pidfd] { close(pidfd); };
  // Asked again: one that holds the lock before and after had its number all the while between, so
  // that the descriptor is its own.
  if (HolderOf(fd) != pid || !IsCalledAsAGuard(pid)) return true;
  const absl::Duration first = woken_.try_emplace(record, now).first->second;
  if (now - first >= grace_) KillBelow(pid, pidfd);
  syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, nullptr, 0);
  return true;
}

bool DeadNodes::EndRunsOf(const std::string& folder, absl::Duration now) {
  bool any = false;
  std::vector<std::string> without;
  for (const std::string& path : EntriesOf(folder)) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) continue;
    if (Wake(GuardRecordOf(path), now)) {
      any = true;
    } else {
      without.push_back(path);
    }
  }
  // One walk for all runs where no guard is at work that would do it in order.
  if (!any && !without.empty()) without = {folder};
  for (const std::string& path : without) KillWhatNames(path);
  return any;
}

absl::Duration DeadNodes::Look(absl::Duration now) {
  std::erase_if(woken_, [](const auto& entry) { return access(entry.first.c_str(), F_OK) != 0; });
  bool any = false;
  for (const std::string& path : EntriesOf(parent_)) {
    if (!MayBeANodes(path)) continue;
    const int fd = LockNodeFolder(path);
    if (fd < 0) continue;
    if (EndRunsOf(path, now)) {
      any = true;
    } else {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
    close(fd);
  }
  return any ? kLookAtTheWoken : kLook;
}

}  // namespace matins
