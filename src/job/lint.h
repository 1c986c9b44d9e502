// What a job says that is allowed and likely not meant. Shown by `matins lint` and on applying.
#ifndef MATINS_JOB_LINT_H_
#define MATINS_JOB_LINT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/job.h"
#include "job/rules.h"

namespace matins {

// A lease that heartbeats cannot keep; a schedule or one-off without a future; months that a day of
// the month passes over; dates of the two years after `now` on which clock changes leave a period
// without a fire or with two; a calendar that ends soon or has ended; a lock that does not hold
// what overlap says; back-fill in parallel under strict order; a program named from nowhere.
// An audit that falls together with a fire of its job, where another time of day would not.
std::vector<Finding> FindWarnings(const ResolvedJob& job, absl::Time now);

// When the audit of all jobs looks, in UTC, where the file does not say.
inline constexpr char kStoreAudit[] = "37 * * * *";

// The two audits watch each other, and so must not fall together: an instant of the days after
// `now` at which a job's own audit and that of all jobs (`store_audit`) do. Both must parse.
std::optional<Finding> FindSharedAudit(const std::vector<Job>& jobs, const std::string& store_audit,
                                       absl::Time now);

}  // namespace matins

#endif  // MATINS_JOB_LINT_H_
