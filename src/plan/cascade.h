// What comes after what is computed again: later periods of the job, which may carry on from it,
// and those of the jobs that come `after` it. Pure.
#ifndef MATINS_PLAN_CASCADE_H_
#define MATINS_PLAN_CASCADE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/values.h"

namespace matins {

// A job as far as it matters here.
struct CascadeJob {
  std::string name;
  std::vector<std::string> after;
  absl::Duration source_window = absl::InfiniteDuration();
};

// The jobs that come `after` this one, and after those in turn, each behind what it waits for as
// far as there is such an order; not the job itself.
std::vector<std::string> JobsAfter(absl::string_view job, absl::Span<const CascadeJob> jobs);

struct Cascade {
  std::vector<PeriodKey> reopen;      // DONE ones: the job's own first, each job's oldest first
  std::vector<PeriodRow> running;     // they read what is to be computed again
  std::vector<PeriodKey> unfillable;  // DONE, and older than their job's source_window
};
// `rows`: of the job those due after the first period that is computed again, and of JobsAfter
// those whose biz_date is not before that period's; any others are passed over. What is PLANNED or
// FAILED runs anyway, and what is SKIPPED stays so.
Cascade PlanCascade(absl::string_view job, absl::Time first_due, absl::CivilDay first_day,
                    absl::Span<const CascadeJob> jobs, absl::Span<const PeriodRow> rows,
                    absl::Time now);

}  // namespace matins

#endif  // MATINS_PLAN_CASCADE_H_
