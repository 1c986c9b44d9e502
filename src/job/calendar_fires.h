// The fires of one version of a job with its calendar applied: days left out fall away, days put in
// fire like a working day (docs/planning.md, "Calendars").
#ifndef MATINS_JOB_CALENDAR_FIRES_H_
#define MATINS_JOB_CALENDAR_FIRES_H_

#include <optional>

#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

struct CalendarFire {
  Fire fire;
  // False: the schedule is due then, but the calendar does not know the day. Nobody can say whether
  // the job fires; planning stops there and says so.
  bool covered = true;
};

// The first strictly after `after`. Bounded: days left out are passed over whole. A one-off (`at`)
// follows no calendar: a person chose the instant.
std::optional<CalendarFire> NextFire(const ResolvedJob& job, absl::Time after);
// The last strictly before `before`, among days that the calendar covers.
std::optional<Fire> PreviousFire(const ResolvedJob& job, absl::Time before);

}  // namespace matins

#endif  // MATINS_JOB_CALENDAR_FIRES_H_
