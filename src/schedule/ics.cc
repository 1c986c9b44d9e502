#include "schedule/ics.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "schedule/month_table.h"

namespace matins {
namespace {

// A content line after unfolding: NAME;PARAM=...:VALUE.
struct ContentLine {
  int number = 0;
  std::string name;    // upper case
  std::string params;  // upper case
  std::string value;
};

struct YearlyRule {
  bool yearly = false;
  int interval = 1;
  int count = 0;  // 0: endless
  std::optional<absl::CivilDay> until;
  int month = 0;      // 0: the event's own
  int month_day = 0;  // 0: the event's own
  int nth = 0;        // BYDAY: 1..5, -1 the last; 0: none
  absl::Weekday weekday = absl::Weekday::monday;
};

struct Event {
  int line = 0;
  std::optional<absl::CivilDay> start;
  std::optional<absl::CivilDay> end;  // exclusive
  YearlyRule rule;
  std::vector<absl::CivilDay> except;
  bool on = false;
  bool cancelled = false;
};

class Parser {
 public:
  explicit Parser(absl::string_view where) : where_(where) {}

  absl::StatusOr<std::vector<DayMark>> Parse(absl::string_view text);

 private:
  absl::Status Error(int line, absl::string_view what, absl::string_view mend) const {
    return BadInput(absl::StrCat(where_, ":", line), what, mend);
  }
  absl::Status Property(const ContentLine& line, Event& event) const;
  absl::StatusOr<absl::CivilDay> Day(int line, absl::string_view value) const;
  absl::StatusOr<YearlyRule> Rule(const ContentLine& line) const;
  absl::Status RulePart(const ContentLine& line, absl::string_view key, absl::string_view value,
                        YearlyRule& rule) const;
  absl::Status Finish(const Event& event);

  const std::string where_;
  std::vector<DayMark> off_;
  std::vector<DayMark> on_;
};

std::vector<ContentLine> Unfold(absl::string_view text) {
  std::vector<std::pair<int, std::string>> raw;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!raw.empty() && !line.empty() && (line[0] == ' ' || line[0] == '\t')) {
      raw.back().second.append(line.data() + 1, line.size() - 1);
    } else if (!line.empty()) {
      raw.emplace_back(number, line);
    }
  }
  std::vector<ContentLine> lines;
  for (const auto& [at, line] : raw) {
    const size_t colon = line.find(':');
    const std::string head = absl::AsciiStrToUpper(line.substr(0, colon));
    const size_t semicolon = head.find(';');
    lines.push_back({at, head.substr(0, semicolon),
                     semicolon == std::string::npos ? "" : head.substr(semicolon),
                     colon == std::string::npos ? "" : line.substr(colon + 1)});
  }
  return lines;
}

bool SaysWorkingDay(absl::string_view summary) {
  const std::string text = absl::AsciiStrToLower(summary);
  for (const char* no :
       {"non-working", "nonworking", "non working", "no working", "not a working"}) {
    if (absl::StrContains(text, no)) return false;
  }
  for (const char* yes : {"workday", "working day", "上班", "补班", "補班", "(班)", "（班）"}) {
    if (absl::StrContains(text, yes)) return true;
  }
  return false;
}

absl::StatusOr<absl::CivilDay> Parser::Day(int line, absl::string_view value) const {
  int year, month, day;
  if (value.size() == 8 && absl::SimpleAtoi(value.substr(0, 4), &year) &&
      absl::SimpleAtoi(value.substr(4, 2), &month) && absl::SimpleAtoi(value.substr(6), &day)) {
    const absl::CivilDay found(year, month, day);
    if (found.year() == year && found.month() == month && found.day() == day) return found;
  }
  return Error(line, absl::StrCat("'", value, "' is no whole day"),
               "write a day like DTSTART;VALUE=DATE:20261001; events with a time of day are not "
               "days off");
}

absl::Status Parser::RulePart(const ContentLine& line, absl::string_view key,
                              absl::string_view value, YearlyRule& rule) const {
  const absl::Status error =
      Error(line.number, absl::StrCat("RRULE has ", key, "=", value),
            "FREQ=YEARLY with INTERVAL, COUNT, UNTIL, BYMONTH, BYMONTHDAY or one BYDAY such as "
            "4TH is read; write other days one by one");
  const auto number = [&](int least, int most, int& out) {
    return absl::SimpleAtoi(value, &out) && out >= least && out <= most ? absl::OkStatus() : error;
  };
  if (key == "FREQ") {
    rule.yearly = absl::EqualsIgnoreCase(value, "YEARLY");
    return rule.yearly ? absl::OkStatus() : error;
  }
  if (key == "INTERVAL") return number(1, 1000, rule.interval);
  if (key == "COUNT") return number(1, 1000, rule.count);
  if (key == "BYMONTH") return number(1, 12, rule.month);
  if (key == "BYMONTHDAY") return number(1, 31, rule.month_day);
  if (key == "WKST") return absl::OkStatus();  // it matters to weekly rules alone
  if (key == "UNTIL") {
    ASSIGN_OR_RETURN(rule.until, Day(line.number, value.substr(0, 8)));
    return absl::OkStatus();
  }
  if (key != "BYDAY" || value.size() < 3) return error;
  constexpr absl::string_view kNames[] = {"MO", "TU", "WE", "TH", "FR", "SA", "SU"};
  const auto name = std::find(std::begin(kNames), std::end(kNames), value.substr(value.size() - 2));
  if (name == std::end(kNames) || !absl::SimpleAtoi(value.substr(0, value.size() - 2), &rule.nth) ||
      rule.nth == 0 || rule.nth > 5 || rule.nth < -1) {
    return error;
  }
  rule.weekday = static_cast<absl::Weekday>(name - std::begin(kNames));
  return absl::OkStatus();
}

