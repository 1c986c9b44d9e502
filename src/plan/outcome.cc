#include <algorithm>
#include <cstdint>

#include "plan/plan.h"

namespace matins {
namespace {

// Doubles from min to max; a quarter of it is chance, told by the fence, so that runs which failed
// together do not come back together, and one that is asked twice answers the same.
absl::Duration Backoff(const Retry& retry, int attempt, int64_t fence) {
  absl::Duration base = retry.backoff_min;
  for (int i = 1; i < attempt && base < retry.backoff_max; ++i) base *= 2;
  const uint64_t mixed = static_cast<uint64_t>(fence) * 0x9e3779b97f4a7c15;
  const double chance = static_cast<double>(mixed >> 40) / static_cast<double>(1 << 24);
  return std::clamp(base * (1.0 + chance / 4), retry.backoff_min,
                    std::max(retry.backoff_min, retry.backoff_max));
}

}  // namespace

Outcome AfterFailure(const Job& job, int attempt, int64_t fence, Outcome failure) {
  const bool may_retry = failure.kind == Outcome::Kind::kFailed &&
                         failure.reason != reason::kCancelled && attempt < job.retry.attempts;
  if (!may_retry) return failure;
  failure.kind = Outcome::Kind::kRetry;
  failure.backoff = Backoff(job.retry, attempt, fence);
  return failure;
}

LossVerdict AfterLoss(const Job& job, const PeriodRow& row) {
  // RUNNING as other programs write it: there is no lease that could have been lost.
  if (row.lease_until == absl::InfinitePast()) return {Outcome::Kind::kFailed, reason::kStale};
  if (job.recovery == Recovery::kHold) return {Outcome::Kind::kHeld, reason::kHeld};
  if (job.recovery == Recovery::kResume && row.checkpoint == 0) {
    return {Outcome::Kind::kHeld, reason::kHeld};
  }
  if (row.losses + 1 >= job.max_lost) return {Outcome::Kind::kFailed, reason::kLost};
  return {Outcome::Kind::kReturned, reason::kLost};
}

}  // namespace matins
