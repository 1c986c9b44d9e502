#include "engine/tick_lane.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/memory.h"
#include "base/status.h"
#include "schedule/schedule.h"
#include "store/rules.h"

#ifndef MATINS_VERSION
#error "MATINS_VERSION is the project's version, given by the build"
#endif

namespace matins {
namespace {

// Small enough that nobody waits for it; a long history goes in many turns.
constexpr int kPurgedACall = 500;
// A node that has just come has better things to do first.
constexpr absl::Duration kFirstPurge = absl::Seconds(10);
constexpr absl::Duration kRestAfter = absl::Seconds(15);
// The worst in so long is told once: a host that limps all day is not an act for each tick.
constexpr absl::Duration kToldAgain = absl::Minutes(1);

}  // namespace

TickLane::TickLane(EngineNode& node, std::unique_ptr<Store> store)
    : Lane(LaneKind::kTick, node, std::move(store)),
      planner_(absl::StrCat("matins ", MATINS_VERSION, ", zone data ", ZoneDataVersion())) {
  next_purge_ = node.clock.BootNow() + std::min(kFirstPurge, node.options.purge);
}

absl::StatusOr<absl::Duration> TickLane::Turn() {
  const absl::Duration now = node_.clock.BootNow();
  // Rung by each word of the others, of whom it is enough to hear once a second.
  if (node_.quiet && now < asked_at_ + node_.options.tick) return asked_at_ + node_.options.tick;
  asked_at_ = now;
  TickRequest request;
  request.node = node_.options.id;
  request.boot = now;
  request.asking = asking_since_ ? now - *asking_since_ : absl::ZeroDuration();
  request.wall = node_.clock.WallNow();
  request.clock_settle_us = absl::ToInt64Microseconds(node_.options.clock_settle);
  request.planner = planner_;
  request.idle_ahead = node_.options.quiet_ahead;
  request.stirs = node_.stirred.exchange(false);
  request.stood_still = StoodStill(now);
  absl::StatusOr<TickAnswer> answered = store().Tick(request);
  if (!answered.ok()) {
    // Whoever else could judge the clock is cut off too, perhaps.
    asking_since_.reset();
    SetQuiet(false);
    return answered.status();
  }
  const TickAnswer& answer = *answered;
  if (request.stood_still > absl::ZeroDuration()) {
    stood_still_ = absl::ZeroDuration();
    next_told_ = now + kToldAgain;
  }
  if (!asking_since_) asking_since_ = now;
  Note(answer);
  Rest(now);
  SetQuiet(answer.idle && !answer.frozen && node_.hears && !node_.draining && !node_.outdated &&
           now >= busy_at_ + node_.options.quiet_after);
  if (now >= next_purge_ && !answer.frozen && !node_.outdated) {
    ASSIGN_OR_RETURN(const int64_t gone, store().Purge(kPurgedACall));
    node_.counters.purged += gone;
    next_purge_ = gone >= kPurgedACall ? now : now + node_.options.purge;
  }
  const bool rests = node_.quiet && next_purge_ > now;
  meant_ =
      now + (rests ? std::max(node_.options.tick, node_.options.quiet_tick) : node_.options.tick);
  return *meant_;
}

// Whatever the other lanes would have found by polling meanwhile, they look for when rest ends.
// While it lasts START may not rely on what planning saw when it began.
void TickLane::SetQuiet(bool quiet) {
  const bool was = node_.quiet.exchange(quiet);
  if (quiet) {
    node_.judged_until_us = 0;
  } else if (was) {
    node_.freed = true;
    node_.Ring(LaneKind::kPlan);
    node_.Ring(LaneKind::kStart);
    node_.Ring(LaneKind::kReap);
  }
}

absl::Duration TickLane::StoodStill(absl::Duration now) {
  if (!node_.options.stepped_on_time) return absl::ZeroDuration();
  stood_still_ = std::max(stood_still_, now - meant_.value_or(now));
  return stood_still_ >= kStoodStill && now >= next_told_ ? stood_still_ : absl::ZeroDuration();
}

// A node that has had nothing to do for a while keeps nothing that it can read again.
void TickLane::Rest(absl::Duration now) {
  const int64_t done = node_.counters.plans + node_.counters.claims;
  if (done != std::exchange(done_, done) || node_.live.count() > 0) {
    busy_at_ = now;
    rested_ = false;
  } else if (!rested_ && now >= busy_at_ + kRestAfter) {
    rested_ = true;
    node_.definitions.Forget();
    ReturnFreedMemory();
  }
}

void TickLane::Note(const TickAnswer& answer) {
  const bool outdated = answer.schema > kSchemaVersion;
  if (outdated && !node_.outdated) {
    node_.Alarm(event::kSchemaNewer, {}, 0,
                absl::StrCat("the store has schema ", answer.schema, ", newer than this program's ",
                             kSchemaVersion, "; nothing more is started here"));
  }
  node_.outdated = outdated;
  const bool frozen = answer.frozen || outdated;
  // The other lanes may have met a jump that this tick has judged to be none.
  const bool rested = node_.frozen.exchange(frozen);
  if (answer.frozen && !frozen_) node_.Alarm(event::kClockFrozen, {}, 0, answer.frozen_why);
  if (!answer.frozen && frozen_) node_.Say(event::kClockThawed);
  if (answer.returned) node_.Say(event::kReturned);
  if (answer.returned || (rested && !frozen)) {
    node_.freed = true;
    node_.Ring(LaneKind::kPlan);
    node_.Ring(LaneKind::kStart);
    node_.Ring(LaneKind::kReap);
  }
  frozen_ = answer.frozen;
}

}  // namespace matins
