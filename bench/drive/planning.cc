#include "bench/drive/planning.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "bench/drive/line.h"

namespace matins::bench {
namespace {

class NoRunner final : public Runner {
  void Start(RunRequest) override {}
  void Stop(int64_t, StopReason, absl::Duration) override {}
  void MoveDeadlines(absl::Span<const DeadlineMove>) override {}
  void Reply(int64_t, int64_t, RunAnswer) override {}
  std::vector<RunnerEvent> Poll() override { return {}; }
  void SetWakeUp(std::function<void()>) override {}
};

}  // namespace

PlanningNode::PlanningNode(Database& database, absl::Duration ahead)
    : runner_(std::make_unique<NoRunner>()) {
  NodeParts parts;
  parts.options.id = {"bench/plan", {}};
  parts.options.slots = 0;
  parts.options.ahead = ahead;
  parts.clock = &SystemClock();
  parts.runner = runner_.get();
  parts.random = std::make_unique<SystemRandom>();
  parts.open_store = [&database](LaneKind) { return database.Open(); };
  auto lanes = Lanes::Open(std::move(parts));
  DieUnlessOk(lanes.status(), "a node that plans");
  lanes_ = *std::move(lanes);
}

PlanningNode::~PlanningNode() = default;

void PlanningNode::PlanDue() {
  absl::Duration next;
  do {
    // Read before the comparison: a compiler may read the clock first, and end with the first step.
    next = lanes_->Step(LaneKind::kPlan);
  } while (next <= SystemClock().BootNow());
  if (lanes_->node().counters.store_errors > 0) Die("planning failed");
}

void PlanningNode::PlanOne(const std::string& job) {
  lanes_->node().look_again.Put(job);
  lanes_->Step(LaneKind::kPlan);
  if (lanes_->node().counters.store_errors > 0) Die("planning failed");
}

void PlanningNode::ComeAndGo() {
  lanes_->Step(LaneKind::kTick);
  DieUnlessOk(lanes_->Leave(), "a node's leave");
}

}  // namespace matins::bench
