#include "store/clock_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fault.h"
#include "base/time.h"
#include "store/rules.h"

namespace matins {
namespace {

std::string Told(absl::string_view way, absl::Duration by, absl::Time at) {
  return absl::StrFormat("the store's clock went %s by %.1f s at %s", way,
                         absl::ToDoubleSeconds(by), FormatInstant(at));
}

// Only a node that was here before a jump forward can say what its boot clock explains: a machine
// that slept, or was down, is no step.
std::string StepOf(const ClockMark& mark, absl::Duration boot) {
  if (mark.hwm == absl::InfinitePast()) return "";
  if (mark.hwm - mark.raw > kStepBack) {
    if (IsMutant(Mutant::kNoStepBack)) return "";
    return Told("back", mark.hwm - mark.raw, mark.hwm);
  }
  if (!mark.boot || !IsUnjudged(mark.raw, mark.hwm)) return "";
  const absl::Duration unexplained = (mark.raw - mark.seen) - (boot - *mark.boot);
  return unexplained <= kStepForward ? "" : Told("forward", unexplained, mark.hwm);
}

}  // namespace

ClockVerdict JudgeClock(const ClockMark& mark, const TickRequest& request) {
  using Kind = ClockVerdict::Kind;
  if (mark.frozen_why.empty()) {
    const bool unknown = !mark.boot && mark.witness && IsUnjudged(mark.raw, mark.hwm);
    if (unknown && request.asking < kWitnessWait && !IsMutant(Mutant::kNoWitnessWait)) {
      return {Kind::kWait, WaitsForWitness(mark.raw, mark.hwm)};
    }
    std::string why = StepOf(mark, request.boot);
    return why.empty() ? ClockVerdict{} : ClockVerdict{Kind::kFreeze, std::move(why)};
  }
  const bool unsteady =
      mark.raw < mark.last_raw - kStepBack || mark.raw > mark.last_raw + kStepForward;
  if (unsteady) return {Kind::kRestart, mark.frozen_why};
  if (mark.raw - mark.frozen_at >= absl::Microseconds(request.clock_settle_us)) {
    return {Kind::kSettle, ""};
  }
  return {Kind::kFrozen, mark.frozen_why};
}

ReturnVerdict JudgeReturn(const ClockMark& mark, absl::Time now, bool nobody_was_here) {
  ReturnVerdict verdict;
  const bool recent =
      mark.return_last != absl::InfinitePast() && now - mark.return_last <= kReturnCalm;
  const absl::Duration wait = recent ? mark.return_wait : absl::ZeroDuration();
  const bool waited = mark.return_due != absl::InfinitePast() && mark.return_due <= now;
  if (!nobody_was_here && !waited) return verdict;
  if (!waited && recent && now < mark.return_last + wait) {
    verdict.due = mark.return_last + wait;
    return verdict;
  }
  verdict.returned = true;
  verdict.wait = std::clamp(2 * wait, kReturnWaitMin, kReturnWaitMax);
  return verdict;
}

}  // namespace matins
