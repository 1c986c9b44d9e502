// Planning: what a job owes and what becomes of it, as a pure function of what was read (DESIGN 4,
// "Owed and missed"). No clock, no store, no chance: the same input gives the same plan on every
// node.
#ifndef MATINS_PLAN_PLAN_H_
#define MATINS_PLAN_PLAN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/job_state.h"
#include "job/values.h"

namespace matins {

// A version with its meaning, in force from `from`.
struct VersionInForce {
  int number = 0;
  absl::Time from;
  const ResolvedJob* job = nullptr;
};

struct PlanInput {
  const JobState* state = nullptr;
  absl::Span<const VersionInForce> versions;  // as state->versions
  absl::Time now;                             // the store's
  absl::Duration ahead = absl::Seconds(5);    // fires due by now + ahead are planned already
  // A person's trigger, whether or not the state has one pending.
  std::optional<Trigger> trigger;
};

// Owed periods, judged: misfire, cap, age, source window, order, suspension, spread, spans of more
// than 100 SKIPPED. InvalidArgument: the calendar's coverage ended (the message says which, and
// until when).
absl::StatusOr<PlanWrite> PlanJob(const PlanInput& input);

// A person's back-fill of periods whose biz_date is in [from, to]: misfire and cap do not apply,
// order does. Periods that are DONE, RUNNING or PLANNED are left; SKIPPED ones are answered in
// `reopen`.
struct BackfillPlan {
  PlanWrite write;
  std::vector<PeriodKey> reopen;
  std::vector<PeriodKey> left;
};
absl::StatusOr<BackfillPlan> PlanBackfill(const PlanInput& input,
                                          absl::Span<const PeriodRow> existing, absl::CivilDay from,
                                          absl::CivilDay to);

// One period by hand: the row `job run --date` wants. For period kinds finer than a day `key` picks
// the period.
absl::StatusOr<PlanWrite> PlanByHand(const PlanInput& input, absl::string_view key,
                                     absl::string_view params);

// What an attempt that did not end well makes of its period: retry with backoff while this trigger
// has attempts left. `attempt` is of this trigger, from 1. Backoff doubles from min to max, with a
// stable jitter by `fence`.
Outcome AfterFailure(const Job& job, int attempt, int64_t fence, Outcome failure);

// What a lost lease makes of it: PLANNED again, FAILED(held) or FAILED(lost) (DESIGN 4, "States").
struct LossVerdict {
  Outcome::Kind to = Outcome::Kind::kReturned;
  std::string reason;
};
LossVerdict AfterLoss(const Job& job, const PeriodRow& row);

}  // namespace matins

#endif  // MATINS_PLAN_PLAN_H_
