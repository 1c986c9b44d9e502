#include "engine/lanes.h"

#include <utility>

#include "base/status.h"
#include "engine/beat_lane.h"
#include "engine/finish_lane.h"
#include "engine/plan_lane.h"
#include "engine/reap_lane.h"
#include "engine/start_lane.h"
#include "engine/tick_lane.h"

namespace matins {

Lanes::Lanes(NodeParts& parts)
    : node_(std::move(parts.options), *parts.clock, *parts.runner,
            parts.history != nullptr ? *parts.history : NoHistory(),
            parts.events != nullptr ? *parts.events : NoEvents()) {
  node_.door = parts.door;
}

absl::StatusOr<std::unique_ptr<Lanes>> Lanes::Open(NodeParts parts) {
  auto lanes = std::unique_ptr<Lanes>(new Lanes(parts));
  EngineNode& node = lanes->node_;
  std::array<std::unique_ptr<Store>, kAllLanes.size()> stores;
  // From the last, which is tick: a node begins with one, and the database may have a connection at
  // hand.
  for (size_t i = kAllLanes.size(); i-- > 0;) {
    ASSIGN_OR_RETURN(stores[i], parts.open_store(kAllLanes[i]));
  }
  const auto store = [&](LaneKind kind) { return std::move(stores[static_cast<size_t>(kind)]); };
  lanes->lanes_ = {
      std::make_unique<PlanLane>(node, store(LaneKind::kPlan)),
      std::make_unique<StartLane>(node, store(LaneKind::kStart), std::move(parts.random)),
      std::make_unique<FinishLane>(node, store(LaneKind::kFinish)),
      std::make_unique<BeatLane>(node, store(LaneKind::kBeat)),
      std::make_unique<ReapLane>(node, store(LaneKind::kReap)),
      std::make_unique<TickLane>(node, store(LaneKind::kTick)),
  };
  node.runner.SetWakeUp([&node] { node.Ring(LaneKind::kFinish); });
  return lanes;
}

void Lanes::BeginDrain() {
  node_.draining = true;
  node_.Say(event::kDrainBegun);
  for (const LaneKind kind : kAllLanes) node_.Ring(kind);
}

void Lanes::StopRuns() {
  node_.stopping = true;
  node_.StopAll();
}

absl::Status Lanes::Leave() {
  RETURN_IF_ERROR(lane(LaneKind::kTick).store().Leave(node_.options.id));
  node_.Say(event::kDrained);
  return absl::OkStatus();
}

}  // namespace matins
