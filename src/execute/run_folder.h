// Where the sockets of runs are.
#ifndef MATINS_EXECUTE_RUN_FOLDER_H_
#define MATINS_EXECUTE_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "execute/user.h"

namespace matins {

inline constexpr absl::string_view kNodeFolderPrefix = "matins-node-";
inline constexpr absl::string_view kGuardRecordSuffix = ".guard";

// The descriptor that holds a node's folder, or -1 when somebody else does or it is none. Who gets
// it knows that the node is dead.
int LockNodeFolder(const std::string& folder);

// The file that the guard of the run in `run_folder` makes and keeps locked (F_SETLK) until it has
// ended its tree; the node's own user's alone.
std::string GuardRecordOf(const std::string& run_folder);

// A node's folder, of mode 0711, with one of mode 0700 in it for each run, owned by the run's user,
// and the guards' records. It goes when the node does; one whose node was killed is DeadNodes'.
class NodeFolder {
 public:
  // `parent`: absolute, at most 48 bytes (a socket's path has 107), created where it is missing,
  // and passable by the users that jobs run as; empty: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, or the
  // temporary folder.
  static absl::StatusOr<std::unique_ptr<NodeFolder>> Open(std::string parent);
  ~NodeFolder();

  const std::string& path() const { return path_; }
  const std::string& parent() const { return parent_; }
  absl::StatusOr<std::string> MakeRun(int64_t run, const std::optional<UserAccount>& owner);
  // With the record of its guard, which has to be gone.
  void RemoveRun(const std::string& path);

 private:
  NodeFolder(std::string parent, std::string path, int lock_fd)
      : parent_(std::move(parent)), path_(std::move(path)), lock_fd_(lock_fd) {}

  const std::string parent_;
  const std::string path_;
  const int lock_fd_;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_RUN_FOLDER_H_
