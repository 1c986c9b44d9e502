#include "execute/guard_image.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/sealed_memory.h"

// MATINS_GUARD_FILE is the guard as the build has just linked it.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global matins_guard_begin\n"
    ".global matins_guard_end\n"
    "matins_guard_begin:\n"
    ".incbin \"" MATINS_GUARD_FILE
    "\"\n"
    "matins_guard_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char matins_guard_begin[];
extern const char matins_guard_end[];
}

namespace matins {
namespace {

// Whether the kernel starts it: a guard without its socket ends at once.
bool Starts(const std::string& path) {
  char name[] = "matins-guard";
  char* argv[] = {name, nullptr};
  char* envp[] = {nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 3, "/dev/null", O_RDONLY, 0);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &actions, nullptr, argv, envp);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

absl::string_view GuardBytes() {
  return absl::string_view(matins_guard_begin,
                           static_cast<size_t>(matins_guard_end - matins_guard_begin));
}

absl::StatusOr<std::unique_ptr<GuardImage>> GuardImage::Open(const std::string& folder) {
  const int low_fd = SealedMemory("matins-guard", GuardBytes());
  // Above the numbers that a guard is started with, one of which would take its place.
  int fd = low_fd < 0 ? -1 : fcntl(low_fd, F_DUPFD_CLOEXEC, 10);
  if (low_fd >= 0) close(low_fd);
  if (fd >= 0) {
    std::string path = absl::StrCat("/proc/self/fd/", fd);
    if (Starts(path)) return absl::WrapUnique(new GuardImage(fd, std::move(path), false));
    close(fd);
  }
  std::string path = absl::StrCat(folder, "/matins-guard");
  unlink(path.c_str());
  fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  const bool written = fd >= 0 && WriteAll(fd, GuardBytes());
  if (fd >= 0) close(fd);
  if (!written || !Starts(path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot start the guard of runs: neither from memory nor from ", path, " (",
                     strerror(errno),
                     "); choose a run folder on a file system without the mount option noexec"));
  }
  return absl::WrapUnique(new GuardImage(-1, std::move(path), true));
}

GuardImage::~GuardImage() {
  if (fd_ >= 0) close(fd_);
  if (is_file_) unlink(path_.c_str());
}

}  // namespace matins
