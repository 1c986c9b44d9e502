// Tick: the node's sign of life, the watch over the store's clock, and the removal of history.
#ifndef MATINS_ENGINE_TICK_LANE_H_
#define MATINS_ENGINE_TICK_LANE_H_

#include <memory>
#include <optional>
#include <string>

#include "engine/lane.h"

namespace matins {

// Where all is idle, and this node has been for a while, the lanes come to rest
// (EngineNode::quiet): its tick is then the one question that it asks, and says when there is work
// again.
//
// While the store says that its clock stepped, or has jumped and no tick has judged that yet,
// planning, starting and reaping rest (I8); the first tick after that wakes them.
class TickLane final : public Lane {
 public:
  TickLane(EngineNode& node, std::unique_ptr<Store> store);

 private:
  absl::StatusOr<absl::Duration> Turn() override;
  void Note(const TickAnswer& answer);
  void Rest(absl::Duration now);
  void SetQuiet(bool quiet);
  // What of TickRequest::stood_still there is to tell.
  absl::Duration StoodStill(absl::Duration now);

  const std::string planner_;
  int64_t done_ = 0;  // plans and claims of this node, when it last had any
  absl::Duration busy_at_ = absl::ZeroDuration();
  bool rested_ = false;
  absl::Duration asked_at_ = -absl::InfiniteDuration();
  absl::Duration next_purge_ = absl::ZeroDuration();
  std::optional<absl::Duration> asking_since_;  // by the boot clock: answered since then
  bool frozen_ = false;                         // as the last tick said of the clock
  std::optional<absl::Duration> meant_;         // when the next tick is to be
  absl::Duration stood_still_ = absl::ZeroDuration();
  absl::Duration next_told_ = absl::ZeroDuration();
};

}  // namespace matins

#endif  // MATINS_ENGINE_TICK_LANE_H_
