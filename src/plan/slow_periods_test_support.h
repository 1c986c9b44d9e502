// Every period that was ever expected, by a walk that is slow and obviously right: what planning
// and the audit are both held against in tests. It knows no calendars.
#ifndef MATINS_PLAN_SLOW_PERIODS_TEST_SUPPORT_H_
#define MATINS_PLAN_SLOW_PERIODS_TEST_SUPPORT_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

struct SlowVersion {
  absl::Time from;
  ResolvedJob job;
};

struct SlowPeriod {
  std::string key;
  absl::Time due;
  absl::Time newest_fire;  // by `now`
  size_t version = 0;      // in force when it was due
};

// Every fire from first sight up to `now`, one version after the other, from the very beginning.
std::vector<SlowPeriod> SlowPeriods(const std::vector<SlowVersion>& versions,
                                    absl::Time first_sight, absl::Time now);

}  // namespace matins

#endif  // MATINS_PLAN_SLOW_PERIODS_TEST_SUPPORT_H_
