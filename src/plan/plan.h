// Planning: what a job owes and what becomes of it, as a pure function of what was read
// (docs/planning.md, "On time and missed"). No clock, no store, no chance: the same input gives the
// same plan on every node.
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

// A person's back-fill of periods that were due by now and whose biz_date is in [from, to]:
// misfire, cap and first sight do not apply, order and the source window do. What was never
// planned or failed gets a manual row or new attempts; SKIPPED and FAILED(held) ones are answered
// in `reopen`; those that are RUNNING or PLANNED, or that `reprocess` does not take (of those below
// the floor, where all is settled, without a row: all but kAll), in `left`; those that the source
// no longer has (SKIPPED(unfillable) where they had no row) in `unfillable`. `existing`: the rows
// with a biz_date in the range. InvalidArgument: from > to, or more than 10,000 periods.
enum class Reprocess {
  kMissing,  // what was never run: without a row, or SKIPPED
  kFailed,   // and what has FAILED, held or not
  kAll,      // and what is DONE, or was settled below the floor
};
struct BackfillPlan {
  PlanWrite write;
  std::vector<PeriodKey> reopen;
  std::vector<PeriodKey> left;
  std::vector<PeriodKey> unfillable;
};
absl::StatusOr<BackfillPlan> PlanBackfill(const PlanInput& input,
                                          absl::Span<const PeriodRow> existing, absl::CivilDay from,
                                          absl::CivilDay to,
                                          Reprocess reprocess = Reprocess::kFailed);

// One period by hand, due or not: the row `job run --date` wants. `key` is the period's
// ("2026-10-30" of a daily job); empty: the newest that was due. It need not be in the schedule,
// except that of period kind fire only fires have a window. `params`: a JSON object, or empty. Of
// rows in the state a FAILED one gets new attempts and a PLANNED one loses its start deadline. One
// without a row at or below the floor was settled: its intent `reopens` it, which the caller must
// have been asked for.
// InvalidArgument: no such period. FailedPrecondition: it is RUNNING (naming the runner) or final.
absl::StatusOr<PlanWrite> PlanByHand(const PlanInput& input, absl::string_view key,
                                     absl::string_view params);

// A suspended job is resumed and what it owes by now is not to run: all of it that is not RUNNING,
// held or a person's becomes SKIPPED(suspended), by `act.who`.
absl::StatusOr<PlanWrite> PlanResumeSkip(const PlanInput& input, const Act& act);

// What an attempt that did not end well makes of its period: retry with backoff while this trigger
// has attempts left. `attempt` is of this trigger, from 1. Backoff doubles from min to max, with a
// stable jitter by `fence`.
Outcome AfterFailure(const Job& job, int attempt, int64_t fence, Outcome failure);

// What a lost lease makes of it: PLANNED again, FAILED(held) or FAILED(lost) (docs/jobs.md,
// "States").
struct LossVerdict {
  Outcome::Kind to = Outcome::Kind::kReturned;
  std::string reason;
};
LossVerdict AfterLoss(const Job& job, const PeriodRow& row);

}  // namespace matins

#endif  // MATINS_PLAN_PLAN_H_
