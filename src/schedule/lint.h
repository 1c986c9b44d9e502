// What may surprise about a schedule, told when a job is written and not when it has gone wrong.
// Everything here depends on the schedule, the period's rule and the calendar alone.
#ifndef MATINS_SCHEDULE_LINT_H_
#define MATINS_SCHEDULE_LINT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "schedule/calendar.h"
#include "schedule/period.h"
#include "schedule/schedule.h"

namespace matins {

// The least time between two fires on the wall clock, clock changes and calendars left aside: 24 h
// for "0 9 * * 1-5". Nothing for a schedule that fires at most once.
std::optional<absl::Duration> ShortestStep(const Schedule& schedule);

// InvalidArgument when the period is shorter than the schedule's shortest step, so that periods
// without a fire are the rule: hour under a nightly cron. A month counts as 31 days.
absl::Status CheckPeriod(const Schedule& schedule, PeriodKind kind);

// Warnings about the expression: months that are passed over ("31 * *" names them), day fields of
// which either or both must match, no fire by the clock at all. Each is a sentence.
std::vector<std::string> LintSchedule(const Schedule& schedule);

// Warnings about the next two years from `from`: periods that the schedule's fields name and that
// have no fire, periods with two fires where one is the rule, and the end of the calendar's
// coverage. `rule.shift` counts: two fires whose data are of one period are told. `calendar` may be
// nullptr. Takes up to some 100 ms.
std::vector<std::string> LintPeriods(const Schedule& schedule, const PeriodRule& rule,
                                     const Calendar* calendar, absl::Time from);

}  // namespace matins

#endif  // MATINS_SCHEDULE_LINT_H_
