// When a run is to be stopped and when killed: two deadlines and a person's wish in one place. The
// guard has the same rules in C; what they share is tested by the same cases.
#ifndef MATINS_EXECUTE_STOP_PLAN_H_
#define MATINS_EXECUTE_STOP_PLAN_H_

#include "absl/time/time.h"
#include "execute/runner.h"

namespace matins {

// Not thread-safe. Instants are the boot clock's.
class StopPlan {
 public:
  enum class Act { kNothing, kTerm, kKill };

  StopPlan(Deadline lease, Deadline time_out) : lease_(lease), time_out_(time_out) {}

  // Passed over once the lease has begun to stop the run: nothing revives it (I5).
  void MoveLease(Deadline lease);
  // The first reason stands; a later call can only bring the kill nearer.
  void Ask(StopReason reason, absl::Duration now, absl::Duration grace);

  // When Due has something to say next; InfiniteDuration: never.
  absl::Duration NextAt() const;
  // What is to be done at `now`: kTerm once, then kKill once.
  Act Due(absl::Duration now);
  // kNone while nothing has stopped it.
  StopReason reason() const { return reason_; }

 private:
  absl::Duration KillAt() const;

  Deadline lease_;
  Deadline time_out_;
  StopReason reason_ = StopReason::kNone;
  absl::Duration asked_kill_ = absl::InfiniteDuration();
  bool term_sent_ = false;
  bool kill_sent_ = false;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_STOP_PLAN_H_
