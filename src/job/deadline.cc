#include "job/deadline.h"

namespace matins {

absl::Time DoneByInstant(const ResolvedJob& job, absl::Time due) {
  const DoneBy& done_by = job.job.done_by;
  if (done_by.after_due) return due + *done_by.after_due;
  if (!done_by.time_of_day) return due + job.job.start_deadline + job.job.timeout;
  const absl::TimeZone& zone = job.schedule.zone();
  const int64_t seconds = absl::ToInt64Seconds(*done_by.time_of_day);
  for (absl::CivilDay day = absl::ToCivilDay(due, zone);; ++day) {
    const absl::Time at = absl::FromCivil(absl::CivilSecond(day) + seconds, zone);
    if (at > due) return at;
  }
}

}  // namespace matins
