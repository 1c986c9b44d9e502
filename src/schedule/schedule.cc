#include "schedule/schedule.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/time.h"
#include "schedule/cron_parser.h"
#include "schedule/describe.h"
#include "schedule/fire_search.h"
#include "schedule/oncalendar_parser.h"
#include "schedule/pattern.h"
#include "schedule/schedule_impl.h"
#include "schedule/zone_table.h"

namespace matins {
namespace {

int64_t EndSeconds() {
  static const int64_t end = absl::CivilSecond(kLastYear + 1) - absl::CivilSecond(1970);
  return end;
}

constexpr std::pair<absl::string_view, absl::string_view> kMacros[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"}};

std::vector<absl::string_view> Words(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

// The dialect of a text that does not say it (docs/schedules.md).
Dialect FindDialect(absl::string_view text) {
  const std::vector<absl::string_view> words = Words(text);
  if (words.size() == 7) return Dialect::kQuartz;
  if (words.size() == 6) {
    return words[3] == "?" || words[5] == "?" ? Dialect::kQuartz : Dialect::kSeconds6;
  }
  if (words.empty() || words.size() > 4 || words[0][0] == '@') return Dialect::kVixie5;
  if (absl::StrContains(words[0], '=')) return Dialect::kVixie5;  // TZ=..., told there
  const bool event = absl::StrContains(text, ':') || absl::ascii_isalpha(words[0][0]) ||
                     absl::StrContains(text, "-*") || absl::StrContains(text, '~') ||
                     (words.size() <= 2 && absl::StrContains(words[0], '-'));
  return event ? Dialect::kOnCalendar : Dialect::kVixie5;
}

absl::StatusOr<int64_t> ParseEvery(absl::string_view text) {
  const std::string where = absl::StrCat("@every '", text, "'");
  constexpr absl::string_view kMend = "write whole seconds from 1s to 366d: \"@every 90s\"";
  const absl::StatusOr<absl::Duration> every = ParseDuration(text);
  if (!every.ok()) return BadInput(where, "is no duration", kMend);
  if (*every < absl::Seconds(1) || *every > absl::Hours(24 * 366)) {
    return BadInput(where, "is out of range", kMend);
  }
  if (absl::Trunc(*every, absl::Seconds(1)) != *every) {
    return BadInput(where, "has a part of a second", kMend);
  }
  return absl::ToInt64Seconds(*every);
}

// "@..." in the cron dialects.
absl::Status ParseMacro(absl::string_view text, ScheduleParts& parts) {
  const std::vector<absl::string_view> words = Words(text);
  if (words[0] == "@every" && words.size() == 2) {
    ASSIGN_OR_RETURN(parts.every_seconds, ParseEvery(words[1]));
    parts.kind = ScheduleKind::kEvery;
    return absl::OkStatus();
  }
  if (words[0] == "@reboot" && words.size() == 1) {
    parts.kind = ScheduleKind::kNever;
    return absl::OkStatus();
  }
  for (const auto& [name, meaning] : kMacros) {
    if (words[0] != name || words.size() != 1) continue;
    ASSIGN_OR_RETURN(const Pattern pattern, ParseCron(meaning, Dialect::kVixie5));
    parts.matcher.emplace(pattern);
    return absl::OkStatus();
  }
  return BadInput(absl::StrCat("schedule '", text, "'"), "is no macro",
                  "write @hourly, @daily, @weekly, @monthly, @yearly, or @every 90s");
}

absl::Status ParseOnCalendarInto(absl::string_view text, ScheduleParts& parts) {
  if (absl::StartsWith(text, "@")) {
    int64_t seconds;
    if (!absl::SimpleAtoi(text.substr(1), &seconds) || !absl::ascii_isdigit(text[1])) {
      return BadInput(absl::StrCat("schedule '", text, "'"), "is no number of seconds after '@'",
                      "write @1395716396, or an event like \"*-*-* 09:00\"");
    }
    parts.kind = ScheduleKind::kOnce;
    parts.once = absl::FromUnixSeconds(seconds);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const CalendarEvent event, ParseOnCalendar(text));
  parts.matcher.emplace(event.pattern);
  if (event.zone.has_value()) parts.zone = *event.zone;
  return absl::OkStatus();
}

std::optional<Fire> ToFire(std::optional<FoundFire> found) {
  if (!found.has_value()) return std::nullopt;
  return Fire{absl::FromUnixSeconds(found->at), CivilFromLocal(found->nominal)};
}

}  // namespace

class Schedule::Impl {
 public:
  explicit Impl(ScheduleParts parts) : parts_(std::move(parts)), zone_(ZoneTable::Of(parts_.zone)) {
    if (parts_.matcher.has_value()) search_.emplace(*parts_.matcher, zone_, parts_.dst);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::optional<Fire> Next(absl::Time after) const {
    if (parts_.kind == ScheduleKind::kOnce) {
      return after < parts_.once ? std::optional<Fire>(Once()) : std::nullopt;
    }
    return ToFire(NextSecond(std::max<int64_t>(absl::ToUnixSeconds(after), -1)));
  }

  std::optional<Fire> Previous(absl::Time before) const {
    if (parts_.kind == ScheduleKind::kOnce) {
      return parts_.once < before ? std::optional<Fire>(Once()) : std::nullopt;
    }
    if (before >= absl::FromUnixSeconds(EndSeconds())) before = absl::FromUnixSeconds(EndSeconds());
    int64_t last = absl::ToUnixSeconds(before);
    if (absl::FromUnixSeconds(last) == before) --last;
    if (last < 0) return std::nullopt;
    std::optional<int64_t> at;
    if (parts_.kind == ScheduleKind::kEvery) {
      at = last / parts_.every_seconds * parts_.every_seconds;
    } else if (search_.has_value()) {
      at = search_->Previous(last);
    }
    // Asking forward for the found instant gives the nominal time that Next gives.
    return at.has_value() ? ToFire(NextSecond(*at - 1)) : std::nullopt;
  }

  const ScheduleParts& parts() const { return parts_; }

 private:
  std::optional<FoundFire> NextSecond(int64_t after) const {
    if (after >= EndSeconds()) return std::nullopt;
    if (parts_.kind == ScheduleKind::kEvery) {
      const int64_t at = after < 0 ? 0 : (after / parts_.every_seconds + 1) * parts_.every_seconds;
      if (at >= EndSeconds()) return std::nullopt;
      return FoundFire{at, at + zone_.at(zone_.IndexOf(at)).offset};
    }
    return search_.has_value() ? search_->Next(after, EndSeconds()) : std::nullopt;
  }
  Fire Once() const { return {parts_.once, absl::ToCivilSecond(parts_.once, parts_.zone)}; }

  const ScheduleParts parts_;
  const ZoneTable& zone_;
  std::optional<FireSearch> search_;  // refers to parts_ and zone_
};

const ScheduleParts& PartsOf(const Schedule& schedule) { return schedule.impl_->parts(); }

absl::StatusOr<Schedule> Schedule::Parse(absl::string_view expression,
                                         const ScheduleOptions& options) {
  const absl::string_view text = absl::StripAsciiWhitespace(expression);
  ScheduleParts parts;
  parts.expression = std::string(expression);
  parts.zone = options.zone;
  parts.dst = options.dst;
  parts.dialect = options.dialect == Dialect::kAuto ? FindDialect(text) : options.dialect;
  if (parts.dialect == Dialect::kOnCalendar) {
    RETURN_IF_ERROR(ParseOnCalendarInto(text, parts));
  } else if (absl::StartsWith(text, "@")) {
    RETURN_IF_ERROR(ParseMacro(text, parts));
  } else {
    ASSIGN_OR_RETURN(const Pattern pattern, ParseCron(text, parts.dialect));
    parts.matcher.emplace(pattern);
  }
  if (parts.matcher.has_value() &&
      parts.matcher->Next(MonthTable::Get().at(0).first_day * kDaySeconds) == Matcher::kNever) {
    return BadInput(absl::StrCat("schedule '", text, "'"),
                    "never fires: its day of month, month, weekday and year name no date that "
                    "exists",
                    "check that the month has that day; the month's last day is written L");
  }
  return Schedule(std::make_shared<const Impl>(std::move(parts)));
}

Schedule Schedule::At(absl::Time at, absl::TimeZone zone) {
  ScheduleParts parts;
  parts.kind = ScheduleKind::kOnce;
  parts.expression = FormatInstant(at);
  parts.zone = zone;
  parts.once = at;
  return Schedule(std::make_shared<const Impl>(std::move(parts)));
}

std::optional<Fire> Schedule::Next(absl::Time after) const { return impl_->Next(after); }
std::optional<Fire> Schedule::Previous(absl::Time before) const { return impl_->Previous(before); }
std::string Schedule::Describe() const { return DescribeParts(impl_->parts()); }
Dialect Schedule::dialect() const { return impl_->parts().dialect; }
const absl::TimeZone& Schedule::zone() const { return impl_->parts().zone; }
const std::string& Schedule::expression() const { return impl_->parts().expression; }
bool Schedule::is_interval() const {
  const ScheduleParts& parts = impl_->parts();
  return parts.kind == ScheduleKind::kEvery ||
         (parts.matcher.has_value() && parts.matcher->pattern().interval);
}

}  // namespace matins
