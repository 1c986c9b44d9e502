#include "job/calendar_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "schedule/calendar.h"

namespace matins {
namespace {

constexpr size_t kMostText = 256 << 10;
constexpr absl::CivilDay kFirst(2000, 1, 1);

bool IsWeekend(absl::CivilDay day) {
  const absl::Weekday weekday = absl::GetWeekday(day);
  return weekday == absl::Weekday::saturday || weekday == absl::Weekday::sunday;
}

// The days that are other than their weekday says. A range of days left out may lie over a weekend,
// which is left out anyway: runs are made of days with the same word alone.
std::string ListDays(const Calendar& calendar, absl::CivilDay until) {
  std::string days;
  for (absl::CivilDay day = kFirst; day <= until; ++day) {
    const bool on = calendar.IsBusinessDay(day);
    if (on != IsWeekend(day)) continue;
    const absl::CivilDay first = day;
    while (day < until && calendar.IsBusinessDay(day + 1) == on && IsWeekend(day + 1) == on) ++day;
    absl::StrAppend(&days, FormatDay(first), first == day ? "" : "..",
                    first == day ? "" : FormatDay(day), on ? " on\n" : " off\n");
  }
  return days;
}

}  // namespace

absl::StatusOr<CalendarData> MakeCalendarData(absl::string_view name, absl::string_view text,
                                              std::optional<absl::CivilDay> until) {
  ASSIGN_OR_RETURN(const Calendar calendar, Calendar::Parse(name, text, until));
  const std::optional<absl::CivilDay> end = calendar.until();
  if (end && end->year() < 2200) return CalendarData{ListDays(calendar, *end), end};
  if (text.size() > kMostText) {
    return BadInput(absl::StrCat("calendar ", name), "it is larger than 256 KiB and has no end",
                    "say how far it goes: until: 2026-12-31");
  }
  return CalendarData{std::string(text), end};
}

}  // namespace matins
