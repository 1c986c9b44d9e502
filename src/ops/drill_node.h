// A node of one job that fills what a drill deleted, inside the process that drills.
#ifndef MATINS_OPS_DRILL_NODE_H_
#define MATINS_OPS_DRILL_NODE_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/job_turn.h"
#include "execute/runner.h"
#include "ops/drill.h"
#include "store/database.h"

namespace matins {

// Not thread-safe. What it leaves in its midst when the process dies is what a node leaves.
class DrillNode {
 public:
  // `lease`: the job's; each call about it has a deadline that fits. `host` and the database that
  // its own is a second of outlive it.
  static absl::StatusOr<std::unique_ptr<DrillNode>> Open(const DrillRequest& request,
                                                         absl::Duration lease, ExecHost& host);
  ~DrillNode();

  // Plans, starts one of `periods` that may start, looks after what runs; answers the boot instant
  // at which it wants to be called again. A store that is away is tried again.
  absl::Duration Step(const std::set<std::string>& periods);
  bool running() const { return turn_->running(); }
  void Stop(int signal) { turn_->StopBySignal(signal); }

 private:
  DrillNode() = default;
  absl::Status Look(const std::set<std::string>& periods);

  std::unique_ptr<Database> database_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<JobTurn> turn_;
};

}  // namespace matins

#endif  // MATINS_OPS_DRILL_NODE_H_
