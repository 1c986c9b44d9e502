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
#include "execute/process_tree.h"

namespace matins {
namespace {

constexpr absl::string_view kPrefix = "matins-node-";
constexpr size_t kMaxParent = 48;
constexpr int kAttempts = 20;
constexpr int kKillRounds = 100;

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

// -1 when it is not there or somebody holds it.
int Lock(const std::string& folder, int flags) {
  const int fd =
      open(absl::StrCat(folder, "/lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

// A run's folder is there until the run has ended, and each process of the run has its socket's
// path in its environment.
void KillRunsOf(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;
    const std::string entry = absl::StrCat("MATINS_SOCKET=", folder, "/");
    // Again, against programs that fork faster than one walk sees.
    for (int round = 0; round < kKillRounds && KillByEnvironment(entry) > 0; ++round) {
    }
    return;
  }
}

void RemoveStale(const std::string& parent) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(parent, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path().string();
    if (!absl::StartsWith(it->path().filename().string(), kPrefix)) continue;
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) {
      continue;
    }
    const int fd = Lock(path, 0);
    if (fd < 0) continue;
    KillRunsOf(path);
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    close(fd);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeFolder>> NodeFolder::Open(std::string parent) {
  if (parent.empty()) parent = DefaultParent();
  if (parent[0] != '/' || parent.size() > kMaxParent) {
    return BadInput("run folder", absl::StrCat(parent, " is not absolute or has over 48 bytes"),
                    "choose a shorter one, such as /run/matins");
  }
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return Cannot("cannot make the run folder", parent);
  RemoveStale(parent);
  SystemRandom random;
  for (int attempt = 1;; ++attempt) {
    const std::string path = absl::StrCat(parent, "/", kPrefix, random.Hex128().substr(0, 12));
    if (mkdir(path.c_str(), 0700) != 0) return Cannot("cannot make the run folder", path);
    const int fd = Lock(path, O_CREAT | O_EXCL);
    // Others may pass through, to a run of theirs, and not look around.
    if (fd >= 0 && chmod(path.c_str(), 0711) == 0)
      return absl::WrapUnique(new NodeFolder(parent, path, fd));
    const absl::Status status = Cannot("cannot lock the run folder", path);
    if (fd >= 0) close(fd);
    // Another node that starts at this moment may take a folder that is not locked yet for a dead
    // node's.
    if (attempt == kAttempts) return status;
  }
}

NodeFolder::~NodeFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_fd_);
}

void NodeFolder::SweepDeadNodes() { RemoveStale(parent_); }

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
}

}  // namespace matins
