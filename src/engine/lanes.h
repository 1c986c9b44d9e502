// Start here. A run's whole life:
//
//   PLAN    a job's next look has come
//           Store.ReadDue -> plan.PlanJob -> Store.Plan        rows PLANNED, some held for this
//           node
//   START   the row's instant has come, by the store's clock
//           Store.Hold -> (timer) -> Store.Start               RUNNING: fence, nonce, lease
//           Runner.Start                                       only what the store granted
//   BEAT    every quarter of the lease, while it runs
//           Store.Extend -> Runner.MoveDeadlines               unanswered: the runner stops it in
//           time
//                                                              refused: stopped at once
//   FINISH  what the run says, and how it ended
//           Runner.Poll -> Store.Checkpoint -> Runner.Reply
//           Runner.Poll -> OutcomeOf -> Store.Finish           DONE, FAILED, or PLANNED for a retry
//                                       Store.Resolve          where no answer came
//   REAP    nobody extended the lease, and it ended
//           Store.ReadStale -> plan.AfterLoss -> Store.Reap    PLANNED again, FAILED(held) or
//           (lost)
//   TICK    each second; where all is idle, each third, and it is all that a node asks then
//           Store.Tick, Store.Purge                            sign of life, clock, history
//
// Each line is a lane: a state machine with a store of its own (lane.h). They share an EngineNode
// (node.h) and wake one another by bells. Values flow one way, Intent -> Claim -> Outcome; the
// branches are here, the leaves are pure (plan/, outcome.h, timing.h, launch.h). Nothing is held in
// memory that is not in the store first, so that a node may die between any two lines; what
// recovery does then stands with each lane, as its crash windows.
#ifndef MATINS_ENGINE_LANES_H_
#define MATINS_ENGINE_LANES_H_

#include <array>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "engine/lane.h"
#include "engine/node.h"
#include "store/store.h"

namespace matins {

// What a node works with; all but the options outlive it.
struct NodeParts {
  NodeOptions options;
  Clock* clock = nullptr;
  Runner* runner = nullptr;
  History* history = nullptr;      // null: none
  EngineEvents* events = nullptr;  // null: none
  Door* door = nullptr;            // null: none; `lock.provider: redis` then is the store alone
  // A store of its own for each lane. For kBeat the calls' deadline must be at most a sixth of the
  // shortest lease.
  std::function<absl::StatusOr<std::unique_ptr<Store>>(LaneKind)> open_store;
  std::unique_ptr<Random> random;  // for nonces
};

// All lanes of one node, to be stepped by hand.
class Lanes {
 public:
  static absl::StatusOr<std::unique_ptr<Lanes>> Open(NodeParts parts);

  EngineNode& node() { return node_; }
  Lane& lane(LaneKind kind) { return *lanes_[static_cast<size_t>(kind)]; }
  absl::Duration Step(LaneKind kind) { return lane(kind).Step(); }

  // Nothing new is planned or started from now on; what is held goes back at the start lane's next
  // step. Runs go on.
  void BeginDrain();
  // Stops what still runs; each hands its period over (RETURNED, no attempt used up).
  void StopRuns();
  // After BeginDrain: no run is left whose end the store has not answered, and none is to come of a
  // START that was under way.
  bool Drained() const { return !node_.starting && node_.live.count() == 0; }
  // The node's last word to the store.
  absl::Status Leave();

 private:
  explicit Lanes(NodeParts& parts);

  EngineNode node_;
  std::array<std::unique_ptr<Lane>, kAllLanes.size()> lanes_;
};

}  // namespace matins

#endif  // MATINS_ENGINE_LANES_H_
