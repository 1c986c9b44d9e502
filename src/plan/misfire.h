// What becomes of a period that is owed: it stays, or it is SKIPPED with the reason (I14, I17). The
// rule in words is in docs/planning.md.
#ifndef MATINS_PLAN_MISFIRE_H_
#define MATINS_PLAN_MISFIRE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

// What the rule looks at.
struct OwedFacts {
  absl::Time due;
  absl::Time on_time_until;  // OnTimeUntil of its last trigger
  int64_t newer = 0;         // periods that are owed too and were due later, by now
  bool waits = false;        // planned in time under `overlap: queue`: it is never missed
};

struct Verdict {
  absl::string_view skip;  // the reason; empty: it stays
  bool missed = false;
};

// A period is on time until its start deadline, counted from when it may start (`spread` delays
// that); under `replace` the newcomer has to wait for the old run's end, which is bounded by ttl +
// grace.
absl::Time OnTimeUntil(const Job& job, absl::Time not_before);

// Until when what stays may start: while it is younger than max_age and source_window.
absl::Time KeepUntil(const Job& job, absl::Time due);

// START's deadline for a period that is on time. What only waits its turn (`queue`) or is made good
// anyway (`each`) has none but KeepUntil.
absl::Time StartBy(const Job& job, absl::Time due, absl::Time not_before);

Verdict Judge(const Job& job, const OwedFacts& facts, absl::Time now);

}  // namespace matins

#endif  // MATINS_PLAN_MISFIRE_H_
