// The deadline of a period: when it is late, for the audit and for lists of jobs.
#ifndef MATINS_JOB_DEADLINE_H_
#define MATINS_JOB_DEADLINE_H_

#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

// The instant by which the period that was due at `due` should be DONE: the next such local time
// after due, a length after it, or where the job names none, its start deadline and its time-out.
absl::Time DoneByInstant(const ResolvedJob& job, absl::Time due);

}  // namespace matins

#endif  // MATINS_JOB_DEADLINE_H_
