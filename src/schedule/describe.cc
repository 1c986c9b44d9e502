#include "schedule/describe.h"

#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/time.h"

namespace matins {
namespace {

constexpr const char* kDayNames[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                     "Thursday", "Friday", "Saturday"};
constexpr const char* kMonthNames[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
constexpr const char* kNth[] = {"first", "second", "third", "fourth", "fifth"};
// More clock times than this are told as a rule instead of a list.
constexpr int kMostTimes = 6;

// "a, b and c".
std::string Join(const std::vector<std::string>& items) {
  if (items.size() < 2) return absl::StrJoin(items, "");
  const std::vector<std::string> head(items.begin(), items.end() - 1);
  return absl::StrCat(absl::StrJoin(head, ", "), " and ", items.back());
}

// The set bits as names, runs of three and more as "first to last".
template <typename Name>
std::vector<std::string> Runs(uint64_t bits, Name name) {
  std::vector<std::string> items;
  while (bits != 0) {
    const int first = std::countr_zero(bits);
    const int length = std::countr_one(bits >> first);
    if (length >= 3) {
      items.push_back(absl::StrCat(name(first), " to ", name(first + length - 1)));
    } else {
      for (int i = 0; i < length; ++i) items.push_back(name(first + i));
    }
    bits &= first + length >= 64 ? 0 : ~uint64_t{0} << (first + length);
  }
  return items;
}

// The step when `bits` is {0, n, 2n, ...} up to `count`, at least three of them; else 0.
int StepOf(uint64_t bits, int count) {
  if ((bits & 1) == 0 || std::popcount(bits) < 3) return 0;
  const int step = std::countr_zero(bits & ~uint64_t{1});
  uint64_t wanted = 0;
  for (int v = 0; v < count; v += step) wanted |= uint64_t{1} << v;
  return bits == wanted ? step : 0;
}

// "every minute", "every 5 minutes", "minute 5", "minutes 0, 20 and 40".
std::string Part(uint64_t bits, int count, absl::string_view unit) {
  const int step = StepOf(bits, count);
  if (step == 1) return absl::StrCat("every ", unit);
  if (step > 1) {
    return absl::StrCat("every ", step, " ", unit, "s", count % step == 0 ? "" : " from 0");
  }
  return absl::StrCat(unit, std::popcount(bits) == 1 ? " " : "s ",
                      Join(Runs(bits, [](int v) { return absl::StrCat(v); })));
}

std::string ClockTimes(const Pattern& pattern) {
  std::vector<std::string> times;
  for (int hour = 0; hour < 24; ++hour) {
    for (int minute = 0; minute < 60; ++minute) {
      for (int second = 0; second < 60; ++second) {
        if ((pattern.hours >> hour & 1) == 0 || (pattern.minutes >> minute & 1) == 0 ||
            (pattern.seconds >> second & 1) == 0) {
          continue;
        }
        times.push_back(pattern.seconds == 1
                            ? absl::StrFormat("%02d:%02d", hour, minute)
                            : absl::StrFormat("%02d:%02d:%02d", hour, minute, second));
      }
    }
  }
  return absl::StrCat("at ", Join(times));
}

std::string Times(const Pattern& pattern) {
  const int count = std::popcount(pattern.hours) * std::popcount(pattern.minutes) *
                    std::popcount(pattern.seconds);
  if (count <= kMostTimes) return ClockTimes(pattern);
  std::vector<std::string> parts;
  if (pattern.seconds != 1) parts.push_back(Part(pattern.seconds, 60, "second"));
  if (pattern.seconds != kAllSixty || pattern.minutes != kAllSixty) {
    parts.push_back(Part(pattern.minutes, 60, "minute"));
  }
  const int minute_step = StepOf(pattern.minutes, 60);
  if (pattern.hours != kAllHours || minute_step == 0 || 60 % minute_step != 0) {
    parts.push_back(Part(pattern.hours, 24, "hour"));
  }
  const std::string text = absl::StrJoin(parts, " of ");
  return text.substr(0, 5) == "every" ? text : absl::StrCat("at ", text);
}

std::string MonthDayText(const MonthDays& set) {
  std::vector<std::string> items;
  if (set.days != 0) {
    const std::vector<std::string> days = Runs(set.days, [](int v) { return absl::StrCat(v + 1); });
    items.push_back(absl::StrCat("day ", Join(days), " of the month"));
  }
  for (int k = 0; k < 31; ++k) {
    const auto has = [&](uint32_t bits) { return (bits >> k & 1) != 0; };
    const std::string end =
        k == 0 ? "the month's last day" : absl::StrCat("the day ", k, " before the month's last");
    if (has(set.from_end)) items.push_back(end);
    if (has(set.nearest)) items.push_back(absl::StrCat("the working day nearest to day ", k + 1));
    if (has(set.nearest_from_end)) {
      items.push_back(k == 0 ? "the month's last working day"
                             : absl::StrCat("the working day nearest to ", end));
    }
  }
  return Join(items);
}

std::string WeekDayText(const WeekDays& week) {
  // Runs read better from Monday.
  const uint32_t from_monday = (week.weekdays >> 1 | week.weekdays << 6) & kAllWeekdays;
  std::vector<std::string> items =
      Runs(from_monday, [](int v) { return std::string(kDayNames[(v + 1) % 7]); });
  for (int day = 0; day < 7; ++day) {
    for (int n = 0; n < 5; ++n) {
      if (week.nth[n] >> day & 1) {
        items.push_back(absl::StrCat("the month's ", kNth[n], " ", kDayNames[day]));
      }
    }
    if (week.last >> day & 1) items.push_back(absl::StrCat("the month's last ", kDayNames[day]));
  }
  return Join(items);
}

std::string Days(const Pattern& pattern) {
  const bool all_days = pattern.month_days.days == kAllDays;
  const bool all_weekdays = pattern.week_days.weekdays == kAllWeekdays;
  std::string text;
  if (all_days && all_weekdays) {
    text = "every day";
  } else if (pattern.either_day) {
    text = absl::StrCat("on ", MonthDayText(pattern.month_days), " or on ",
                        WeekDayText(pattern.week_days));
  } else if (all_days) {
    text = absl::StrCat("on ", WeekDayText(pattern.week_days));
  } else if (all_weekdays) {
    text = absl::StrCat("on ", MonthDayText(pattern.month_days));
  } else {
    text = absl::StrCat("on ", MonthDayText(pattern.month_days), " where that is ",
                        WeekDayText(pattern.week_days));
  }
  if (pattern.months != kAllMonths) {
    const auto name = [](int v) { return std::string(kMonthNames[v]); };
    absl::StrAppend(&text, " in ", Join(Runs(pattern.months, name)));
  }
  if (!pattern.any_year) {
    std::vector<std::string> years;
    for (int year = kFirstYear; year <= kLastYear; ++year) {
      if (!pattern.years[year - kFirstYear]) continue;
      int last = year;
      while (last < kLastYear && pattern.years[last + 1 - kFirstYear]) ++last;
      years.push_back(last > year ? absl::StrCat(year, " to ", last) : absl::StrCat(year));
      year = last;
    }
    absl::StrAppend(&text, " of ", Join(years));
  }
  return text;
}

}  // namespace

std::string DescribeParts(const ScheduleParts& parts) {
  switch (parts.kind) {
    case ScheduleKind::kEvery:
      return absl::StrCat("every ", DurationText(absl::Seconds(parts.every_seconds)),
                          ", counted from 1970-01-01T00:00:00Z");
    case ScheduleKind::kOnce:
      return absl::StrCat("once, at ", FormatLocal(parts.once, parts.zone));
    case ScheduleKind::kNever:
      return "at boot, never by the clock";
    case ScheduleKind::kPattern:
      break;
  }
  const Pattern& pattern = parts.matcher->pattern();
  const std::string times = Times(pattern);
  const std::string days = Days(pattern);
  const bool every = pattern.hours == kAllHours && days == "every day";
  return absl::StrCat(times, every ? "" : " ", every ? "" : days, ", ", parts.zone.name());
}

}  // namespace matins
