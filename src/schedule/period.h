// From a fire to the slice of business time that its run is for.
#ifndef MATINS_SCHEDULE_PERIOD_H_
#define MATINS_SCHEDULE_PERIOD_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "schedule/calendar.h"
#include "schedule/schedule.h"

namespace matins {

enum class PeriodKind { kFire, kHour, kDay, kWeek, kMonth };

// "-1d", "-1h", "-1w", "-1M", "-1bd", "0d"; the data's time, from the fire's nominal local time. A
// month's shift keeps the day of the month, or takes the month's last where it has no such day.
// Counts up to 1000. Kind hour counts real hours, from the one that the fire falls into.
struct BizShift {
  enum class Unit { kHour, kDay, kWeek, kMonth, kBusinessDay };
  int count = 0;
  Unit unit = Unit::kDay;
  bool operator==(const BizShift&) const = default;
};
absl::StatusOr<BizShift> ParseBizShift(absl::string_view text);
std::string BizShiftText(const BizShift& shift);
// The most days that a shift forward carries the data's day beyond the fire's; 0 for one back.
int ForwardDays(const BizShift& shift);

// Windows of one rule tile without hole or overlap.
struct Period {
  std::string key;  // "2026-10-30", "2026-W44", "2026-10"; hour: its first instant, fire: the
                    // fire's ("2026-11-29T02:00:00Z")
  absl::CivilDay biz_date;  // the day the data belong to; of a week or month, its first day
  absl::Time start;         // [start, end)
  absl::Time end;
  bool operator==(const Period&) const = default;
};

struct PeriodRule {
  PeriodKind kind = PeriodKind::kFire;
  BizShift shift;
  std::optional<Calendar> calendar;  // for -1bd
  absl::TimeZone zone;
};

// The first instant of a local day: midnight, or the end of the gap that swallows it; of a midnight
// that comes twice, the first.
absl::Time DayStart(absl::CivilDay day, const absl::TimeZone& zone);

// The period of `fire`. `previous` is the fire before it (its window's start for kind fire); where
// there is none the window is empty and starts at the fire.
absl::StatusOr<Period> PeriodOf(const PeriodRule& rule, const Fire& fire,
                                std::optional<absl::Time> previous);
// The period with the key `key`, as a person writes it. InvalidArgument when it is no key of this
// kind.
absl::StatusOr<Period> PeriodFromKey(const PeriodRule& rule, absl::string_view key);

}  // namespace matins

#endif  // MATINS_SCHEDULE_PERIOD_H_
