// A lane: one of the few things a node does all the time, as a state machine with a store of its
// own. It never waits: Step does what is due and says when it wants to be stepped again. The engine
// gives each lane a thread (engine.h); tests and the simulator step lanes by hand.
#ifndef MATINS_ENGINE_LANE_H_
#define MATINS_ENGINE_LANE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/node.h"
#include "store/store.h"

namespace matins {

class Lane {
 public:
  Lane(LaneKind kind, EngineNode& node, std::unique_ptr<Store> store)
      : node_(node), kind_(kind), store_(std::move(store)) {}
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // One turn. Answers the boot instant at which it wants the next; earlier when its bell rings.
  // Store errors do not come out of here: they are said, counted, and tried again with backoff.
  absl::Duration Step();

  LaneKind kind() const { return kind_; }
  Store& store() { return *store_; }

 protected:
  // The turn itself. An error is one of the store's (store.h): the lane is stepped again after a
  // backoff of 50 ms that doubles up to 2 s.
  virtual absl::StatusOr<absl::Duration> Turn() = 0;

  EngineNode& node_;

 private:
  absl::Duration Failed(const absl::Status& status);

  const LaneKind kind_;
  const std::unique_ptr<Store> store_;
  absl::Duration backoff_ = absl::ZeroDuration();
};

}  // namespace matins

#endif  // MATINS_ENGINE_LANE_H_
