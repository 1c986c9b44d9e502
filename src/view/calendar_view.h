// A job's watermark as months of days in the terminal.
#ifndef MATINS_VIEW_CALENDAR_VIEW_H_
#define MATINS_VIEW_CALENDAR_VIEW_H_

#include <map>
#include <string>

#include "absl/time/civil_time.h"
#include "job/values.h"

namespace matins {

// What a day shows where it holds several periods: the worst of them counts.
enum class DayMark { kNone, kDone, kSkipped, kPlanned, kRunning, kFailed, kHeld };
DayMark MarkOf(const PeriodRow& row);
DayMark Worse(DayMark a, DayMark b);

// Weeks from Monday to Sunday, a month above the other, and a legend. Marks are letters where
// `colour` is false, and letters in colour where it is true.
std::string CalendarText(const std::map<absl::CivilDay, DayMark>& days, bool colour);

}  // namespace matins

#endif  // MATINS_VIEW_CALENDAR_VIEW_H_
