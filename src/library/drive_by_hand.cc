#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "engine/lanes.h"
#include "library/drive.h"
#include "library/stepped_runner.h"
#include "ops/node.h"

namespace matins {
namespace {

// Beats before reaping: whoever still can proves its lease first.
constexpr std::array<LaneKind, 6> kOrder = {LaneKind::kTick, LaneKind::kBeat,  LaneKind::kFinish,
                                            LaneKind::kPlan, LaneKind::kStart, LaneKind::kReap};
// Far more than anything due takes; a lane that never rests is a bug, and is told as one.
constexpr int kMostRounds = 100'000;

class Hand final : public Drive {
 public:
  explicit Hand(DriveParts& parts)
      : clock_(*parts.clock), runner_(std::move(parts.handlers), *parts.clock, [this] {
          lanes_->Step(LaneKind::kFinish);
        }) {
    next_.fill(-absl::InfiniteDuration());
  }
  absl::Status Open(DriveParts& parts) {
    NodeParts node;
    node.options.id = {NewNodeName(), parts.options.labels};
    node.options.slots = parts.options.slots;
    node.options.global_limit = parts.options.global_limit;
    node.clock = &clock_;
    node.runner = &runner_;
    node.events = parts.events;
    node.random = std::make_unique<SystemRandom>();
    node.open_store = [database = parts.database](LaneKind) { return database->Open(); };
    ASSIGN_OR_RETURN(lanes_, Lanes::Open(std::move(node)));
    return absl::OkStatus();
  }
  ~Hand() override { runner_.Close(); }

  void LookNow() override {
    lanes_->node().freed = true;
    lanes_->node().Ring(LaneKind::kPlan);
    lanes_->node().Ring(LaneKind::kStart);
  }

  absl::Status Step() override {
    LookNow();
    for (int round = 0; round < kMostRounds; ++round) {
      runner_.ActOnDeadlines();
      if (!StepDueLanes() && !runner_.RunNext()) return absl::OkStatus();
    }
    return absl::InternalError("Step: the scheduler does not come to rest");
  }

  absl::Status Drain(absl::Duration) override {
    lanes_->BeginDrain();
    lanes_->StopRuns();
    RETURN_IF_ERROR(Step());
    if (!lanes_->Drained()) {
      return absl::DeadlineExceededError(
          "the store did not take the end of each run; their leases will end");
    }
    return lanes_->Leave();
  }

 private:
  bool StepDueLanes() {
    bool any = false;
    for (const LaneKind kind : kOrder) {
      absl::Duration& next = next_[static_cast<size_t>(kind)];
      if (next > clock_.BootNow() && !lanes_->node().bell(kind).IsRung()) continue;
      // START takes nothing that planning has not looked at yet: planning ends first.
      for (int turn = 0;
           turn == 0 || (kind == LaneKind::kPlan && turn < kMostRounds && next <= clock_.BootNow());
           ++turn) {
        next = lanes_->Step(kind);
      }
      any = true;
    }
    return any;
  }

  Clock& clock_;
  SteppedRunner runner_;
  std::unique_ptr<Lanes> lanes_;
  std::array<absl::Duration, kAllLanes.size()> next_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Drive>> DriveByHand(DriveParts parts) {
  auto hand = std::make_unique<Hand>(parts);
  RETURN_IF_ERROR(hand->Open(parts));
  return hand;
}

}  // namespace matins
