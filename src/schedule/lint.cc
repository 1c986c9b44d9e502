#include "schedule/lint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "schedule/schedule_impl.h"
#include "schedule/timetable.h"

namespace matins {
namespace {

constexpr const char* kMonthNames[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};

std::string AndJoin(const std::vector<std::string>& items) {
  if (items.size() < 2) return absl::StrJoin(items, "");
  return absl::StrCat(absl::StrJoin(items.begin(), items.end() - 1, ", "), " and ", items.back());
}

// The least distance of two matches within one day; kNever where a day has one alone.
int64_t ShortestWithinDay(const Matcher& matcher, int64_t day) {
  int64_t shortest = Matcher::kNever;
  int64_t last = Matcher::kNever;
  for (int64_t t = matcher.Next(day * kDaySeconds); t < (day + 1) * kDaySeconds;
       t = matcher.Next(t + 1)) {
    if (last != Matcher::kNever) shortest = std::min(shortest, t - last);
    last = t;
  }
  return shortest;
}

std::optional<absl::Duration> ShortestOf(const Matcher& matcher) {
  int64_t t = matcher.Next(MonthTable::Get().at(0).first_day * kDaySeconds);
  int64_t shortest = ShortestWithinDay(matcher, DayOf(t));
  while (shortest > 1) {
    // From the last match of this day to the first of the next one that matches.
    const int64_t next = matcher.Next((DayOf(t) + 1) * kDaySeconds);
    if (next == Matcher::kNever) break;
    shortest = std::min(shortest, next - matcher.Previous(next - 1));
    t = next;
    if (shortest <= kDaySeconds) break;  // no two days lie closer
  }
  if (shortest == Matcher::kNever) return std::nullopt;
  return absl::Seconds(shortest);
}

struct PeriodLength {
  absl::string_view name;
  absl::Duration length;
};

PeriodLength LengthOf(PeriodKind kind) {
  switch (kind) {
    case PeriodKind::kFire:
      return {"fire", absl::InfiniteDuration()};
    case PeriodKind::kHour:
      return {"hour", absl::Hours(1)};
    case PeriodKind::kDay:
      return {"day", absl::Hours(24)};
    case PeriodKind::kWeek:
      return {"week", absl::Hours(24 * 7)};
    case PeriodKind::kMonth:
      break;
  }
  return {"month", absl::Hours(24 * 31)};
}

bool HasAllWeekdays(const Pattern& pattern) { return pattern.week_days.weekdays == kAllWeekdays; }
bool HasAllDays(const Pattern& pattern) { return pattern.month_days.days == kAllDays; }

// In how many of the 28 years after which weekdays and leap years repeat each month has a match.
std::array<int, 12> YearsWithMatch(const Matcher& matcher) {
  constexpr int kFrom = (2001 - MonthTable::kYearZero) * 12;
  std::array<int, 12> years = {};
  for (int i = kFrom; i < kFrom + 28 * 12; ++i) {
    if (matcher.DaysOf(i) != 0) ++years[i % 12];
  }
  return years;
}

void WarnOfMonths(const Matcher& matcher, std::vector<std::string>& warnings) {
  const Pattern& pattern = matcher.pattern();
  if (pattern.either_day) return;  // the weekday field fires in every month
  std::vector<std::string> never, sometimes;
  const std::array<int, 12> years = YearsWithMatch(matcher);
  for (int month = 0; month < 12; ++month) {
    if ((pattern.months >> month & 1) == 0) continue;
    if (years[month] == 0) never.push_back(kMonthNames[month]);
    if (years[month] > 0 && years[month] < 28) sometimes.push_back(kMonthNames[month]);
  }
  if (!never.empty()) {
    warnings.push_back(absl::StrCat("never fires in ", AndJoin(never),
                                    ", which have no such day; the month's last day is L"));
  }
  if (!sometimes.empty()) {
    warnings.push_back(absl::StrCat("does not fire every year in ", AndJoin(sometimes),
                                    ", because the day is not there every year"));
  }
}

void WarnOfDayFields(const ScheduleParts& parts, std::vector<std::string>& warnings) {
  const Pattern& pattern = parts.matcher->pattern();
  if (parts.dialect != Dialect::kVixie5 && parts.dialect != Dialect::kSeconds6) return;
  if (HasAllDays(pattern) || HasAllWeekdays(pattern)) return;
  warnings.push_back(pattern.either_day
                         ? "day of month and day of week are both given: it fires on days that "
                           "match either"
                         : "day of month and day of week are both given and one begins with '*': "
                           "it fires only on days that match both");
}

// "* 9 * * *" is often meant as once at nine.
void WarnOfEachMinute(const Pattern& pattern, std::vector<std::string>& warnings) {
  if (pattern.minutes != kAllSixty || !std::has_single_bit(pattern.hours)) return;
  const int hour = std::countr_zero(pattern.hours);
  warnings.push_back(absl::StrFormat(
      "fires each minute from %02d:00 to %02d:59, 60 times a day; where once is meant, write 0 for "
      "the minute",
      hour, hour));
}

// Collects what LintPeriods tells.
class PeriodLint {
 public:
  PeriodLint(const Schedule& schedule, const PeriodRule& rule, const Calendar* calendar)
      : schedule_(schedule), rule_(rule), calendar_(calendar) {
    base_ = rule;
    base_.shift = BizShift{};
  }

