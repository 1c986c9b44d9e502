#include "job/resolve.h"

#include <utility>

#include "base/status.h"

namespace matins {

absl::StatusOr<Schedule> ResolveSchedule(const Job& job, const absl::TimeZone& zone) {
  if (job.at) return Schedule::At(*job.at, zone);
  return Schedule::Parse(job.schedule, {.dialect = job.dialect, .zone = zone, .dst = job.dst});
}

absl::StatusOr<ResolvedJob> ResolveJob(Job job) {
  absl::StatusOr<absl::TimeZone> zone = LoadZone(job.timezone);
  if (!zone.ok()) return Annotate(zone.status(), job.name + ": timezone");
  absl::StatusOr<Schedule> schedule = ResolveSchedule(job, *zone);
  if (!schedule.ok()) return Annotate(schedule.status(), job.name + ": schedule");
  std::optional<Calendar> calendar;
  if (!job.calendar.empty()) {
    ASSIGN_OR_RETURN(
        calendar, Calendar::Parse(job.calendar, job.calendar_data.days, job.calendar_data.until));
  }
  // A zone inside the expression wins, so that a period's day is the day of the schedule's clock.
  PeriodRule rule{
      .kind = job.period, .shift = job.biz_date, .calendar = calendar, .zone = schedule->zone()};
  return ResolvedJob{std::move(job), *std::move(schedule), std::move(rule), std::move(calendar)};
}

}  // namespace matins
