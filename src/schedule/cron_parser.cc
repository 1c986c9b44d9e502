#include "schedule/cron_parser.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "schedule/field.h"

namespace matins {
namespace {

constexpr absl::string_view kMonthNames[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                             "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr absl::string_view kDayNames[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

FieldForm SecondForm() { return {"second", 0, 59, 59, {}, true}; }
FieldForm MinuteForm() { return {"minute", 0, 59, 59, {}, true}; }
FieldForm HourForm() { return {"hour", 0, 23, 23, {}, true}; }
FieldForm DayForm() { return {"day of month", 1, 31, 31, {}, true}; }
FieldForm MonthForm() { return {"month", 1, 12, 12, kMonthNames, true}; }
FieldForm YearForm() { return {"year", kFirstYear, kLastYear, kLastYear, {}, false}; }
FieldForm WeekdayForm(Dialect dialect) {
  if (dialect == Dialect::kQuartz) return {"day of week", 1, 7, 7, kDayNames, true};
  return {"day of week", 0, 6, 7, kDayNames, true};
}

struct Fields {
  absl::string_view second = "0", minute, hour, day, month, weekday, year = "*";
};

absl::StatusOr<Fields> SplitFields(absl::string_view text, Dialect dialect) {
  const std::vector<absl::string_view> parts =
      absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
  constexpr absl::string_view kMend =
      "write 5 fields (minute hour day-of-month month day-of-week), 6 with seconds first, or 7 "
      "with seconds and year (Quartz)";
  if (parts.empty()) return BadInput("schedule", "is empty", kMend);
  if (absl::StartsWith(parts[0], "TZ=") || absl::StartsWith(parts[0], "CRON_TZ=")) {
    return BadInput(absl::StrCat("schedule '", text, "'"), "has a zone inside the expression",
                    "take it out and give the zone as the job's timezone");
  }
  const size_t least = dialect == Dialect::kVixie5 ? 5 : 6;
  const size_t most = dialect == Dialect::kQuartz ? 7 : least;
  if (parts.size() < least || parts.size() > most) {
    return BadInput(absl::StrCat("schedule '", text, "'"),
                    absl::StrCat("has ", parts.size(), " fields where this dialect has ", least,
                                 most > least ? " or 7" : ""),
                    kMend);
  }
  Fields fields;
  size_t i = 0;
  if (dialect != Dialect::kVixie5) fields.second = parts[i++];
  fields.minute = parts[i++];
  fields.hour = parts[i++];
  fields.day = parts[i++];
  fields.month = parts[i++];
  fields.weekday = parts[i++];
  if (i < parts.size()) fields.year = parts[i];
  return fields;
}

// Items that are no plain values: L, L-3, LW, 15W, FRI#2, 5L. False: not such an item.
absl::StatusOr<bool> ParseSpecialDay(absl::string_view item, MonthDays& days) {
  const std::string where = absl::StrCat("day of month '", item, "'");
  constexpr absl::string_view kMend =
      "write L, L-1 to L-30, LW, or 1W to 31W, without range and step";
  std::string text = absl::AsciiStrToUpper(item);
  absl::string_view rest = text;
  const bool nearest = absl::ConsumeSuffix(&rest, "W");
  if (absl::ConsumePrefix(&rest, "L")) {
    int back = 0;
    if (absl::ConsumePrefix(&rest, "-")) {
      back = ParseSmall(rest, 30);
      if (back < 0) return BadInput(where, "counts no days 0-30 before the month's last", kMend);
    } else if (!rest.empty()) {
      return BadInput(where, "is no day", kMend);
    }
    (nearest ? days.nearest_from_end : days.from_end) |= uint32_t{1} << back;
    return true;
  }
  if (!nearest) return false;
  const int day = ParseSmall(rest, 31);
  if (day < 1) return BadInput(where, "names no day 1-31 before W", kMend);
  days.nearest |= uint32_t{1} << (day - 1);
  return true;
}

absl::StatusOr<bool> ParseSpecialWeekday(const FieldForm& form, absl::string_view item,
                                         WeekDays& week) {
  const auto bit = [&](int value) { return uint32_t{1} << ((value - form.min) % 7); };
  const size_t hash = item.find('#');
  if (hash != absl::string_view::npos) {
    ASSIGN_OR_RETURN(const int value, ParseValue(form, item.substr(0, hash), item));
    const int nth = ParseSmall(item.substr(hash + 1), 5);
    if (nth < 1) {
      return BadInput(absl::StrCat(form.name, " '", item, "'"), "names no weekday 1-5 of the month",
                      "write fri#1 to fri#5; the last one is written friL");
    }
    week.nth[nth - 1] |= bit(value);
    return true;
  }
  if (absl::EqualsIgnoreCase(item, "L")) {
    week.weekdays |= bit(form.min + 6);
    return true;
  }
  if (item.size() < 2 || (item.back() != 'L' && item.back() != 'l')) return false;
  ASSIGN_OR_RETURN(const int value, ParseValue(form, item.substr(0, item.size() - 1), item));
  week.last |= bit(value);
  return true;
}

// Splits a day field into its special items, given to `special`, and the plain rest.
template <typename Special>
absl::StatusOr<uint64_t> ParseDayField(const FieldForm& form, absl::string_view text,
                                       Dialect dialect, Special special) {
  std::vector<absl::string_view> plain;
  bool any_special = false;
  size_t items = 0;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    ++items;
    ASSIGN_OR_RETURN(const bool is_special, special(item));
    any_special |= is_special;
    if (!is_special) plain.push_back(item);
  }
  if (any_special && items > 1 && dialect == Dialect::kQuartz) {
    return BadInput(absl::StrCat(form.name, " '", text, "'"),
                    "has L, W or # in a list, which Quartz does not know",
                    "write it alone, or use 6 fields without '?'");
  }
  if (plain.empty()) return 0;
  ASSIGN_OR_RETURN(const FieldSet set, ParseField(form, absl::StrJoin(plain, ",")));
  return set.bits;
}

bool IsStarred(absl::string_view field) {
  return absl::StartsWith(field, "*") || absl::StartsWith(field, "?");
}

absl::Status ParseDays(const Fields& fields, Dialect dialect, Pattern& pattern) {
  if (dialect == Dialect::kQuartz && (fields.day == "?") == (fields.weekday == "?")) {
    return BadInput(
        absl::StrCat("day of month '", fields.day, "', day of week '", fields.weekday, "'"),
        "Quartz wants '?' in exactly one of the two", "write '?' in the one not used");
  }
  if (fields.day == "?") {
    pattern.month_days.days = kAllDays;
  } else {
    ASSIGN_OR_RETURN(const uint64_t days,
                     ParseDayField(DayForm(), fields.day, dialect, [&](absl::string_view item) {
                       return ParseSpecialDay(item, pattern.month_days);
                     }));
    pattern.month_days.days |= static_cast<uint32_t>(days);
  }
  const FieldForm form = WeekdayForm(dialect);
  if (fields.weekday == "?") {
    pattern.week_days.weekdays = kAllWeekdays;
  } else {
    ASSIGN_OR_RETURN(const uint64_t days,
                     ParseDayField(form, fields.weekday, dialect, [&](absl::string_view item) {
                       return ParseSpecialWeekday(form, item, pattern.week_days);
                     }));
    pattern.week_days.weekdays |= static_cast<uint32_t>(days);
  }
  pattern.either_day = !IsStarred(fields.day) && !IsStarred(fields.weekday);
  return absl::OkStatus();
}

absl::Status ParseYears(absl::string_view text, Pattern& pattern) {
  const FieldForm form = YearForm();
  if (text == "*") return absl::OkStatus();
  pattern.any_year = false;
  // Years are too many for FieldSet's bits, so each item's range is read here.
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> stepped =
        absl::StrSplit(item, absl::MaxSplits('/', 1));
    const bool has_step = absl::StrContains(item, '/');
    const int step = has_step ? ParseSmall(stepped.second, kLastYear - kFirstYear) : 1;
    if (step < 1) {
      return BadInput(absl::StrCat("year '", item, "'"), "has no step of 1 or more after '/'",
                      "write it like 2026/2");
    }
    int first = kFirstYear, last = kLastYear;
    if (stepped.first != "*") {
      const std::pair<absl::string_view, absl::string_view> range =
          absl::StrSplit(stepped.first, absl::MaxSplits('-', 1));
      ASSIGN_OR_RETURN(first, ParseValue(form, range.first, item));
      if (absl::StrContains(stepped.first, '-')) {
        ASSIGN_OR_RETURN(last, ParseValue(form, range.second, item));
      } else if (!has_step) {
        last = first;
      }
    }
    if (last < first) {
      return BadInput(absl::StrCat("year '", item, "'"), "ends before it begins",
                      "write the earlier year first");
    }
    for (int year = first; year <= last; year += step) pattern.years.set(year - kFirstYear);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pattern> ParseCron(absl::string_view text, Dialect dialect) {
  ASSIGN_OR_RETURN(const Fields fields, SplitFields(text, dialect));
  ASSIGN_OR_RETURN(const FieldSet second, ParseField(SecondForm(), fields.second));
  ASSIGN_OR_RETURN(const FieldSet minute, ParseField(MinuteForm(), fields.minute));
  ASSIGN_OR_RETURN(const FieldSet hour, ParseField(HourForm(), fields.hour));
  ASSIGN_OR_RETURN(const FieldSet month, ParseField(MonthForm(), fields.month));
  Pattern pattern;
  pattern.seconds = second.bits;
  pattern.minutes = minute.bits;
  pattern.hours = static_cast<uint32_t>(hour.bits);
  pattern.months = static_cast<uint32_t>(month.bits);
  RETURN_IF_ERROR(ParseDays(fields, dialect, pattern));
  RETURN_IF_ERROR(ParseYears(fields.year, pattern));
  const auto wild = [&](const FieldSet& set) {
    return set.star || (dialect != Dialect::kVixie5 && set.zero_step);
  };
  pattern.interval = wild(minute) || wild(hour) || wild(second);
  return pattern;
}

}  // namespace matins
