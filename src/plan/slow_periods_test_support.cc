#include "plan/slow_periods_test_support.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace matins {

std::vector<SlowPeriod> SlowPeriods(const std::vector<SlowVersion>& versions,
                                    absl::Time first_sight, absl::Time now) {
  std::vector<SlowPeriod> periods;
  std::map<std::string, size_t> index;
  for (size_t v = 0; v < versions.size(); ++v) {
    const ResolvedJob& job = versions[v].job;
    const absl::Time end = v + 1 < versions.size() ? versions[v + 1].from : absl::InfiniteFuture();
    const absl::Time begin = v == 0 ? first_sight : versions[v].from;
    for (auto fire = job.schedule.Next(begin - absl::Nanoseconds(1));
         fire && fire->at < end && fire->at <= now; fire = job.schedule.Next(fire->at)) {
      const auto period = PeriodOf(job.period_rule, *fire, std::nullopt);
      if (!period.ok()) std::abort();  // only a shift by business days can fail
      const auto [found, is_new] = index.emplace(period->key, periods.size());
      if (is_new) periods.push_back({period->key, fire->at, fire->at, v});
      SlowPeriod& known = periods[found->second];
      known.newest_fire = std::max(known.newest_fire, fire->at);
    }
  }
  return periods;
}

}  // namespace matins
