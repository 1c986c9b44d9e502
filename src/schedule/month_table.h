// The months that schedules live in, laid out once, so that the search for a day needs no calendar
// arithmetic.
#ifndef MATINS_SCHEDULE_MONTH_TABLE_H_
#define MATINS_SCHEDULE_MONTH_TABLE_H_

#include <array>
#include <cstdint>

#include "absl/time/civil_time.h"

namespace matins {

// The years in which schedules fire; around them the table keeps one more year on each side,
// because a local day can lie on the other side of the year's border.
inline constexpr int kFirstYear = 1970;
inline constexpr int kLastYear = 2199;

struct Month {
  int32_t first_day = 0;     // days since 1970-01-01
  int8_t length = 0;         // 28..31
  int8_t first_weekday = 0;  // of its first day; 0 is Sunday
};

// Months are counted from January of kFirstYear - 1. Immutable.
class MonthTable {
 public:
  static constexpr int kYearZero = kFirstYear - 1;
  static constexpr int kMonths = (kLastYear + 2 - kYearZero) * 12;

  static const MonthTable& Get();

  const Month& at(int index) const { return months_[index]; }
  // The month of `day`; a day outside the table counts as its first or last month's.
  int IndexOf(int64_t day) const;
  static int YearOf(int index) { return kYearZero + index / 12; }
  static int MonthOf(int index) { return index % 12 + 1; }

 private:
  MonthTable();
  std::array<Month, kMonths> months_;
};

// Local time as a schedule counts it: seconds since 1970-01-01 00:00:00 on the wall.
inline int64_t LocalSeconds(absl::CivilSecond local) { return local - absl::CivilSecond(1970); }
absl::CivilSecond CivilFromLocal(int64_t local);

inline constexpr int64_t kDaySeconds = 86400;
inline int64_t DayOf(int64_t local) {
  return local >= 0 ? local / kDaySeconds : (local - kDaySeconds + 1) / kDaySeconds;
}

}  // namespace matins

#endif  // MATINS_SCHEDULE_MONTH_TABLE_H_
