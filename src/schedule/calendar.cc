#include "schedule/calendar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/time.h"
#include "schedule/ics.h"
#include "schedule/month_table.h"

namespace matins {
namespace {

const absl::CivilDay kFirstDay(kFirstYear, 1, 1);
const absl::CivilDay kLastDay(kLastYear, 12, 31);

bool IsWeekend(absl::CivilDay day) {
  const absl::Weekday weekday = absl::GetWeekday(day);
  return weekday == absl::Weekday::saturday || weekday == absl::Weekday::sunday;
}

absl::StatusOr<DayMark> ParseListLine(absl::string_view where, absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
  constexpr absl::string_view kMend =
      "write \"2026-10-01 off\", \"2026-10-10 on\" or \"2026-10-01..2026-10-07 off\"";
  if (words.size() != 2 || (words[1] != "on" && words[1] != "off")) {
    return BadInput(where, absl::StrCat("'", line, "' is not a day and on or off"), kMend);
  }
  const size_t dots = words[0].find("..");
  const absl::StatusOr<absl::CivilDay> first = ParseDay(words[0].substr(0, dots));
  const absl::StatusOr<absl::CivilDay> last =
      dots == absl::string_view::npos ? first : ParseDay(words[0].substr(dots + 2));
  if (!first.ok() || !last.ok()) {
    return BadInput(where, absl::StrCat("'", words[0], "' is no day that exists"), kMend);
  }
  if (*last < *first) {
    return BadInput(where, absl::StrCat("'", words[0], "' ends before it begins"), kMend);
  }
  return DayMark{*first, *last, words[1] == "on"};
}

absl::StatusOr<std::vector<DayMark>> ParseList(absl::string_view name, absl::string_view text) {
  std::vector<DayMark> marks;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    ASSIGN_OR_RETURN(const DayMark mark, ParseListLine(absl::StrCat(name, ":", number), line));
    marks.push_back(mark);
  }
  return marks;
}

}  // namespace

struct Calendar::Impl {
  std::string name;
  std::optional<absl::CivilDay> until;
  std::vector<bool> business;  // by days since kFirstDay
};

absl::StatusOr<Calendar> Calendar::Parse(absl::string_view name, absl::string_view text,
                                         std::optional<absl::CivilDay> until) {
  const std::string where = absl::StrCat("calendar ", name);
  const bool ics =
      absl::StartsWithIgnoreCase(absl::StripLeadingAsciiWhitespace(text), "BEGIN:VCALENDAR");
  ASSIGN_OR_RETURN(const std::vector<DayMark> marks,
                   ics ? ParseIcs(where, text) : ParseList(where, text));
  auto impl = std::make_shared<Impl>();
  impl->name = std::string(name);
  impl->until = until;
  impl->business.reserve(kLastDay - kFirstDay + 1);
  for (absl::CivilDay day = kFirstDay; day <= kLastDay; ++day) {
    impl->business.push_back(!IsWeekend(day));
  }
  for (const DayMark& mark : marks) {
    const absl::CivilDay last = std::min(mark.last, kLastDay);
    for (absl::CivilDay day = std::max(mark.first, kFirstDay); day <= last; ++day) {
      impl->business[day - kFirstDay] = mark.on;
    }
  }
  return Calendar(std::move(impl));
}

const std::string& Calendar::name() const { return impl_->name; }
std::string Calendar::Days() const {
  std::string text;
  const absl::CivilDay last = std::min(impl_->until.value_or(kLastDay), kLastDay);
  const auto differs = [&](absl::CivilDay day) {
    return day <= last && IsBusinessDay(day) == IsWeekend(day);
  };
  for (absl::CivilDay day = kFirstDay; day <= last; ++day) {
    if (!differs(day)) continue;
    const absl::CivilDay first = day;
    const bool on = IsBusinessDay(first);
    while (differs(day + 1) && IsBusinessDay(day + 1) == on) ++day;
    absl::StrAppend(&text, FormatDay(first));
    if (day != first) absl::StrAppend(&text, "..", FormatDay(day));
    absl::StrAppend(&text, on ? " on\n" : " off\n");
  }
  return text;
}

std::optional<absl::CivilDay> Calendar::until() const { return impl_->until; }
bool Calendar::Covers(absl::CivilDay day) const {
  return !impl_->until.has_value() || day <= *impl_->until;
}

bool Calendar::IsBusinessDay(absl::CivilDay day) const {
  if (day < kFirstDay || day > kLastDay) return !IsWeekend(day);
  return impl_->business[day - kFirstDay];
}

absl::StatusOr<absl::CivilDay> Calendar::Offset(absl::CivilDay day, int n) const {
  const absl::CivilDay from = day;
  const int step = n < 0 ? -1 : 1;
  for (int left = n < 0 ? -n : n; left > 0;) {
    day += step;
    if (!Covers(day) || day < kFirstDay || day > kLastDay) break;
    if (IsBusinessDay(day)) --left;
    if (left == 0) return day;
  }
  if (n == 0 && Covers(day)) return day;
  return absl::OutOfRangeError(absl::StrCat(
      "calendar ", name(), ": ", n, " business days from ", FormatDay(from),
      " are past the days that it covers",
      impl_->until.has_value() ? absl::StrCat(", which end on ", FormatDay(*impl_->until)) : "",
      "; bring its file and its `until` up to date"));
}

}  // namespace matins
