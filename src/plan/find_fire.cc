#include "plan/find_fire.h"

#include <cstdlib>
#include <functional>

#include "base/status.h"

namespace matins {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);
constexpr int kMonthDays = 31;
constexpr int kSlackDays = 40;  // more than a month, and than a run of days off

// How many days a shift can carry, either way.
int ReachDays(const BizShift& shift) {
  const int count = std::abs(shift.count);
  switch (shift.unit) {
    case BizShift::Unit::kHour:
      return count / 24 + 1;
    case BizShift::Unit::kDay:
      return count;
    case BizShift::Unit::kWeek:
      return 7 * count;
    case BizShift::Unit::kMonth:
      return kMonthDays * count;
    case BizShift::Unit::kBusinessDay:
      return 7 * count;
  }
  return 0;
}

// Periods come in the order of their fires, so the border is found by halving.
absl::StatusOr<std::optional<DatedFire>> Find(const Fires& fires, absl::CivilDay day,
                                              const std::function<bool(const Period&)>& reached) {
  const ResolvedJob& job = fires.current();
  const int reach = ReachDays(job.job.biz_date) + kSlackDays;
  const absl::TimeZone& zone = job.schedule.zone();
  absl::Time low = DayStart(day - reach, zone) - kTick;
  absl::Time high = DayStart(day + reach, zone);
  while (high - low > absl::Milliseconds(1)) {
    const absl::Time middle = low + (high - low) / 2;
    const std::optional<DatedFire> fire = fires.Next(middle);
    bool there = true;
    if (fire && fire->covered) {
      ASSIGN_OR_RETURN(const Period period,
                       PeriodAt(fires, fire->fire, fire->version, std::nullopt));
      there = reached(period);
    }
    (there ? high : low) = middle;
  }
  return fires.Next(high);
}

}  // namespace

absl::StatusOr<std::optional<DatedFire>> FirstFireOfDay(const Fires& fires, absl::CivilDay day) {
  return Find(fires, day, [day](const Period& period) { return period.biz_date >= day; });
}

absl::StatusOr<FoundFire> FirstFireOf(const Fires& fires, const Period& period) {
  ASSIGN_OR_RETURN(const std::optional<DatedFire> fire,
                   Find(fires, period.biz_date, [&period](const Period& other) {
                     return other.key == period.key || other.start >= period.end;
                   }));
  if (!fire || !fire->covered) return FoundFire{fire};
  ASSIGN_OR_RETURN(const Period found, PeriodAt(fires, fire->fire, fire->version, std::nullopt));
  return FoundFire{fire, found.key == period.key};
}

}  // namespace matins
