// From a claim to what the runner is asked to do: environment, deadlines, what to give back.
#ifndef MATINS_ENGINE_LAUNCH_H_
#define MATINS_ENGINE_LAUNCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/live_runs.h"
#include "engine/node.h"
#include "execute/runner.h"
#include "store/store.h"

namespace matins {

// `run.definition` is set. InvalidArgument: `params` is not a JSON object of plain values.
absl::StatusOr<RunRequest> RunRequestOf(const LiveRun& run, const NodeOptions& options);

// What START granted becomes a live run of this node, with its timers, and `requests` what is to be
// started for it: nothing where that cannot be made out, which the finish lane then tells the
// store. `sent`: what the grant proves (timing.h).
void TakeClaim(EngineNode& node, Store& store, const Claim& claim, absl::Duration sent,
               std::vector<RunRequest>& requests);

// The `check` command of a run that ended well: a run of its own under the same lease and time-out.
absl::StatusOr<RunRequest> CheckRequestOf(const LiveRun& run, absl::Duration last_proof);

// A runner knows a run by its fence, and its check by the fence's negative.
inline int64_t CheckId(int64_t fence) { return -fence; }
inline int64_t FenceOfRunId(int64_t id) { return id < 0 ? -id : id; }

}  // namespace matins

#endif  // MATINS_ENGINE_LAUNCH_H_
