// A day put in: a Saturday or Sunday on which people work. A schedule that fires alike from Monday
// to Friday means "on working days", so it fires on such a day too, at the same times of day.
#ifndef MATINS_JOB_PUT_IN_H_
#define MATINS_JOB_PUT_IN_H_

#include <optional>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

// A weekend day that the calendar puts in, on which the schedule itself has no fire, and before
// which it fired alike on all five days from Monday to Friday. Needs a calendar.
bool IsPutIn(const ResolvedJob& job, absl::CivilDay day);

// The first fire of the put-in day `day` strictly after `after`, or the last strictly before
// `before`.
std::optional<Fire> NextOnPutIn(const ResolvedJob& job, absl::CivilDay day, absl::Time after);
std::optional<Fire> PreviousOnPutIn(const ResolvedJob& job, absl::CivilDay day, absl::Time before);

}  // namespace matins

#endif  // MATINS_JOB_PUT_IN_H_
