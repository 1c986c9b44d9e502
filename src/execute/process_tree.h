// Looks at, and ends, processes below another one; for the node, when a guard cannot.
#ifndef MATINS_EXECUTE_PROCESS_TREE_H_
#define MATINS_EXECUTE_PROCESS_TREE_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace matins {

// SIGKILL to everything below `root`: a child of this process that it has not reaped, or one that
// the pidfd `root_fd` holds.
void KillBelow(pid_t root, int root_fd = -1);

// SIGKILL to every process with a variable in its environment that begins with `entry`
// ("NAME=value"): what is left of runs whose guards were killed. Returns how many there were. A
// process that wrote over its environment is not found, so that 0 is no proof.
int KillByEnvironment(absl::string_view entry);

}  // namespace matins

#endif  // MATINS_EXECUTE_PROCESS_TREE_H_
