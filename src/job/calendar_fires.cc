#include "job/calendar_fires.h"

#include <algorithm>

#include "job/put_in.h"

namespace matins {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);
// How far days are looked through for one put in, where the schedule itself has nothing nearer.
constexpr int kMostDays = 800;

bool HasCalendar(const ResolvedJob& job) { return job.calendar.has_value() && !job.job.at; }

// The first put-in day's fire after `after`, on days from `day` to before `end`.
std::optional<Fire> NextPutIn(const ResolvedJob& job, absl::Time after, absl::CivilDay day,
                              absl::CivilDay end) {
  for (; day < end; ++day) {
    if (!IsPutIn(job, day)) continue;
    if (std::optional<Fire> fire = NextOnPutIn(job, day, after)) return fire;
  }
  return std::nullopt;
}

std::optional<Fire> PreviousPutIn(const ResolvedJob& job, absl::Time before, absl::CivilDay day,
                                  absl::CivilDay end) {
  for (; day > end; --day) {
    if (!IsPutIn(job, day)) continue;
    if (std::optional<Fire> fire = PreviousOnPutIn(job, day, before)) return fire;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CalendarFire> NextFire(const ResolvedJob& job, absl::Time after) {
  std::optional<Fire> fire = job.schedule.Next(after);
  if (!HasCalendar(job)) return fire ? std::optional(CalendarFire{*fire}) : std::nullopt;
  const absl::TimeZone& zone = job.schedule.zone();
  // A day before: a local time in a gap fires on the day after its own.
  absl::CivilDay looked = absl::ToCivilDay(after, zone) - 1;
  while (true) {
    const absl::CivilDay day = fire ? absl::CivilDay(fire->nominal) : looked + kMostDays;
    if (std::optional<Fire> put_in =
            NextPutIn(job, after, looked, std::min(day, looked + kMostDays))) {
      return CalendarFire{*put_in};
    }
    if (!fire) return std::nullopt;
    if (!job.calendar->Covers(day)) return CalendarFire{*fire, false};
    if (job.calendar->IsBusinessDay(day)) return CalendarFire{*fire};
    absl::CivilDay next = day + 1;
    while (job.calendar->Covers(next) && !job.calendar->IsBusinessDay(next)) ++next;
    looked = day + 1;
    fire = job.schedule.Next(std::max(fire->at, DayStart(next, zone) - kTick));
  }
}

std::optional<Fire> PreviousFire(const ResolvedJob& job, absl::Time before) {
  std::optional<Fire> fire = job.schedule.Previous(before);
  if (!HasCalendar(job)) return fire;
  const absl::TimeZone& zone = job.schedule.zone();
  absl::CivilDay looked = absl::ToCivilDay(before, zone);
  while (true) {
    const absl::CivilDay day = fire ? absl::CivilDay(fire->nominal) : looked - kMostDays;
    if (std::optional<Fire> put_in =
            PreviousPutIn(job, before, looked, std::max(day, looked - kMostDays))) {
      return put_in;
    }
    if (!fire) return std::nullopt;
    if (job.calendar->Covers(day) && job.calendar->IsBusinessDay(day)) return fire;
    looked = day - 1;
    // Over most of a day of many fires in one step; not over all of it, because a local time in a
    // gap at midnight fires on the day after its own.
    fire = job.schedule.Previous(std::min(fire->at, DayStart(day, zone) + absl::Hours(3)));
  }
}

}  // namespace matins
