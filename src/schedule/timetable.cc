#include "schedule/timetable.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "schedule/period.h"

namespace matins {
namespace {

// The longest that the clock goes back into a day that it has left.
constexpr absl::Duration kMostRepeat = absl::Hours(4);

// Where to search on after a fire on a day left out: past that day, unless its clock is set back
// soon after midnight, when fires of the day before may come again.
absl::Time PastDay(const Fire& fire, const absl::TimeZone& zone) {
  const absl::CivilDay day(fire.nominal);
  const absl::Time start = DayStart(day, zone);
  const bool steady = zone.At(start).offset == zone.At(start + kMostRepeat).offset;
  const absl::Time last = DayStart(day + 1, zone) - absl::Seconds(1);
  return steady && last > fire.at ? last : fire.at;
}

absl::Status NotCovered(const Calendar& calendar, const Fire& fire) {
  return absl::OutOfRangeError(absl::StrCat(
      "calendar ", calendar.name(), ": the fire of ", FormatDay(absl::CivilDay(fire.nominal)),
      " is past the days that it covers",
      calendar.until().has_value() ? absl::StrCat(", which end on ", FormatDay(*calendar.until()))
                                   : "",
      "; bring its file and its `until` up to date"));
}

}  // namespace

absl::StatusOr<std::optional<Fire>> NextOn(const Schedule& schedule, const Calendar* calendar,
                                           absl::Time after) {
  while (true) {
    const std::optional<Fire> fire = schedule.Next(after);
    if (!fire.has_value() || calendar == nullptr) return fire;
    const absl::CivilDay day(fire->nominal);
    if (!calendar->Covers(day)) return NotCovered(*calendar, *fire);
    if (calendar->IsBusinessDay(day)) return fire;
    after = PastDay(*fire, schedule.zone());
  }
}

std::optional<Fire> PreviousOn(const Schedule& schedule, const Calendar* calendar,
                               absl::Time before) {
  while (true) {
    const std::optional<Fire> fire = schedule.Previous(before);
    if (!fire.has_value() || calendar == nullptr) return fire;
    const absl::CivilDay day(fire->nominal);
    if (calendar->Covers(day) && calendar->IsBusinessDay(day)) return fire;
    before = fire->at;
  }
}

}  // namespace matins
