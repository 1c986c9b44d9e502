// systemd's calendar events, systemd.time(7): "Mon..Fri *-*-* 08..17:00,30:00 Europe/Berlin".
#ifndef MATINS_SCHEDULE_ONCALENDAR_PARSER_H_
#define MATINS_SCHEDULE_ONCALENDAR_PARSER_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "schedule/pattern.h"

namespace matins {

struct CalendarEvent {
  Pattern pattern;
  std::optional<absl::TimeZone> zone;  // the one at the end of the expression
};

absl::StatusOr<CalendarEvent> ParseOnCalendar(absl::string_view text);
// Whether the text is one of the words that stand for a whole event: "daily", "weekly".
bool IsOnCalendarWord(absl::string_view word);

}  // namespace matins

#endif  // MATINS_SCHEDULE_ONCALENDAR_PARSER_H_
