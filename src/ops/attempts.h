// What the store remembers of a period's attempts: for `why --twice` and `timeline`.
#ifndef MATINS_OPS_ATTEMPTS_H_
#define MATINS_OPS_ATTEMPTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "ops/session.h"

namespace matins {

// An old owner spoke, and was refused.
struct AttemptRefusal {
  absl::Time at;
  std::string node, why;
};

struct AttemptStory {
  RunRow run;
  // The end of its lease where it is alive. InfinitePast: it is not kept; it was alive when its end
  // was accepted, and had ended when it was taken back.
  absl::Time lease_until = absl::InfinitePast();
  std::vector<AttemptRefusal> refusals;
};

struct PeriodStory {
  PeriodKey key;
  std::optional<PeriodRow> row;
  std::vector<AttemptStory> attempts;  // oldest first, by fence
  // Acts that opened a generation, oldest first.
  std::vector<EventRow> reopened;
  CommitBy commit = CommitBy::kNode;  // as the job says today
  Recovery recovery = Recovery::kRerun;
  absl::Time now;
};

// Of each of these periods, in their order. History that was purged is not in it.
absl::StatusOr<std::vector<PeriodStory>> ReadStories(Session& session, const Planned& planned,
                                                     const std::vector<std::string>& periods);

// The periods that `date` names, a key or a business date, that have a row or had an attempt;
// oldest first. InvalidArgument: it is neither.
absl::StatusOr<std::vector<std::string>> PeriodsOfDate(Session& session, const Planned& planned,
                                                       absl::string_view date);

}  // namespace matins

#endif  // MATINS_OPS_ATTEMPTS_H_
