#include "schedule/pattern.h"

#include <algorithm>
#include <bit>

namespace matins {
namespace {

// The lowest set bit at or above `from`, the highest at or below it; -1 for none.
int BitFrom(uint64_t bits, int from) {
  bits = from >= 64 ? 0 : bits >> from << from;
  return bits == 0 ? -1 : std::countr_zero(bits);
}
int BitUpTo(uint64_t bits, int to) {
  if (to < 0) return -1;
  bits &= ~uint64_t{0} >> (63 - to);
  return bits == 0 ? -1 : 63 - std::countl_zero(bits);
}
int Lowest(uint64_t bits) { return std::countr_zero(bits); }
int Highest(uint64_t bits) { return 63 - std::countl_zero(bits); }

int WeekdayOf(const Month& month, int day) { return (month.first_weekday + day - 1) % 7; }

// The weekday (Mon-Fri) nearest to `day` that lies in the same month.
int NearestWeekday(const Month& month, int day) {
  const int weekday = WeekdayOf(month, day);
  if (weekday == 6) return day > 1 ? day - 1 : day + 2;
  if (weekday == 0) return day < month.length ? day + 1 : day - 2;
  return day;
}

uint32_t DayBit(int day) { return uint32_t{1} << (day - 1); }

}  // namespace

Matcher::Matcher(const Pattern& pattern) : pattern_(pattern) {
  for (int first = 0; first < 7; ++first) {
    for (int day = 1; day <= 31; ++day) {
      const uint32_t weekday = uint32_t{1} << ((first + day - 1) % 7);
      const WeekDays& week = pattern_.week_days;
      if ((week.weekdays | week.nth[(day - 1) / 7]) & weekday) {
        by_first_weekday_[first] |= DayBit(day);
      }
    }
  }
  const MonthDays& days = pattern_.month_days;
  plain_days_ =
      (days.from_end | days.nearest | days.nearest_from_end | pattern_.week_days.last) == 0;
  every_day_ = plain_days_ && days.days == kAllDays &&
               pattern_.week_days.weekdays == kAllWeekdays && pattern_.months == kAllMonths &&
               pattern_.any_year;
  first_time_ =
      Lowest(pattern_.hours) * 3600 + Lowest(pattern_.minutes) * 60 + Lowest(pattern_.seconds);
  last_time_ =
      Highest(pattern_.hours) * 3600 + Highest(pattern_.minutes) * 60 + Highest(pattern_.seconds);
}

uint32_t Matcher::MonthDayMask(const Month& month) const {
  const MonthDays& set = pattern_.month_days;
  uint32_t mask = set.days;
  for (uint32_t rest = set.from_end; rest != 0; rest &= rest - 1) {
    const int day = month.length - std::countr_zero(rest);
    if (day >= 1) mask |= DayBit(day);
  }
  for (uint32_t rest = set.nearest; rest != 0; rest &= rest - 1) {
    const int day = std::countr_zero(rest) + 1;
    if (day <= month.length) mask |= DayBit(NearestWeekday(month, day));
  }
  for (uint32_t rest = set.nearest_from_end; rest != 0; rest &= rest - 1) {
    const int day = month.length - std::countr_zero(rest);
    if (day >= 1) mask |= DayBit(NearestWeekday(month, day));
  }
  return mask;
}

uint32_t Matcher::WeekDayMask(const Month& month) const {
  uint32_t mask = by_first_weekday_[month.first_weekday];
  if (pattern_.week_days.last == 0) return mask;
  for (int day = month.length - 6; day <= month.length; ++day) {
    if (pattern_.week_days.last >> WeekdayOf(month, day) & 1) mask |= DayBit(day);
  }
  return mask;
}

uint32_t Matcher::DaysOf(int month_index) const {
  const Month& month = MonthTable::Get().at(month_index);
  const uint32_t days = plain_days_ ? pattern_.month_days.days : MonthDayMask(month);
  const uint32_t weekdays =
      plain_days_ ? by_first_weekday_[month.first_weekday] : WeekDayMask(month);
  const uint32_t mask = pattern_.either_day ? days | weekdays : days & weekdays;
  return mask & (kAllDays >> (31 - month.length));
}

bool Matcher::YearMatches(int year) const {
  if (pattern_.any_year) return true;
  return year >= kFirstYear && year <= kLastYear && pattern_.years[year - kFirstYear];
}

int64_t Matcher::NextDay(int64_t day) const {
  if (every_day_) return day;
  const MonthTable& table = MonthTable::Get();
  int index = table.IndexOf(day);
  const int64_t offset = std::max<int64_t>(day - table.at(index).first_day, 0);
  if (offset > 30) return kNever;  // past the table's last month
  uint32_t from = ~uint32_t{0} << offset;
  while (index < MonthTable::kMonths) {
    const int month = index % 12;
    const int next_month = BitFrom(pattern_.months, month);
    if (next_month < 0 || !YearMatches(MonthTable::YearOf(index))) {
      index += 12 - month;
      from = ~uint32_t{0};
      continue;
    }
    if (next_month != month) from = ~uint32_t{0};
    index += next_month - month;
    const uint32_t days = DaysOf(index) & from;
    if (days != 0) return table.at(index).first_day + Lowest(days);
    ++index;
    from = ~uint32_t{0};
  }
  return kNever;
}

int64_t Matcher::PreviousDay(int64_t day) const {
  if (every_day_) return day;
  const MonthTable& table = MonthTable::Get();
  int index = table.IndexOf(day);
  if (day < table.at(index).first_day) return -kNever;
  const int64_t offset = day - table.at(index).first_day;
  uint32_t upto = offset >= 31 ? ~uint32_t{0} : ~uint32_t{0} >> (31 - offset);
  while (index >= 0) {
    const int month = index % 12;
    const int previous_month = BitUpTo(pattern_.months, month);
    if (previous_month < 0 || !YearMatches(MonthTable::YearOf(index))) {
      index -= month + 1;
      upto = ~uint32_t{0};
      continue;
    }
    if (previous_month != month) upto = ~uint32_t{0};
    index -= month - previous_month;
    const uint32_t days = DaysOf(index) & upto;
    if (days != 0) return table.at(index).first_day + Highest(days);
    --index;
    upto = ~uint32_t{0};
  }
  return -kNever;
}

bool Matcher::MatchesDay(int64_t day) const {
  const MonthTable& table = MonthTable::Get();
  const int index = table.IndexOf(day);
  const int64_t offset = day - table.at(index).first_day;
  if (offset < 0 || offset > 30 || !YearMatches(MonthTable::YearOf(index))) return false;
  return (pattern_.months >> (index % 12) & 1) && (DaysOf(index) >> offset & 1);
}

int Matcher::NextTime(int second_of_day) const {
  const int hour = second_of_day / 3600;
  const int minute = second_of_day / 60 % 60;
  const int second = second_of_day % 60;
  if (pattern_.hours >> hour & 1) {
    if (pattern_.minutes >> minute & 1) {
      const int s = BitFrom(pattern_.seconds, second);
      if (s >= 0) return second_of_day - second + s;
    }
    const int m = BitFrom(pattern_.minutes, minute + 1);
    if (m >= 0) return hour * 3600 + m * 60 + Lowest(pattern_.seconds);
  }
  const int h = BitFrom(pattern_.hours, hour + 1);
  if (h < 0) return -1;
  return h * 3600 + Lowest(pattern_.minutes) * 60 + Lowest(pattern_.seconds);
}

int Matcher::PreviousTime(int second_of_day) const {
  const int hour = second_of_day / 3600;
  const int minute = second_of_day / 60 % 60;
  const int second = second_of_day % 60;
  if (pattern_.hours >> hour & 1) {
    if (pattern_.minutes >> minute & 1) {
      const int s = BitUpTo(pattern_.seconds, second);
      if (s >= 0) return second_of_day - second + s;
    }
    const int m = BitUpTo(pattern_.minutes, minute - 1);
    if (m >= 0) return hour * 3600 + m * 60 + Highest(pattern_.seconds);
  }
  const int h = BitUpTo(pattern_.hours, hour - 1);
  if (h < 0) return -1;
  return h * 3600 + Highest(pattern_.minutes) * 60 + Highest(pattern_.seconds);
}

int64_t Matcher::Next(int64_t local) const {
  int64_t day = DayOf(local);
  const int64_t first = NextDay(day);
  if (first == kNever) return kNever;
  if (first == day) {
    const int time = NextTime(static_cast<int>(local - day * kDaySeconds));
    if (time >= 0) return day * kDaySeconds + time;
    day = NextDay(day + 1);
    if (day == kNever) return kNever;
    return day * kDaySeconds + first_time_;
  }
  return first * kDaySeconds + first_time_;
}

int64_t Matcher::Previous(int64_t local) const {
  int64_t day = DayOf(local);
  const int64_t last = PreviousDay(day);
  if (last == -kNever) return -kNever;
  if (last == day) {
    const int time = PreviousTime(static_cast<int>(local - day * kDaySeconds));
    if (time >= 0) return day * kDaySeconds + time;
    day = PreviousDay(day - 1);
    if (day == -kNever) return -kNever;
    return day * kDaySeconds + last_time_;
  }
  return last * kDaySeconds + last_time_;
}

}  // namespace matins
