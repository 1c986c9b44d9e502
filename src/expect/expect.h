// The expected set: which periods a job's schedule demanded, from its versions, calendars and first
// sight alone (I13). It shares no state and no code with planning (the build sees to it): no
// cursor, no rows, no spans. What planning forgot, it finds.
#ifndef MATINS_EXPECT_EXPECT_H_
#define MATINS_EXPECT_EXPECT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"

namespace matins {

// A version of a job, in force from `from` until the next one's; the first also before its own, for
// what backfill.start asks of the time before first sight.
struct DatedVersion {
  int number = 0;
  absl::Time from;
  const ResolvedJob* job = nullptr;
};

struct ExpectedPeriod {
  std::string key;
  absl::CivilDay biz_date;
  absl::Time due;   // its first fire
  int version = 0;  // index into the versions: the one in force when it was due
};

struct ExpectQuestion {
  absl::Span<const DatedVersion> versions;  // ascending by number; at least one
  absl::Time first_sight;
  absl::CivilDay from, to;  // biz_dates, both included
  absl::Time until;         // fires at or before
};

struct ExpectedSet {
  std::vector<ExpectedPeriod> periods;  // by version, then by due; no key twice
  // From this instant on nobody can say what is expected, because a calendar ended.
  std::optional<absl::Time> unknown_from;
  std::string unknown_why;
};

// Pure. Costs a step a fire; days left out are passed over whole.
ExpectedSet ExpectPeriods(const ExpectQuestion& question);

}  // namespace matins

#endif  // MATINS_EXPECT_EXPECT_H_
