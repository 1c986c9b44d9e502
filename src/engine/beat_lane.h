// Beat: each live run's lease is extended well before it ends, or the run is stopped.
#ifndef MATINS_ENGINE_BEAT_LANE_H_
#define MATINS_ENGINE_BEAT_LANE_H_

#include <memory>
#include <vector>

#include "engine/lane.h"

namespace matins {

// Every ttl/4, one Extend for all runs whose beat is due or nearly so. An accepted beat moves the
// run's deadline to what its *sending* proves; a beat that is not answered moves nothing, so that
// the runner stops the run by itself in time (I19). A refused one stops the run at once. A run
// whose end is being written is not beaten: its result must not hang on a lease that it may have
// lost.
//
// Crash window:
//   beat.after_answer  the store's lease is longer than this node knew; the next owner waits for it
class BeatLane final : public Lane {
 public:
  // `store`'s calls have a deadline of ttl/6 of the shortest lease.
  BeatLane(EngineNode& node, std::unique_ptr<Store> store)
      : Lane(LaneKind::kBeat, node, std::move(store)) {}

 private:
  absl::StatusOr<absl::Duration> Turn() override;
  void NotAnswered(const std::vector<LiveRunPtr>& runs, const absl::Status& status);
  void Refused(const LiveRun& run, const Refusal& refusal);
};

}  // namespace matins

#endif  // MATINS_ENGINE_BEAT_LANE_H_
