// What every dialect is parsed into: the set of local times that match, and the search over it. It
// knows nothing of zones; local time is counted in seconds as if there were no clock changes.
#ifndef MATINS_SCHEDULE_PATTERN_H_
#define MATINS_SCHEDULE_PATTERN_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>

#include "schedule/month_table.h"

namespace matins {

inline constexpr uint64_t kAllSixty = (uint64_t{1} << 60) - 1;
inline constexpr uint32_t kAllHours = (uint32_t{1} << 24) - 1;
inline constexpr uint32_t kAllDays = 0x7fffffff;
inline constexpr uint32_t kAllMonths = 0xfff;
inline constexpr uint32_t kAllWeekdays = 0x7f;

// Days of the month; a day matches when any of the four sets names it.
struct MonthDays {
  uint32_t days = 0;              // bit d - 1: day d
  uint32_t from_end = 0;          // bit k: k days before the last (L, L-3, "~1")
  uint32_t nearest = 0;           // bit d - 1: the weekday (Mon-Fri) nearest to day d, 15W
  uint32_t nearest_from_end = 0;  // bit k: the weekday nearest to k days before the last, LW
};

// Days of the week; bit 0 is Sunday.
struct WeekDays {
  uint32_t weekdays = 0;
  std::array<uint32_t, 5> nth = {};  // [0]: the first of that weekday in the month, FRI#1
  uint32_t last = 0;                 // the last of that weekday in the month, 5L
};

struct Pattern {
  uint64_t seconds = 1;
  uint64_t minutes = 0;
  uint32_t hours = 0;
  uint32_t months = kAllMonths;  // bit 0 is January
  MonthDays month_days;
  WeekDays week_days;
  // Whether a day that matches either day field matches, or only one that matches both.
  bool either_day = false;
  bool any_year = true;
  std::bitset<kLastYear - kFirstYear + 1> years;
  // Follows the wall clock through both passes of a repeated hour (docs/schedules.md).
  bool interval = false;
};

// Immutable; every call is bounded by the 2772 months of the table, whatever the pattern.
class Matcher {
 public:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit Matcher(const Pattern& pattern);

  // The first match at or after `local`, kNever when there is none in the table.
  int64_t Next(int64_t local) const;
  // The last match at or before `local`, -kNever when there is none in the table.
  int64_t Previous(int64_t local) const;
  // Whether the day (since 1970-01-01) has matches.
  bool MatchesDay(int64_t day) const;
  // The days of that month that match; bit d - 1 is day d.
  uint32_t DaysOf(int month_index) const;
  const Pattern& pattern() const { return pattern_; }

 private:
  int64_t NextDay(int64_t day) const;
  int64_t PreviousDay(int64_t day) const;
  int NextTime(int second_of_day) const;
  int PreviousTime(int second_of_day) const;
  bool YearMatches(int year) const;
  uint32_t MonthDayMask(const Month& month) const;
  uint32_t WeekDayMask(const Month& month) const;

  Pattern pattern_;
  bool every_day_;
  bool plain_days_;  // no L, W, nor last weekday: the masks alone decide
  int first_time_;
  int last_time_;
  // By the weekday of the month's first day: its days that the weekday field names.
  std::array<uint32_t, 7> by_first_weekday_ = {};
};

}  // namespace matins

#endif  // MATINS_SCHEDULE_PATTERN_H_
