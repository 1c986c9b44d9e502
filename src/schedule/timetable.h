// A schedule on the days of a calendar: a fire counts when its nominal local day is a business day.
#ifndef MATINS_SCHEDULE_TIMETABLE_H_
#define MATINS_SCHEDULE_TIMETABLE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "schedule/calendar.h"
#include "schedule/schedule.h"

namespace matins {

// The first fire strictly after `after` on a business day; nothing when the schedule has none.
// OutOfRange when the calendar's coverage ends first: a day that nobody has looked up is never
// taken for a working day. Without a calendar (nullptr) it is Schedule::Next.
absl::StatusOr<std::optional<Fire>> NextOn(const Schedule& schedule, const Calendar* calendar,
                                           absl::Time after);
// The last fire strictly before `before` on a business day; days that the calendar does not cover
// are passed over.
std::optional<Fire> PreviousOn(const Schedule& schedule, const Calendar* calendar,
                               absl::Time before);

}  // namespace matins

#endif  // MATINS_SCHEDULE_TIMETABLE_H_
