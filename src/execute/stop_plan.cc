#include "execute/stop_plan.h"

#include <algorithm>

#include "base/fault.h"

namespace matins {

void StopPlan::MoveLease(Deadline lease) {
  if (reason_ != StopReason::kLeaseLost) lease_ = lease;
  if (IsMutant(Mutant::kBeatMovesTimeOut)) time_out_ = lease;
}

void StopPlan::Ask(StopReason reason, absl::Duration now, absl::Duration grace) {
  if (reason_ == StopReason::kNone) reason_ = reason;
  asked_kill_ = std::min(asked_kill_, now + std::max(grace, absl::ZeroDuration()));
}

absl::Duration StopPlan::KillAt() const {
  return std::min({lease_.kill, time_out_.kill, asked_kill_});
}

absl::Duration StopPlan::NextAt() const {
  if (kill_sent_) return absl::InfiniteDuration();
  if (term_sent_) return KillAt();
  if (reason_ != StopReason::kNone) return -absl::InfiniteDuration();
  return std::min({lease_.stop, time_out_.stop, KillAt()});
}

StopPlan::Act StopPlan::Due(absl::Duration now) {
  if (kill_sent_) return Act::kNothing;
  if (reason_ == StopReason::kNone) {
    const bool lease_over = std::min(lease_.stop, lease_.kill) <= now;
    const bool time_over = std::min(time_out_.stop, time_out_.kill) <= now;
    if (!lease_over && !time_over) return Act::kNothing;
    // Both over, as after a long pause: the one that came first is the reason.
    reason_ = !time_over || (lease_over && lease_.stop <= time_out_.stop) ? StopReason::kLeaseLost
                                                                          : StopReason::kTimeOut;
  }
  if (KillAt() <= now) {
    term_sent_ = kill_sent_ = true;
    return Act::kKill;
  }
  if (term_sent_) return Act::kNothing;
  term_sent_ = true;
  return Act::kTerm;
}

}  // namespace matins
