// From what a job says to what a guard needs: user, folder, socket, words, environment. All that
// may block (name services, files) is here, away from the threads that keep deadlines.
#ifndef MATINS_EXECUTE_RUN_PLAN_H_
#define MATINS_EXECUTE_RUN_PLAN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "execute/guard_link.h"
#include "execute/run_folder.h"
#include "execute/run_socket.h"
#include "execute/runner.h"
#include "execute/user.h"

namespace matins {

struct RunPlan {
  GuardPlan guard;
  std::string folder;
  std::unique_ptr<RunSocket> socket;
};

// Errors name the field and the mend. On error nothing is left behind.
absl::StatusOr<RunPlan> PlanRun(const RunRequest& request, NodeFolder& node_folder,
                                const UserLookup& lookup);

}  // namespace matins

#endif  // MATINS_EXECUTE_RUN_PLAN_H_
