#include "view/calendar_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace matins {
namespace {

struct Look {
  char letter;
  const char* colour;
  const char* word;
};

Look LookOf(DayMark mark) {
  switch (mark) {
    case DayMark::kNone:
      return {'.', "90", "nothing"};
    case DayMark::kDone:
      return {'D', "32", "DONE"};
    case DayMark::kSkipped:
      return {'s', "90", "SKIPPED"};
    case DayMark::kPlanned:
      return {'p', "36", "PLANNED"};
    case DayMark::kRunning:
      return {'R', "34", "RUNNING"};
    case DayMark::kFailed:
      return {'F', "31", "FAILED"};
    case DayMark::kHeld:
      return {'H', "35", "FAILED(held)"};
  }
  return {'?', "0", "?"};
}

std::string Cell(DayMark mark, int day, bool colour) {
  const Look look = LookOf(mark);
  const std::string text = absl::StrFormat("%2d%c", day, look.letter);
  return colour ? absl::StrCat("\x1b[", look.colour, "m", text, "\x1b[0m") : text;
}

int Column(absl::CivilDay day) { return static_cast<int>(absl::GetWeekday(day)); }

std::string MonthText(absl::CivilMonth month, const std::map<absl::CivilDay, DayMark>& days,
                      bool colour) {
  static constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                            "May",       "June",     "July",     "August",
                                            "September", "October",  "November", "December"};
  std::string text = absl::StrCat(kMonths[month.month() - 1], " ", month.year(),
                                  "\n Mo  Tu  We  Th  Fr  Sa  Su\n");
  const absl::CivilDay first(month);
  std::string line(static_cast<size_t>(Column(first)) * 4, ' ');
  for (absl::CivilDay day = first; absl::CivilMonth(day) == month; ++day) {
    const auto found = days.find(day);
    absl::StrAppend(
        &line, Cell(found == days.end() ? DayMark::kNone : found->second, day.day(), colour), " ");
    if (Column(day) == 6) {
      absl::StrAppend(&text, line, "\n");
      line.clear();
    }
  }
  if (!line.empty()) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace

DayMark MarkOf(const PeriodRow& row) {
  switch (row.status) {
    case PeriodStatus::kPlanned:
      return DayMark::kPlanned;
    case PeriodStatus::kRunning:
      return DayMark::kRunning;
    case PeriodStatus::kDone:
      return DayMark::kDone;
    case PeriodStatus::kFailed:
      return row.held ? DayMark::kHeld : DayMark::kFailed;
    case PeriodStatus::kSkipped:
      return DayMark::kSkipped;
  }
  return DayMark::kNone;
}

DayMark Worse(DayMark a, DayMark b) { return std::max(a, b); }

std::string CalendarText(const std::map<absl::CivilDay, DayMark>& days, bool colour) {
  if (days.empty()) return "no periods yet\n";
  std::string text;
  const absl::CivilMonth last(days.rbegin()->first);
  for (absl::CivilMonth month(days.begin()->first); month <= last; ++month) {
    absl::StrAppend(&text, MonthText(month, days, colour), "\n");
  }
  std::map<DayMark, int> counts;
  for (const auto& [day, mark] : days) ++counts[mark];
  for (const auto& [mark, count] : counts) {
    const Look look = LookOf(mark);
    absl::StrAppend(&text, std::string(1, look.letter), " ", look.word, ": ", count, " day(s)   ");
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

}  // namespace matins
