#include "engine/tick_lane.h"

#include "base/status.h"

namespace matins {
namespace {

// Small enough that nobody waits for it; a long history goes in many turns.
constexpr int kPurgedACall = 500;

}  // namespace

absl::StatusOr<absl::Duration> TickLane::Turn() {
  const absl::Duration now = node_.clock.BootNow();
  TickRequest request;
  request.node = node_.options.id;
  request.boot = now;
  request.asking = asking_since_ ? now - *asking_since_ : absl::ZeroDuration();
  request.wall = node_.clock.WallNow();
  request.clock_settle_us = absl::ToInt64Microseconds(node_.options.clock_settle);
  absl::StatusOr<TickAnswer> answered = store().Tick(request);
  if (!answered.ok()) {
    // Whoever else could judge the clock is cut off too, perhaps.
    asking_since_.reset();
    return answered.status();
  }
  const TickAnswer& answer = *answered;
  if (!asking_since_) asking_since_ = now;
  Note(answer);
  if (now >= next_purge_ && !answer.frozen) {
    ASSIGN_OR_RETURN(const int64_t gone, store().Purge(kPurgedACall));
    node_.counters.purged += gone;
    next_purge_ = gone >= kPurgedACall ? now : now + node_.options.purge;
  }
  return now + node_.options.tick;
}

void TickLane::Note(const TickAnswer& answer) {
  // The other lanes may have met a jump that this tick has judged to be none.
  const bool rested = node_.frozen.exchange(answer.frozen);
  if (answer.frozen && !frozen_) node_.Alarm(event::kClockFrozen, {}, 0, answer.frozen_why);
  if (!answer.frozen && frozen_) node_.Say(event::kClockThawed);
  if (answer.returned) node_.Say(event::kReturned);
  if (answer.returned || (rested && !answer.frozen)) {
    node_.freed = true;
    node_.Ring(LaneKind::kPlan);
    node_.Ring(LaneKind::kStart);
    node_.Ring(LaneKind::kReap);
  }
  frozen_ = answer.frozen;
}

}  // namespace matins
