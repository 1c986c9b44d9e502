// What a job says that is allowed and likely not meant. Shown by `matins lint` and on applying.
#ifndef MATINS_JOB_LINT_H_
#define MATINS_JOB_LINT_H_

#include <vector>

#include "absl/time/time.h"
#include "job/job.h"
#include "job/rules.h"

namespace matins {

// A lease that heartbeats cannot keep; a schedule or one-off without a future; months that a day of
// the month passes over; dates of the two years after `now` on which clock changes leave a period
// without a fire or with two; a calendar that ends soon or has ended; a lock that does not hold
// what overlap says; back-fill in parallel under strict order; a program named from nowhere.
std::vector<Finding> FindWarnings(const ResolvedJob& job, absl::Time now);

}  // namespace matins

#endif  // MATINS_JOB_LINT_H_
