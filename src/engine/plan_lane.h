// Plan: what each job owes is judged and written down before anything else knows of it.
#ifndef MATINS_ENGINE_PLAN_LANE_H_
#define MATINS_ENGINE_PLAN_LANE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/lane.h"
#include "engine/timing.h"
#include "plan/plan.h"

namespace matins {

// A turn reads the jobs whose next look has come (and those that another lane asked for), plans
// each by the version in force, and writes the plans in one call; rows that may start soon come
// back held for this node and go to the start lane. It is woken by the earliest next look, by
// changes in the store, and by the poll as a net (I14, I15, I17).
//
// Crash windows:
//   plan.before_write  nothing was written; the next look stands, and any node plans the same
//   plan.after_write   rows are PLANNED, perhaps held by this dead node until held_until; then any
//                      node starts them
class PlanLane final : public Lane {
 public:
  PlanLane(EngineNode& node, std::unique_ptr<Store> store)
      : Lane(LaneKind::kPlan, node, std::move(store)) {}

 private:
  absl::StatusOr<absl::Duration> Turn() override;
  // Null intents where the job cannot be planned: then only its next look moves.
  PlanWrite PlanOf(const JobState& state, absl::Time now);
  absl::StatusOr<PlanWrite> TryPlan(const JobState& state, absl::Time now);
  absl::Status Write(std::vector<PlanWrite> writes, absl::Duration began);
  // `stale` of the `writes` of a turn that began at `began` came too late: another planner is at
  // the same jobs. Whoever has lost most of a turn leaves them to it for a few times as long.
  void GiveWay(size_t stale, size_t writes, absl::Duration began);

  // Nothing is overdue for planning at `now`: START may rely on that for a while.
  void NoteJudged(absl::Time now);

  // To be looked at, due or not; kept until it was done. In order: what asks first is planned first
  // on each run of a seed.
  std::set<std::string> asked_;
  int jobs_a_turn_ = kMostJobsATurn;
  absl::Duration way_until_ = absl::ZeroDuration();  // given to another planner; boot clock
};

}  // namespace matins

#endif  // MATINS_ENGINE_PLAN_LANE_H_
