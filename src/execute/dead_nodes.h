// What killed nodes of this machine left behind: their folders, guards that somebody had stopped,
// and the processes of runs whose guards were killed too: trees that nobody else would ever end
// (I19, I21).
#ifndef MATINS_EXECUTE_DEAD_NODES_H_
#define MATINS_EXECUTE_DEAD_NODES_H_

#include <map>
#include <string>

#include "absl/time/time.h"

namespace matins {

// A guard is a process that the kernel says holds the lock of a record (GuardRecordOf) in the
// folder of a node that no longer holds its own, and that is called as a guard is: no number alone,
// which may be a stranger's by now, gets a signal. Not thread-safe.
class DeadNodes {
 public:
  // `parent` of the nodes' folders. `grace`: how long a guard that was woken has to end its tree.
  explicit DeadNodes(std::string parent, absl::Duration grace = absl::Seconds(5))
      : parent_(std::move(parent)), grace_(grace) {}

  // Wakes the guards of dead nodes, each of which then kills its tree and gives its lease back;
  // kills the tree of those that were woken and are still there after their grace; kills what runs
  // without a guard left, as far as their environment tells (KillByEnvironment); removes the
  // folders in which no guard is there any more. Touches nothing of other users, nor of machines or
  // containers whose processes cannot be seen from here. `now` is of the boot clock. Returns how
  // long until the next look is due.
  absl::Duration Look(absl::Duration now);

 private:
  // Whether the guard of `record` is still there.
  bool Wake(const std::string& record, absl::Duration now);
  // Whether a guard of the node in `folder` is still there.
  bool EndRunsOf(const std::string& folder, absl::Duration now);

  std::string parent_;
  absl::Duration grace_;
  std::map<std::string, absl::Duration> woken_;  // records, and when their guards first were
};

}  // namespace matins

#endif  // MATINS_EXECUTE_DEAD_NODES_H_
