// From a job's words to their meaning. Pure: the calendar's days are in the job itself.
#ifndef MATINS_JOB_RESOLVE_H_
#define MATINS_JOB_RESOLVE_H_

#include "absl/status/statusor.h"
#include "job/job.h"

namespace matins {

// Parses schedule, zone, calendar and period rule. InvalidArgument with the field, the reason and
// the mend; never fails for a job that ParseJobFile or JobFromJson answered, unless this machine's
// zone data lack the job's zone. Costs about a schedule's parse: keep the answer for a version.
absl::StatusOr<ResolvedJob> ResolveJob(Job job);

// The schedule alone, in `zone`.
absl::StatusOr<Schedule> ResolveSchedule(const Job& job, const absl::TimeZone& zone);

}  // namespace matins

#endif  // MATINS_JOB_RESOLVE_H_
