// A calendar of business days: a set of days left out *and put in* (make-up Saturdays), with an end
// of coverage.
#ifndef MATINS_SCHEDULE_CALENDAR_H_
#define MATINS_SCHEDULE_CALENDAR_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"

namespace matins {

// Immutable, cheap to copy. Days are local days of the job's zone.
class Calendar {
 public:
  // `text` is iCalendar (RFC 5545: all-day VEVENTs, RRULE yearly; a day is left out unless its
  // event says it is a working day) or a list, one day a line: "2026-10-01 off", "2026-10-10 on",
  // "2026-10-01..2026-10-07 off";
  // '#' begins a comment. Saturdays and Sundays are left out unless put in. `until` is the last day
  // covered. Errors name line, reason and mend; `name` stands in front of them.
  static absl::StatusOr<Calendar> Parse(absl::string_view name, absl::string_view text,
                                        std::optional<absl::CivilDay> until);

  const std::string& name() const;
  // The calendar in Parse's list form, canonical: equal days up to `until` give equal bytes, and
  // Parse reads the same calendar back. Only days that differ from the Monday-to-Friday week stand
  // in it.
  std::string Days() const;
  // The last day that the calendar knows; nothing: for ever.
  std::optional<absl::CivilDay> until() const;
  bool Covers(absl::CivilDay day) const;
  bool IsBusinessDay(absl::CivilDay day) const;
  // The `n`-th business day after (n > 0) or before (n < 0) `day`; n = 0: `day`. OutOfRange where
  // coverage ends first.
  absl::StatusOr<absl::CivilDay> Offset(absl::CivilDay day, int n) const;

 private:
  struct Impl;
  explicit Calendar(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace matins

#endif  // MATINS_SCHEDULE_CALENDAR_H_
