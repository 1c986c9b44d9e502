// Reap: runs whose lease has ended are taken from their owners, whoever those were.
#ifndef MATINS_ENGINE_REAP_LANE_H_
#define MATINS_ENGINE_REAP_LANE_H_

#include <memory>

#include "engine/lane.h"

namespace matins {

// Reads what is stale, judges each loss by the job's recovery, and takes it; the store repeats the
// condition under the row's lock, so that an owner whose beat came meanwhile keeps its run (I7).
// Any node reaps, its own lost runs too.
//
// Crash window:
//   reap.before_write  nothing was written; any node reads the same
class ReapLane final : public Lane {
 public:
  ReapLane(EngineNode& node, std::unique_ptr<Store> store)
      : Lane(LaneKind::kReap, node, std::move(store)) {}

 private:
  absl::StatusOr<absl::Duration> Turn() override;
  absl::StatusOr<ReapRequest> Judge(const StaleRun& stale);
};

}  // namespace matins

#endif  // MATINS_ENGINE_REAP_LANE_H_
