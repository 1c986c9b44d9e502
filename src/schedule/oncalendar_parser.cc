#include "schedule/oncalendar_parser.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "schedule/field.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

constexpr absl::string_view kForm = "write it like \"Mon..Fri *-*-* 09:00:00 Europe/Berlin\"";

constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
    {"minutely", "*-*-* *:*:00"},
    {"hourly", "*-*-* *:00:00"},
    {"daily", "*-*-* 00:00:00"},
    {"weekly", "Mon *-*-* 00:00:00"},
    {"monthly", "*-*-01 00:00:00"},
    {"quarterly", "*-01,04,07,10-01 00:00:00"},
    {"semiannually", "*-01,07-01 00:00:00"},
    {"semi-annually", "*-01,07-01 00:00:00"},
    {"biannually", "*-01,07-01 00:00:00"},
    {"bi-annually", "*-01,07-01 00:00:00"},
    {"yearly", "*-01-01 00:00:00"},
    {"annually", "*-01-01 00:00:00"},
};

constexpr absl::string_view kWeekdays[] = {"monday", "tuesday",  "wednesday", "thursday",
                                           "friday", "saturday", "sunday"};

absl::string_view WordMeaning(absl::string_view word) {
  for (const auto& [name, meaning] : kWords) {
    if (absl::EqualsIgnoreCase(word, name)) return meaning;
  }
  return "";
}

// 0 is Monday; -1 for no weekday.
int WeekdayIndex(absl::string_view name) {
  for (int i = 0; i < 7; ++i) {
    if (absl::EqualsIgnoreCase(name, kWeekdays[i]) ||
        absl::EqualsIgnoreCase(name, kWeekdays[i].substr(0, 3))) {
      return i;
    }
  }
  return -1;
}

// One number of a date or time. Values are collected by the caller, whatever their range.
struct Component {
  absl::string_view name;
  int min = 0;
  int max = 59;
};

struct Values {
  std::vector<int> values;
  bool wild = false;  // "*" or "0/n"
};

absl::Status ComponentError(const Component& component, absl::string_view item,
                            absl::string_view what) {
  return BadInput(absl::StrCat(component.name, " '", item, "'"), what,
                  absl::StrCat("write ", component.min, "-", component.max,
                               ", a range a..b, a step a/n, or *"));
}

absl::StatusOr<int> ParseNumber(const Component& component, absl::string_view text,
                                absl::string_view item) {
  int value = ParseSmall(text, 9999);
  if (value < 0) return ComponentError(component, item, absl::StrCat("'", text, "' is no number"));
  if (component.min == kFirstYear && text.size() <= 2) value += value < 70 ? 2000 : 1900;
  if (value < component.min || value > component.max) {
    return ComponentError(component, item, absl::StrCat(text, " is out of range"));
  }
  return value;
}

// "a", "a..b", "a/n", "a..b/n".
absl::Status ParseItem(const Component& component, absl::string_view item, Values& out) {
  const size_t slash = item.find('/');
  const absl::string_view base = item.substr(0, slash);
  if (absl::StartsWith(base, "*")) {
    return BadInput(absl::StrCat(component.name, " '", item, "'"),
                    "has '*' beside something else, which OnCalendar does not know",
                    absl::StrCat("write ", component.min, "/n for every n-th, or '*' alone"));
  }
  const size_t dots = base.find("..");
  ASSIGN_OR_RETURN(const int first, ParseNumber(component, base.substr(0, dots), item));
  int last = first;
  if (dots != absl::string_view::npos) {
    ASSIGN_OR_RETURN(last, ParseNumber(component, base.substr(dots + 2), item));
    if (last < first) return ComponentError(component, item, "ends before it begins");
  }
  if (slash == absl::string_view::npos) {
    for (int v = first; v <= last; ++v) out.values.push_back(v);
    return absl::OkStatus();
  }
  const int step = ParseSmall(item.substr(slash + 1), 9999);
  if (step == 0) return ComponentError(component, item, "has a step of 0");
  if (step < 0) return ComponentError(component, item, "has no number after '/'");
  if (dots == absl::string_view::npos) last = component.max;
  if (first + step > last) {
    return ComponentError(component, item, "has a step that reaches no second value");
  }
  for (int v = first; v <= last; v += step) out.values.push_back(v);
  return absl::OkStatus();
}

