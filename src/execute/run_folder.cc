#include "execute/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr size_t kMaxParent = 48;
constexpr int kAttempts = 20;

std::string DefaultParent() {
  for (const char* name : {"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* value = getenv(name);
    // systemd joins several folders with colons.
    const std::string first =
        value == nullptr ? "" : std::string(*absl::StrSplit(value, ':').begin());
    if (absl::StartsWith(first, "/") && first.size() <= kMaxParent) return first;
  }
  return "/tmp";
}

absl::Status Cannot(absl::string_view what, absl::string_view path) {
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", path, ": ", strerror(errno), "; choose another run folder"));
}

int Lock(const std::string& folder, int flags) {
  const int fd =
      open(absl::StrCat(folder, "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

int LockNodeFolder(const std::string& folder) { return Lock(folder, 0); }

std::string GuardRecordOf(const std::string& run_folder) {
  return absl::StrCat(run_folder, kGuardRecordSuffix);
}

absl::StatusOr<std::unique_ptr<NodeFolder>> NodeFolder::Open(std::string parent) {
  if (parent.empty()) parent = DefaultParent();
  if (parent[0] != '/' || parent.size() > kMaxParent) {
    return BadInput("run folder", absl::StrCat(parent, " is not absolute or has over 48 bytes"),
                    "choose a shorter one, such as /run/matins");
  }
  // One spelling for all: a run's processes are known by its socket's path.
  while (parent.size() > 1 && parent.back() == '/') parent.pop_back();
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return Cannot("cannot make the run folder", parent);
  SystemRandom random;
  for (int attempt = 1;; ++attempt) {
    const std::string path =
        absl::StrCat(parent, "/", kNodeFolderPrefix, random.Hex128().substr(0, 12));
    if (mkdir(path.c_str(), 0700) != 0) return Cannot("cannot make the run folder", path);
    const int fd = Lock(path, O_CREAT | O_EXCL);
    // Others may pass through, to a run of theirs, and not look around.
    if (fd >= 0 && chmod(path.c_str(), 0711) == 0)
      return absl::WrapUnique(new NodeFolder(parent, path, fd));
    const absl::Status status = Cannot("cannot lock the run folder", path);
    if (fd >= 0) close(fd);
    // Another node that looks at this moment may take a folder that is not locked yet for a dead
    // node's.
    if (attempt == kAttempts) return status;
  }
}

NodeFolder::~NodeFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_fd_);
}

absl::StatusOr<std::string> NodeFolder::MakeRun(int64_t run,
                                                const std::optional<UserAccount>& owner) {
  const std::string path = absl::StrCat(path_, "/", run);
  if (mkdir(path.c_str(), 0700) != 0) return Cannot("cannot make the run's folder", path);
  if (owner && chown(path.c_str(), owner->uid, owner->gid) != 0) {
    absl::Status status = Cannot("cannot give away the run's folder", path);
    rmdir(path.c_str());
    return status;
  }
  return path;
}

void NodeFolder::RemoveRun(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  unlink(GuardRecordOf(path).c_str());
}

}  // namespace matins
