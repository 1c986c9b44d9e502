#include "plan/misfire.h"

#include <algorithm>

#include "base/fault.h"
#include "job/values.h"

namespace matins {
namespace {

bool IsPastCap(const Job& job, const OwedFacts& facts) {
  if (IsMutant(Mutant::kNoCap)) return false;
  return job.backfill.max_periods && facts.newer >= *job.backfill.max_periods;
}

// The reason why a missed period is not made good, apart from the cap. What the source no longer
// has comes first: it says that a person cannot fill it either.
absl::string_view WhyNot(const Job& job, const OwedFacts& facts, absl::Time now) {
  const absl::Duration age = now - facts.due;
  if (age > job.backfill.source_window && !IsMutant(Mutant::kNoSourceWindow))
    return reason::kUnfillable;
  if (age > job.backfill.max_age) return reason::kExpired;
  if (job.misfire == Misfire::kSkip) return reason::kMissed;
  if (job.misfire == Misfire::kLatest && facts.newer > 0) return reason::kSuperseded;
  return "";
}

}  // namespace

absl::Time OnTimeUntil(const Job& job, absl::Time not_before) {
  absl::Time until = not_before + job.start_deadline;
  if (job.overlap == Overlap::kReplace) until += job.lock.ttl + job.grace;
  return until;
}

absl::Time KeepUntil(const Job& job, absl::Time due) {
  return due + std::min(job.backfill.max_age, job.backfill.source_window);
}

absl::Time StartBy(const Job& job, absl::Time due, absl::Time not_before) {
  if (job.overlap == Overlap::kQueue) return absl::InfiniteFuture();
  const absl::Time on_time = OnTimeUntil(job, not_before);
  return job.misfire == Misfire::kEach ? std::max(on_time, KeepUntil(job, due)) : on_time;
}

Verdict Judge(const Job& job, const OwedFacts& facts, absl::Time now) {
  Verdict verdict{.missed = now > facts.on_time_until && !facts.waits};
  if (verdict.missed) verdict.skip = WhyNot(job, facts, now);
  // skip and latest leave nothing that a cap could be for, and say why more exactly.
  if (verdict.skip.empty() && IsPastCap(job, facts)) verdict.skip = reason::kCap;
  return verdict;
}

}  // namespace matins