absl::StatusOr<Values> ParseComponent(const Component& component, absl::string_view text) {
  Values out;
  if (text == "*") {
    out.wild = true;
    for (int v = component.min; v <= component.max; ++v) out.values.push_back(v);
    return out;
  }
  const std::vector<absl::string_view> items = absl::StrSplit(text, ',');
  for (absl::string_view item : items) {
    if (item.empty()) return ComponentError(component, text, "has an empty item");
    RETURN_IF_ERROR(ParseItem(component, item, out));
  }
  out.wild = items.size() == 1 && absl::StrContains(text, '/') &&
             ParseSmall(text.substr(0, text.find('/')), 0) == 0;
  return out;
}

template <typename Bits>
Bits BitsOf(const Values& values, int min) {
  Bits bits = 0;
  for (const int v : values.values) bits |= Bits{1} << (v - min);
  return bits;
}

absl::StatusOr<uint32_t> ParseWeekdays(absl::string_view text) {
  uint32_t bits = 0;
  // "Wed, 17:48" is taken, as systemd does; an empty item elsewhere is not.
  absl::string_view list = text;
  if (list.size() > 1 && list.back() == ',') list.remove_suffix(1);
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    size_t dots = item.find("..");
    size_t width = 2;
    if (dots == absl::string_view::npos) {
      dots = item.find('-');
      width = 1;
    }
    const int first = WeekdayIndex(item.substr(0, dots));
    const int last =
        dots == absl::string_view::npos ? first : WeekdayIndex(item.substr(dots + width));
    if (first < 0 || last < 0) {
      return BadInput(absl::StrCat("day of week '", text, "'"),
                      absl::StrCat("'", item, "' is no weekday and no word like daily or weekly"),
                      "write Mon, Tue, Wed, Thu, Fri, Sat, Sun, a range Mon..Fri or a list");
    }
    if (last < first) {
      return BadInput(absl::StrCat("day of week '", item, "'"), "ends before it begins",
                      "OnCalendar's week runs Mon..Sun; write two ranges, \"Sat,Sun,Mon\"");
    }
    for (int day = first; day <= last; ++day) bits |= uint32_t{1} << ((day + 1) % 7);
  }
  return bits;
}

absl::Status ParseYearsOf(absl::string_view text, Pattern& pattern) {
  if (text == "*") return absl::OkStatus();
  ASSIGN_OR_RETURN(const Values years, ParseComponent({"year", kFirstYear, kLastYear}, text));
  pattern.any_year = false;
  for (const int year : years.values) pattern.years.set(year - kFirstYear);
  return absl::OkStatus();
}

// Days counted from the month's end; a step runs towards the end.
absl::StatusOr<uint32_t> ParseDaysFromEnd(absl::string_view text) {
  const Component component{"day of month", 1, 28};
  uint32_t bits = 0;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const size_t slash = item.find('/');
    if (slash == absl::string_view::npos) {
      ASSIGN_OR_RETURN(const Values days, ParseComponent(component, item));
      bits |= BitsOf<uint32_t>(days, component.min);
      continue;
    }
    ASSIGN_OR_RETURN(const int first, ParseNumber(component, item.substr(0, slash), item));
    const int step = ParseSmall(item.substr(slash + 1), 9999);
    if (step < 1 || step >= first) {
      return ComponentError(component, item, "has a step that reaches no second day");
    }
    for (int day = first; day >= 1; day -= step) bits |= uint32_t{1} << (day - 1);
  }
  return bits;
}

