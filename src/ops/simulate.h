// How long runs take, for simulations (simulate/simulate.h); and which fires differ between two job
// files.
#ifndef MATINS_OPS_SIMULATE_H_
#define MATINS_OPS_SIMULATE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "ops/session.h"

namespace matins {

using JobDurations = std::map<std::string, std::vector<absl::Duration>>;

// Lines "recon: 12m" or "recon: 10m, 12m, 45m" (in turn), and comments that begin with #.
// InvalidArgument with the line.
absl::StatusOr<JobDurations> ParseDurations(absl::string_view text);

// What the last attempts of these jobs that were DONE took, oldest first; a job without any is
// left out.
absl::StatusOr<JobDurations> DurationsFromHistory(Session& session,
                                                  const std::vector<std::string>& jobs);

// A fire that only one of two definitions has.
struct FireChange {
  absl::Time at;
  bool added = false;  // else it is gone
  std::string period;  // its key; empty: the calendar does not know the day
};
struct JobDiff {
  std::string job;
  enum class What { kSame, kAdded, kRemoved, kChanged } what = What::kSame;
  // By instant. Of jobs that were added or removed all their fires are here.
  std::vector<FireChange> fires;
  bool more = false;  // there are more than `most`
  // A definition that no longer says the same though all these fires do: the first lines that
  // differ.
  std::vector<std::string> differences;
};

// By name; jobs in which nothing differs are left out. Fires in [from, to), at most `most` a job.
absl::StatusOr<std::vector<JobDiff>> DiffJobs(const std::vector<Job>& before,
                                              const std::vector<Job>& after, absl::Time from,
                                              absl::Time to, int most);

}  // namespace matins

#endif  // MATINS_OPS_SIMULATE_H_
