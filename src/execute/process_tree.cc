#include "execute/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

extern "C" {
#include "execute/guard/tree.h"
}

namespace matins {
namespace {

// The walk has one buffer.
absl::Mutex& WalkMutex() {
  static absl::Mutex* const mutex = new absl::Mutex;
  return *mutex;
}

std::string ReadFile(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char bytes[16384];
  ssize_t n;
  while ((n = read(fd, bytes, sizeof(bytes))) > 0) text.append(bytes, static_cast<size_t>(n));
  close(fd);
  return text;
}

bool HasEntry(pid_t pid, absl::string_view entry) {
  const std::string environment = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  for (absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (absl::StartsWith(variable, entry)) return true;
  }
  return false;
}

}  // namespace

void KillBelow(pid_t root, int root_fd) {
  absl::MutexLock lock(&WalkMutex());
  tree_signal(root, root_fd, SIGKILL);
}

int KillByEnvironment(absl::string_view entry) {
  int killed = 0;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return 0;
  while (dirent* found = readdir(dir)) {
    const pid_t pid = atoi(found->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    // Opened before it is looked at: what is killed is what was looked at.
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) continue;
    if (HasEntry(pid, entry) && syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0) == 0) {
      ++killed;
    }
    close(fd);
  }
  closedir(dir);
  return killed;
}

}  // namespace matins