absl::Status ParseDate(absl::string_view text, Pattern& pattern) {
  const std::string where = absl::StrCat("date '", text, "'");
  const size_t tilde = text.find('~');
  absl::string_view day;
  std::vector<absl::string_view> parts = absl::StrSplit(text.substr(0, tilde), '-');
  if (tilde != absl::string_view::npos) {
    day = text.substr(tilde + 1);
  } else {
    day = parts.back();
    parts.pop_back();
  }
  if (parts.empty() || parts.size() > 2) {
    return BadInput(where, "is not year-month-day or month-day", kForm);
  }
  if (parts.size() == 2) RETURN_IF_ERROR(ParseYearsOf(parts[0], pattern));
  ASSIGN_OR_RETURN(const Values months, ParseComponent({"month", 1, 12}, parts.back()));
  pattern.months = BitsOf<uint32_t>(months, 1);
  if (tilde != absl::string_view::npos) {
    pattern.month_days.days = 0;
    ASSIGN_OR_RETURN(pattern.month_days.from_end, ParseDaysFromEnd(day));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Values days, ParseComponent({"day of month", 1, 31}, day));
  pattern.month_days.days = BitsOf<uint32_t>(days, 1);
  return absl::OkStatus();
}

absl::Status ParseTime(absl::string_view text, Pattern& pattern) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    return BadInput(absl::StrCat("time '", text, "'"), "is not hour:minute or hour:minute:second",
                    kForm);
  }
  ASSIGN_OR_RETURN(const Values hours, ParseComponent({"hour", 0, 23}, parts[0]));
  ASSIGN_OR_RETURN(const Values minutes, ParseComponent({"minute", 0, 59}, parts[1]));
  pattern.hours = BitsOf<uint32_t>(hours, 0);
  pattern.minutes = BitsOf<uint64_t>(minutes, 0);
  pattern.interval = hours.wild || minutes.wild;
  if (parts.size() == 3) {
    ASSIGN_OR_RETURN(const Values seconds, ParseComponent({"second", 0, 59}, parts[2]));
    pattern.seconds = BitsOf<uint64_t>(seconds, 0);
    pattern.interval |= seconds.wild;
  }
  return absl::OkStatus();
}

// Blanks part the pieces, and the T of "2026-11-29T02:00".
std::vector<absl::string_view> SplitPieces(absl::string_view text) {
  std::vector<absl::string_view> pieces;
  for (absl::string_view piece :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
    const size_t t = piece.find('T');
    if (t != absl::string_view::npos && absl::ascii_isdigit(piece[0]) && t + 1 < piece.size() &&
        absl::ascii_isdigit(piece[t + 1])) {
      pieces.push_back(piece.substr(0, t));
      pieces.push_back(piece.substr(t + 1));
    } else {
      pieces.push_back(piece);
    }
  }
  return pieces;
}

absl::StatusOr<absl::TimeZone> ParseZone(absl::string_view name) {
  if (absl::EqualsIgnoreCase(name, "UTC")) return absl::UTCTimeZone();
  return LoadZone(name);
}

}  // namespace

bool IsOnCalendarWord(absl::string_view word) { return !WordMeaning(word).empty(); }

absl::StatusOr<CalendarEvent> ParseOnCalendar(absl::string_view text) {
  std::vector<absl::string_view> pieces = SplitPieces(text);
  if (pieces.empty()) return BadInput("schedule", "is empty", kForm);
  CalendarEvent event;
  if (pieces.size() > 1 && absl::ascii_isalpha(pieces.back()[0])) {
    ASSIGN_OR_RETURN(event.zone, ParseZone(pieces.back()));
    pieces.pop_back();
  }
  std::vector<absl::string_view> rest = pieces;
  if (pieces.size() == 1 && IsOnCalendarWord(pieces[0])) rest = SplitPieces(WordMeaning(pieces[0]));

  Pattern& pattern = event.pattern;
  pattern.month_days.days = kAllDays;
  pattern.week_days.weekdays = kAllWeekdays;
  pattern.hours = pattern.minutes = pattern.seconds = 1;
  size_t i = 0;
  if (absl::ascii_isalpha(rest[0][0])) {
    ASSIGN_OR_RETURN(pattern.week_days.weekdays, ParseWeekdays(rest[i++]));
  }
  if (i < rest.size() && !absl::StrContains(rest[i], ':')) {
    RETURN_IF_ERROR(ParseDate(rest[i++], pattern));
  }
  if (i < rest.size()) RETURN_IF_ERROR(ParseTime(rest[i++], pattern));
  if (i < rest.size()) {
    return BadInput(absl::StrCat("schedule '", text, "'"),
                    absl::StrCat("has '", rest[i], "' after its time"), kForm);
  }
  return event;
}

}  // namespace matins
