#include "lab/sim_node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins {

SimNode::SimNode(SimNodeParts parts, absl::Time wall, Ledger& ledger, SimHost::Parts host_parts)
    : clock(wall), host(clock, ledger, std::move(host_parts)), parts_(std::move(parts)) {}

absl::Status SimNode::Boot(uint64_t seed, std::vector<std::string> labels) {
  NodeParts parts;
  parts.options = parts_.options;
  parts.options.id.name = absl::StrCat(parts_.name, "/", ++incarnation_);
  parts.options.id.labels = std::move(labels);
  parts.clock = &clock;
  parts.runner = &host;
  parts.history = parts_.history;
  parts.events = parts_.events;
  parts.door = parts_.door;
  parts.random = std::make_unique<SeededRandom>(seed);
  parts.open_store = [this](LaneKind) -> absl::StatusOr<std::unique_ptr<Store>> {
    ASSIGN_OR_RETURN(std::unique_ptr<Store> store, parts_.database->Open());
    return std::make_unique<FaultyStore>(std::move(store), *parts_.network, *parts_.referee);
  };
  ASSIGN_OR_RETURN(lanes_, Lanes::Open(std::move(parts)));
  lanes_->node().hears = parts_.hears;
  next_.fill(clock.BootNow());
  return absl::OkStatus();
}

void SimNode::Crash() { lanes_ = nullptr; }

absl::Duration SimNode::NextStep(LaneKind kind) {
  if (lanes_->node().bell(kind).IsRung()) return clock.BootNow();
  return next_[static_cast<size_t>(kind)];
}

absl::Duration SimNode::NextAt() {
  absl::Duration next = machine_paused ? absl::InfiniteDuration() : host.NextAt();
  if (!alive() || node_paused || machine_paused || inside) return next;
  for (const LaneKind kind : kAllLanes) next = std::min(next, NextStep(kind));
  return next;
}

void SimNode::Step(LaneKind kind) {
  inside = true;
  next_[static_cast<size_t>(kind)] = lanes_->Step(kind);
  inside = false;
}

}  // namespace matins
