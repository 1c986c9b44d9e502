// Start: what is due is claimed at its instant, and only what the store granted is run.
#ifndef MATINS_ENGINE_START_LANE_H_
#define MATINS_ENGINE_START_LANE_H_

#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/lane.h"

namespace matins {

// Holds rows a few seconds ahead, no more than it has slots for, each with a timer of the boot
// clock (timing.h); STARTs those that are due, hundreds in a call; launches what was granted. What
// is due already when it is found is not held first: START takes it. While there is a backlog it
// waits for a part of its slots to be free, so that a call is worth its price. A refused row is
// dropped: the store looks at it again when something frees it, and whoever is free then starts it.
// A job with `lock.provider: redis` asks the door first, which can put a START off and no more.
//
// Crash windows:
//   start.before_send   the rows stay held until held_until, then any node starts them
//   start.after_answer  RUNNING rows with a lease and no process: the leases end, reap takes them
//   start.after_launch  the guard sees that its node died, kills the tree, gives the lease back
class StartLane final : public Lane {
 public:
  // `random` makes the nonces.
  StartLane(EngineNode& node, std::unique_ptr<Store> store, std::unique_ptr<Random> random)
      : Lane(LaneKind::kStart, node, std::move(store)), random_(std::move(random)) {}

  // Rows that wait here for their instant.
  size_t waiting() const { return heap_.size(); }

 private:
  struct Later {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return a.at != b.at ? a.at > b.at : a.row.priority < b.row.priority;
    }
  };

  absl::StatusOr<absl::Duration> Turn() override;
  absl::StatusOr<absl::Duration> TurnUnlessDraining();
  absl::Status Hold();
  absl::Status StartDue();
  // How many of what is due and not held here are to be started besides `named` rows.
  int AlsoDue(int free, int named);
  // Takes out of `rows` those that a door says are at work elsewhere, for a while (I22: the store
  // is asked all the same, a little later).
  void AskDoor(std::vector<Waiting>& rows);
  // Whether it waits; false once it has waited for a whole lease.
  bool PutOff(const Waiting& row, const DoorKey& key, const DoorAnswer& answer);
  // Of what the door let in, what START did not grant is left again; the rest is told to it.
  void TellDoor(const StartAnswers& answers);
  // Nothing where its job asks no door.
  std::optional<DoorKey> DoorKeyFor(const PeriodKey& key);
  absl::Status ReturnUnstartable(const std::vector<Waiting>& rows);
  absl::Status GiveBack();
  absl::Status Send(std::vector<Waiting> rows, int also_due);
  absl::Status Take(const std::vector<Waiting>& rows, const StartRequest& request,
                    const StartAnswers& answers, absl::Duration sent);
  // Whether more is sent at once; ends that let it go first hear that it is not.
  void GoOn(bool more);
  void SayRefused(const StartAnswer& answer);
  void Refused(const StartAnswer& answer, std::vector<PeriodKey>& newcomers);
  absl::Status Replace(const std::vector<PeriodKey>& newcomers);
  void Push(Waiting waiting);
  int free_slots() const { return node_.options.slots - node_.live.count(); }

  const std::unique_ptr<Random> random_;
  std::priority_queue<Waiting, std::vector<Waiting>, Later> heap_;
  absl::Duration next_hold_ = absl::ZeroDuration();
  absl::Duration next_known_ = absl::ZeroDuration();  // the same without the poll
  bool begun_ = false;                                // what was due has been asked for
  bool backlog_ = false;                              // something is due that is not held here
  absl::Duration last_sent_ = -absl::InfiniteDuration();
  bool told_ = false;                            // what others planned has not been held yet
  bool many_ = false;                            // so much that the last call did not take it all
  std::map<PeriodKey, absl::Duration> put_off_;  // since when a door has kept a row waiting
  std::map<PeriodKey, std::string> said_;        // why a row was refused, as it was said last
};

}  // namespace matins

#endif  // MATINS_ENGINE_START_LANE_H_
