#include "schedule/period.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/time.h"
#include "schedule/zone_table.h"

namespace matins {
namespace {

constexpr std::pair<absl::string_view, BizShift::Unit> kUnits[] = {
    {"bd", BizShift::Unit::kBusinessDay},
    {"h", BizShift::Unit::kHour},
    {"d", BizShift::Unit::kDay},
    {"w", BizShift::Unit::kWeek},
    {"M", BizShift::Unit::kMonth}};
constexpr int kMostShift = 1000;
constexpr int64_t kHourSeconds = 3600;

absl::CivilDay MondayOf(absl::CivilDay day) {
  return day - static_cast<int>(absl::GetWeekday(day));  // absl counts weekdays from Monday
}

// ISO 8601: a week belongs to the year of its Thursday.
std::string WeekKey(absl::CivilDay monday) {
  const absl::CivilDay thursday = monday + 3;
  return absl::StrFormat("%04d-W%02d", thursday.year(), (absl::GetYearDay(thursday) - 1) / 7 + 1);
}

std::string MonthKey(absl::CivilMonth month) {
  return absl::StrFormat("%04d-%02d", month.year(), month.month());
}

// The last local hour's border at or before `t`. A clock change may carry the clock over a border,
// so a stretch without one is passed over.
int64_t HourFloor(const ZoneTable& zone, int64_t t) {
  for (int i = zone.IndexOf(t);; --i) {
    const Segment& segment = zone.at(i);
    const int64_t local = t + segment.offset;
    const int64_t past = (local % kHourSeconds + kHourSeconds) % kHourSeconds;
    if (t - past >= segment.start || i == 0) return t - past;
    t = segment.start - 1;
  }
}

// The first local hour's border after `t`.
int64_t HourAfter(const ZoneTable& zone, int64_t t) {
  ++t;
  for (int i = zone.IndexOf(t);; ++i) {
    const int64_t local = t + zone.at(i).offset;
    const int64_t left = (kHourSeconds - local % kHourSeconds) % kHourSeconds;
    if (t + left < zone.at(i + 1).start || i + 1 >= zone.size()) return t + left;
    t = zone.at(i + 1).start;
  }
}

absl::CivilDay LocalDay(absl::Time t, const absl::TimeZone& zone) {
  return absl::ToCivilDay(t, zone);
}

// A month's shift keeps the day where the month has it, and takes its last one otherwise.
absl::CivilDay ShiftMonths(absl::CivilDay day, int count) {
  const absl::CivilMonth month = absl::CivilMonth(day) + count;
  return std::min(absl::CivilDay(month) + (day.day() - 1), absl::CivilDay(month + 1) - 1);
}

absl::StatusOr<absl::CivilDay> ShiftDay(const PeriodRule& rule, absl::CivilSecond nominal) {
  const absl::CivilDay day(nominal);
  switch (rule.shift.unit) {
    case BizShift::Unit::kHour:
      return absl::CivilDay(absl::CivilHour(nominal) + rule.shift.count);
    case BizShift::Unit::kDay:
      return day + rule.shift.count;
    case BizShift::Unit::kWeek:
      return day + rule.shift.count * 7;
    case BizShift::Unit::kMonth:
      return ShiftMonths(day, rule.shift.count);
    case BizShift::Unit::kBusinessDay:
      break;
  }
  if (!rule.calendar.has_value()) {
    return BadInput(absl::StrCat("biz_date ", BizShiftText(rule.shift)),
                    "counts business days and the job has no calendar", "give the job a calendar");
  }
  return rule.calendar->Offset(day, rule.shift.count);
}

Period DaysPeriod(std::string key, absl::CivilDay first, absl::CivilDay next,
                  const absl::TimeZone& zone) {
  return {std::move(key), first, DayStart(first, zone), DayStart(next, zone)};
}

Period PeriodOfDay(PeriodKind kind, absl::CivilDay day, const absl::TimeZone& zone) {
  if (kind == PeriodKind::kWeek) {
    const absl::CivilDay monday = MondayOf(day);
    return DaysPeriod(WeekKey(monday), monday, monday + 7, zone);
  }
  if (kind == PeriodKind::kMonth) {
    const absl::CivilMonth month(day);
    return DaysPeriod(MonthKey(month), absl::CivilDay(month), absl::CivilDay(month + 1), zone);
  }
  return DaysPeriod(FormatDay(day), day, day + 1, zone);
}

Period HourPeriod(int64_t start, const absl::TimeZone& zone, const ZoneTable& table) {
  const absl::Time at = absl::FromUnixSeconds(start);
  return {FormatInstant(at), LocalDay(at, zone), at,
          absl::FromUnixSeconds(HourAfter(table, start))};
}

// Real hours, because a repeated hour has two of them under one name on the wall.
absl::StatusOr<Period> HourPeriodOf(const PeriodRule& rule, const Fire& fire) {
  const ZoneTable& table = ZoneTable::Of(rule.zone);
  int64_t start = HourFloor(table, absl::ToUnixSeconds(fire.at));
  if (rule.shift.unit == BizShift::Unit::kHour) {
    for (int i = rule.shift.count; i < 0; ++i) start = HourFloor(table, start - 1);
    for (int i = rule.shift.count; i > 0; --i) start = HourAfter(table, start);
    return HourPeriod(start, rule.zone, table);
  }
  const absl::CivilSecond local = absl::ToCivilSecond(absl::FromUnixSeconds(start), rule.zone);
  ASSIGN_OR_RETURN(const absl::CivilDay day, ShiftDay(rule, local));
  if (day != absl::CivilDay(local)) {
    const absl::CivilSecond shifted(day.year(), day.month(), day.day(), local.hour());
    start = HourFloor(table, absl::ToUnixSeconds(absl::FromCivil(shifted, rule.zone)));
  }
  return HourPeriod(start, rule.zone, table);
}

absl::Status KeyError(absl::string_view key, absl::string_view form) {
  return BadInput(absl::StrCat("period '", key, "'"), "is no key of this job's periods",
                  absl::StrCat("write it like ", form));
}

absl::StatusOr<Period> WeekFromKey(const PeriodRule& rule, absl::string_view key) {
  int year = 0, week = 0;
  const bool form = key.size() == 8 && key.substr(4, 2) == "-W" &&
                    absl::SimpleAtoi(key.substr(0, 4), &year) &&
                    absl::SimpleAtoi(key.substr(6), &week) && week >= 1;
  if (form) {
    // The 4th of January is always in week 1.
    const absl::CivilDay monday = MondayOf(absl::CivilDay(year, 1, 4)) + (week - 1) * 7;
    if (WeekKey(monday) == key) return PeriodOfDay(PeriodKind::kWeek, monday, rule.zone);
  }
  return KeyError(key, "2026-W44");
}

absl::StatusOr<Period> InstantFromKey(const PeriodRule& rule, absl::string_view key) {
  const absl::StatusOr<absl::Time> at = ParseInstant(key);
  if (!at.ok()) return KeyError(key, "2026-11-29T02:00:00Z");
  if (rule.kind == PeriodKind::kFire) {
    return PeriodOf(rule, {*at, absl::ToCivilSecond(*at, rule.zone)}, std::nullopt);
  }
  const ZoneTable& table = ZoneTable::Of(rule.zone);
  const int64_t start = HourFloor(table, absl::ToUnixSeconds(*at));
  if (absl::FromUnixSeconds(start) != *at) {
    return KeyError(key, absl::StrCat(FormatInstant(absl::FromUnixSeconds(start)),
                                      ", the first instant of an hour"));
  }
  return HourPeriod(start, rule.zone, table);
}

}  // namespace

absl::Time DayStart(absl::CivilDay day, const absl::TimeZone& zone) {
  const absl::TimeZone::TimeInfo info = zone.At(absl::CivilSecond(day));
  return info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
}

absl::StatusOr<BizShift> ParseBizShift(absl::string_view text) {
  const absl::Status error =
      BadInput(absl::StrCat("biz_date '", text, "'"), "is no shift",
               "write 0d, -1d, -1h, -1w, -1M, or -1bd for the business day before");
  absl::string_view rest = text;
  const int sign = absl::ConsumePrefix(&rest, "-") ? -1 : 1;
  for (const auto& [suffix, unit] : kUnits) {
    if (!absl::ConsumeSuffix(&rest, suffix)) continue;
    int count = 0;
    const bool digits = !rest.empty() && rest.find_first_not_of("0123456789") == rest.npos;
    if (!digits || !absl::SimpleAtoi(rest, &count) || count > kMostShift) return error;
    return BizShift{sign * count, unit};
  }
  return error;
}

std::string BizShiftText(const BizShift& shift) {
  for (const auto& [suffix, unit] : kUnits) {
    if (unit == shift.unit) return absl::StrCat(shift.count, suffix);
  }
  return "";
}

int ForwardDays(const BizShift& shift) {
  if (shift.count <= 0) return 0;
  switch (shift.unit) {
    case BizShift::Unit::kHour:
      return shift.count / 24 + 1;
    case BizShift::Unit::kDay:
      return shift.count;
    case BizShift::Unit::kWeek:
      return 7 * shift.count;
    case BizShift::Unit::kMonth:
      return 31 * shift.count;
    case BizShift::Unit::kBusinessDay:
      return 7 * shift.count + 31;
  }
  return 0;
}

absl::StatusOr<Period> PeriodOf(const PeriodRule& rule, const Fire& fire,
                                std::optional<absl::Time> previous) {
  if (rule.kind == PeriodKind::kHour) return HourPeriodOf(rule, fire);
  ASSIGN_OR_RETURN(const absl::CivilDay day, ShiftDay(rule, fire.nominal));
  if (rule.kind == PeriodKind::kFire) {
    return Period{FormatInstant(fire.at), day, previous.value_or(fire.at), fire.at};
  }
  return PeriodOfDay(rule.kind, day, rule.zone);
}

absl::StatusOr<Period> PeriodFromKey(const PeriodRule& rule, absl::string_view key) {
  switch (rule.kind) {
    case PeriodKind::kFire:
    case PeriodKind::kHour:
      return InstantFromKey(rule, key);
    case PeriodKind::kWeek:
      return WeekFromKey(rule, key);
    case PeriodKind::kDay:
    case PeriodKind::kMonth:
      break;
  }
  const bool month = rule.kind == PeriodKind::kMonth;
  const absl::StatusOr<absl::CivilDay> day =
      ParseDay(month ? absl::StrCat(key, "-01") : std::string(key));
  if (!day.ok()) return KeyError(key, month ? "2026-10" : "2026-10-30");
  return PeriodOfDay(rule.kind, *day, rule.zone);
}

}  // namespace matins
