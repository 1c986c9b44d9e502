#include "engine/lane.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/launch.h"

namespace matins {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kLongestBackoff = absl::Seconds(2);

}  // namespace

absl::string_view LaneName(LaneKind kind) {
  switch (kind) {
    case LaneKind::kPlan:
      return "plan";
    case LaneKind::kStart:
      return "start";
    case LaneKind::kFinish:
      return "finish";
    case LaneKind::kBeat:
      return "beat";
    case LaneKind::kReap:
      return "reap";
    case LaneKind::kTick:
      return "tick";
  }
  return "";
}

void EngineNode::Stir() {
  if (!quiet.exchange(false)) return;
  stirred = true;
  for (const LaneKind kind :
       {LaneKind::kPlan, LaneKind::kStart, LaneKind::kReap, LaneKind::kTick}) {
    Ring(kind);
  }
}

void EngineNode::StopRun(const LiveRun& run, StopReason why, absl::Duration grace) {
  runner.Stop(run.claim.fence, why, grace);
  if (run.definition != nullptr && run.job().check.has_value()) {
    runner.Stop(CheckId(run.claim.fence), why, grace);
  }
}

void EngineNode::StopAll() {
  for (const LiveRunPtr& run : live.All()) {
    if (run->definition == nullptr) continue;  // never launched; its end is being written
    StopRun(*run, StopReason::kShutdown, run->job().grace);
  }
  Ring(LaneKind::kFinish);
}

EngineEvents& NoEvents() {
  class Deaf final : public EngineEvents {
    void OnEvent(const EngineEvent&) override {}
    bool Listens() const override { return false; }
  };
  static Deaf* const deaf = new Deaf;
  return *deaf;
}

absl::Duration Lane::Step() {
  node_.bell(kind_).Hear();
  absl::StatusOr<absl::Duration> next = Turn();
  if (!next.ok()) return Failed(next.status());
  if (backoff_ > absl::ZeroDuration()) {
    node_.Say(event::kStoreBack, {}, 0, std::string(LaneName(kind_)));
    backoff_ = absl::ZeroDuration();
  }
  return *next;
}

absl::Duration Lane::Failed(const absl::Status& status) {
  ++node_.counters.store_errors;
  if (backoff_ == absl::ZeroDuration()) {
    node_.Alarm(event::kStoreAway, {}, 0, absl::StrCat(LaneName(kind_), ": ", status.message()));
  }
  backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
  return node_.clock.BootNow() + backoff_;
}

}  // namespace matins
