// Runs `command` and `shell` as processes, each below a guard of its own (guard/guard.c). What it
// promises about deadlines and about trees being dead holds while this process is stopped, and
// after it has died (I19, I21); see also runner.h.
#ifndef MATINS_EXECUTE_PROCESS_RUNNER_H_
#define MATINS_EXECUTE_PROCESS_RUNNER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "execute/runner.h"
#include "execute/user.h"

namespace matins {

struct ProcessRunnerOptions {
  std::string folder;  // of the runs' sockets; see NodeFolder::Open
  UserLookup lookup = LookUpUser;
};

// Two threads of its own: one starts (and may block on name services and files), one listens.
// Destroying it is the node's death to its runs: their guards kill them, and give back their
// leases.
absl::StatusOr<std::unique_ptr<Runner>> OpenProcessRunner(ProcessRunnerOptions options);

}  // namespace matins

#endif  // MATINS_EXECUTE_PROCESS_RUNNER_H_