  std::vector<std::string> Run(absl::Time from);

 private:
  std::optional<Fire> Next(absl::Time after);
  Period Base(const Fire& fire) const { return *PeriodOf(base_, fire, std::nullopt); }
  bool IsExpected(const Period& period) const;
  bool DayIsExpected(absl::CivilDay day) const;
  void NoteMissing(const Period& last, const Period& next);
  void NoteShift(const Fire& fire, const Period& base);
  static void Tell(const std::vector<std::string>& keys, absl::string_view what,
                   std::vector<std::string>& warnings);

  const Schedule& schedule_;
  const PeriodRule& rule_;
  const Calendar* const calendar_;
  PeriodRule base_;
  std::vector<std::string> missing_, twice_, shifted_twice_, warnings_;
  size_t once_ = 0;
  std::string last_base_, last_shifted_;
};

std::optional<Fire> PeriodLint::Next(absl::Time after) {
  const absl::StatusOr<std::optional<Fire>> fire = NextOn(schedule_, calendar_, after);
  if (fire.ok()) return *fire;
  if (warnings_.empty()) warnings_.push_back(std::string(fire.status().message()));
  return std::nullopt;
}

bool PeriodLint::DayIsExpected(absl::CivilDay day) const {
  if (calendar_ != nullptr && !(calendar_->Covers(day) && calendar_->IsBusinessDay(day))) {
    return false;
  }
  const ScheduleParts& parts = PartsOf(schedule_);
  return !parts.matcher.has_value() || parts.matcher->MatchesDay(day - absl::CivilDay());
}

// Whether the fields name the period; of weeks and months, whether the month field does.
bool PeriodLint::IsExpected(const Period& period) const {
  const ScheduleParts& parts = PartsOf(schedule_);
  if (rule_.kind == PeriodKind::kDay) return DayIsExpected(period.biz_date);
  if (rule_.kind == PeriodKind::kHour) {
    const int hour = absl::ToCivilHour(period.start, rule_.zone).hour();
    return DayIsExpected(period.biz_date) &&
           (!parts.matcher.has_value() || (parts.matcher->pattern().hours >> hour & 1) != 0);
  }
  const absl::CivilDay end = absl::ToCivilDay(period.end - absl::Seconds(1), rule_.zone);
  for (absl::CivilDay day = period.biz_date; day <= end; ++day) {
    const bool business = calendar_ == nullptr || calendar_->IsBusinessDay(day);
    const bool in_month = !parts.matcher.has_value() ||
                          (parts.matcher->pattern().months >> (day.month() - 1) & 1) != 0;
    if (business && in_month) return true;
  }
  return false;
}

void PeriodLint::NoteMissing(const Period& last, const Period& next) {
  for (Period between = last;;) {
    between = Base({between.end, absl::ToCivilSecond(between.end, rule_.zone)});
    if (between.start >= next.start) return;
    if (IsExpected(between)) missing_.push_back(between.key);
  }
}

void PeriodLint::NoteShift(const Fire& fire, const Period& base) {
  const absl::StatusOr<Period> shifted = PeriodOf(rule_, fire, std::nullopt);
  if (!shifted.ok()) return;
  const bool again = shifted->key == last_shifted_ && base.key != last_base_;
  if (again && (shifted_twice_.empty() || shifted_twice_.back() != shifted->key)) {
    shifted_twice_.push_back(shifted->key);
  }
  last_shifted_ = shifted->key;
  last_base_ = base.key;
}

std::vector<std::string> PeriodLint::Run(absl::Time from) {
  const absl::Time end =
      absl::FromCivil(absl::ToCivilSecond(from, rule_.zone) + int64_t{2} * 366 * 86400, rule_.zone);
  std::optional<Fire> fire = Next(from);
  std::optional<Period> last;
  while (fire.has_value() && fire->at < end) {
    const Period period = Base(*fire);
    if (last.has_value()) NoteMissing(*last, period);
    NoteShift(*fire, period);
    std::optional<Fire> next = Next(fire->at);
    const bool again = next.has_value() && Base(*next).key == period.key;
    if (again) twice_.push_back(period.key);
    if (!again) ++once_;
    // The rest of a period's fires says no more. A fire that the clock moved past its end is last.
    if (again) next = Next(std::max(next->at, period.end - absl::Seconds(1)));
    while (next.has_value() && Base(*next).key == period.key) next = Next(next->at);
    last = period;
    fire = next;
  }
  Tell(missing_, "no fire", warnings_);
  if (once_ > twice_.size()) Tell(twice_, "two fires or more", warnings_);
  Tell(shifted_twice_, "the data of two fires or more", warnings_);
  return warnings_;
}

void PeriodLint::Tell(const std::vector<std::string>& keys, absl::string_view what,
                      std::vector<std::string>& warnings) {
  constexpr size_t kMost = 6;
  if (keys.empty()) return;
  std::vector<std::string> told(keys.begin(), keys.begin() + std::min(keys.size(), kMost));
  if (keys.size() > kMost) told.push_back(absl::StrCat(keys.size() - kMost, " more periods"));
  warnings.push_back(absl::StrCat(AndJoin(told), keys.size() == 1 ? " has " : " have ", what,
                                  " within the next two years"));
}

}  // namespace

std::optional<absl::Duration> ShortestStep(const Schedule& schedule) {
  const ScheduleParts& parts = PartsOf(schedule);
  if (parts.kind == ScheduleKind::kEvery) return absl::Seconds(parts.every_seconds);
  if (!parts.matcher.has_value()) return std::nullopt;
  return ShortestOf(*parts.matcher);
}

absl::Status CheckPeriod(const Schedule& schedule, PeriodKind kind) {
  const std::optional<absl::Duration> step = ShortestStep(schedule);
  const PeriodLength period = LengthOf(kind);
  if (!step.has_value() || period.length >= *step) return absl::OkStatus();
  return BadInput(absl::StrCat("period ", period.name),
                  absl::StrCat("is shorter than the schedule's shortest step, ",
                               DurationText(*step), " (", schedule.Describe(), ")"),
                  "choose a longer period, or period: fire");
}

std::vector<std::string> LintSchedule(const Schedule& schedule) {
  const ScheduleParts& parts = PartsOf(schedule);
  std::vector<std::string> warnings;
  if (parts.kind == ScheduleKind::kNever) warnings.push_back("@reboot never fires by the clock");
  if (!parts.matcher.has_value()) return warnings;
  WarnOfMonths(*parts.matcher, warnings);
  WarnOfDayFields(parts, warnings);
  WarnOfEachMinute(parts.matcher->pattern(), warnings);
  return warnings;
}

std::vector<std::string> LintPeriods(const Schedule& schedule, const PeriodRule& rule,
                                     const Calendar* calendar, absl::Time from) {
  if (rule.kind == PeriodKind::kFire) return {};
  return PeriodLint(schedule, rule, calendar).Run(from);
}

}  // namespace matins
