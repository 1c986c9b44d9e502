// Where the sockets of runs are.
#ifndef MATINS_EXECUTE_RUN_FOLDER_H_
#define MATINS_EXECUTE_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "execute/user.h"

namespace matins {

// A node's folder, of mode 0711, with one of mode 0700 in it for each run, owned by the run's user.
// It goes when the node does; one whose node was killed is swept by a node beside it, or by the
// next one that opens its parent.
class NodeFolder {
 public:
  // `parent`: absolute, at most 48 bytes (a socket's path has 107), created where it is missing,
  // and passable by the users that jobs run as; empty: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, or the
  // temporary folder.
  static absl::StatusOr<std::unique_ptr<NodeFolder>> Open(std::string parent);
  ~NodeFolder();

  const std::string& path() const { return path_; }

  // Removes the folders of nodes that are dead, and before that kills what is left of their runs:
  // there is something where a guard was killed together with its node, and nobody else would ever
  // end it (I19, I21). Any thread.
  void SweepDeadNodes();

  absl::StatusOr<std::string> MakeRun(int64_t run, const std::optional<UserAccount>& owner);
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