absl::StatusOr<YearlyRule> Parser::Rule(const ContentLine& line) const {
  YearlyRule rule;
  for (absl::string_view part : absl::StrSplit(line.value, ';', absl::SkipEmpty())) {
    const size_t equals = std::min(part.find('='), part.size());
    RETURN_IF_ERROR(RulePart(line, absl::AsciiStrToUpper(part.substr(0, equals)),
                             part.substr(std::min(equals + 1, part.size())), rule));
  }
  if (!rule.yearly) {
    return Error(line.number, "RRULE has no FREQ=YEARLY", "write the other days one by one");
  }
  return rule;
}

absl::Status Parser::Property(const ContentLine& line, Event& event) const {
  if (line.name == "DTSTART") {
    ASSIGN_OR_RETURN(event.start, Day(line.number, line.value));
  } else if (line.name == "DTEND") {
    ASSIGN_OR_RETURN(event.end, Day(line.number, line.value));
  } else if (line.name == "RRULE") {
    ASSIGN_OR_RETURN(event.rule, Rule(line));
  } else if (line.name == "EXDATE") {
    for (absl::string_view value : absl::StrSplit(line.value, ',')) {
      ASSIGN_OR_RETURN(const absl::CivilDay day, Day(line.number, value));
      event.except.push_back(day);
    }
  } else if (line.name == "SUMMARY") {
    event.on |= SaysWorkingDay(line.value);
  } else if (line.name == "CATEGORIES") {
    event.on |= absl::StrContains(absl::AsciiStrToUpper(line.value), "WORKDAY");
  } else if (line.name == "X-APPLE-SPECIAL-DAY") {
    event.on |= absl::EqualsIgnoreCase(line.value, "ALTERNATE-WORKDAY");
  } else if (line.name == "STATUS") {
    event.cancelled = absl::EqualsIgnoreCase(line.value, "CANCELLED");
  } else if (line.name == "RDATE" || line.name == "DURATION") {
    return Error(line.number, absl::StrCat(line.name, " is not read"),
                 "give DTSTART and DTEND of each stretch of days in an event of its own");
  }
  return absl::OkStatus();
}

// The day of a yearly rule in `year`; none where that year has no such day.
std::optional<absl::CivilDay> DayIn(const YearlyRule& rule, absl::CivilDay start, int64_t year) {
  const int month = rule.month != 0 ? rule.month : start.month();
  if (rule.nth == 0) {
    const int day = rule.month_day != 0 ? rule.month_day : start.day();
    const absl::CivilDay found(year, month, day);
    return found.month() == month ? std::optional<absl::CivilDay>(found) : std::nullopt;
  }
  if (rule.nth < 0) {
    return absl::PrevWeekday(absl::CivilDay(absl::CivilMonth(year, month) + 1), rule.weekday);
  }
  const absl::CivilDay first = absl::NextWeekday(absl::CivilDay(year, month, 1) - 1, rule.weekday);
  const absl::CivilDay found = first + 7 * (rule.nth - 1);
  return found.month() == month ? std::optional<absl::CivilDay>(found) : std::nullopt;
}

absl::Status Parser::Finish(const Event& event) {
  if (event.cancelled) return absl::OkStatus();
  if (!event.start.has_value()) {
    return Error(event.line, "the event has no DTSTART",
                 "give it one, DTSTART;VALUE=DATE:20261001");
  }
  const int64_t length = event.end.has_value() ? *event.end - *event.start : 1;
  if (length < 1 || length > 366) {
    return Error(event.line, "the event ends before it begins, or lasts longer than a year",
                 "DTEND is the day after its last day");
  }
  std::vector<DayMark>& marks = event.on ? on_ : off_;
  const auto add = [&](absl::CivilDay first) {
    if (std::find(event.except.begin(), event.except.end(), first) == event.except.end()) {
      marks.push_back({first, first + (length - 1), event.on});
    }
  };
  if (!event.rule.yearly) {
    add(*event.start);
    return absl::OkStatus();
  }
  int found = 0;
  for (int64_t year = event.start->year(); year <= kLastYear; year += event.rule.interval) {
    const std::optional<absl::CivilDay> day = DayIn(event.rule, *event.start, year);
    if (!day.has_value() || *day < *event.start) continue;
    if (event.rule.until.has_value() && *day > *event.rule.until) break;
    if (event.rule.count != 0 && ++found > event.rule.count) break;
    add(*day);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DayMark>> Parser::Parse(absl::string_view text) {
  std::optional<Event> event;
  int nested = 0;  // components inside an event, such as its alarms, say nothing about days
  for (const ContentLine& line : Unfold(text)) {
    const bool is_event = absl::EqualsIgnoreCase(line.value, "VEVENT");
    if (line.name == "BEGIN" && event.has_value()) {
      ++nested;
    } else if (line.name == "BEGIN" && is_event) {
      event.emplace();
      event->line = line.number;
    } else if (line.name == "END" && nested > 0) {
      --nested;
    } else if (line.name == "END" && is_event && event.has_value()) {
      RETURN_IF_ERROR(Finish(*event));
      event.reset();
    } else if (event.has_value() && nested == 0) {
      RETURN_IF_ERROR(Property(line, *event));
    }
  }
  if (event.has_value()) {
    return Error(event->line, "the event has no END:VEVENT", "the file seems to be cut off");
  }
  off_.insert(off_.end(), on_.begin(), on_.end());
  return std::move(off_);
}

}  // namespace

absl::StatusOr<std::vector<DayMark>> ParseIcs(absl::string_view where, absl::string_view text) {
  return Parser(where).Parse(text);
}

}  // namespace matins
