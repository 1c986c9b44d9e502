// The days that an iCalendar file (RFC 5545) leaves out or puts in.
#ifndef MATINS_SCHEDULE_ICS_H_
#define MATINS_SCHEDULE_ICS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

namespace matins {

// Days from first to last; `on`: business days.
struct DayMark {
  absl::CivilDay first;
  absl::CivilDay last;
  bool on = false;
};

// In the order in which they take effect: days put in come after days left out. Whole-day events
// alone, once or yearly (INTERVAL, COUNT, UNTIL, BYMONTH with BYMONTHDAY or one BYDAY such as 4TH,
// EXDATE). A working day is an event with CATEGORIES:WORKDAY, X-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY
// or a SUMMARY that says workday, working day or (Chinese) to work. Errors: InvalidArgument with
// `where`:line, reason and mend.
absl::StatusOr<std::vector<DayMark>> ParseIcs(absl::string_view where, absl::string_view text);

}  // namespace matins

#endif  // MATINS_SCHEDULE_ICS_H_
