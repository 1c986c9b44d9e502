#include "schedule/month_table.h"

#include <algorithm>

namespace matins {

MonthTable::MonthTable() {
  const absl::CivilDay epoch(1970, 1, 1);
  absl::CivilMonth month(kYearZero, 1);
  for (Month& entry : months_) {
    const absl::CivilDay first(month);
    entry.first_day = static_cast<int32_t>(first - epoch);
    entry.length = static_cast<int8_t>(absl::CivilDay(month + 1) - first);
    // absl counts weekdays from Monday, cron from Sunday.
    entry.first_weekday = static_cast<int8_t>((static_cast<int>(absl::GetWeekday(first)) + 1) % 7);
    ++month;
  }
}

const MonthTable& MonthTable::Get() {
  static const MonthTable* const table = new MonthTable();
  return *table;
}

int MonthTable::IndexOf(int64_t day) const {
  const int64_t since = day - months_.front().first_day;
  if (since < 0) return 0;
  // 65536 / 30.4369 days a month: never more than one month beside the right one.
  int64_t index = std::min<int64_t>(since * 2153 / 65536, kMonths - 1);
  while (index > 0 && months_[index].first_day > day) --index;
  while (index + 1 < kMonths && months_[index + 1].first_day <= day) ++index;
  return static_cast<int>(index);
}

absl::CivilSecond CivilFromLocal(int64_t local) {
  const int64_t day = DayOf(local);
  const int second = static_cast<int>(local - day * kDaySeconds);
  const MonthTable& table = MonthTable::Get();
  const int index = table.IndexOf(day);
  return absl::CivilSecond(MonthTable::YearOf(index), MonthTable::MonthOf(index),
                           day - table.at(index).first_day + 1, second / 3600, second / 60 % 60,
                           second % 60);
}

}  // namespace matins
