// From one job's map to a Job: the one reader for job files and stored definitions alike.
#ifndef MATINS_JOB_READ_JOB_H_
#define MATINS_JOB_READ_JOB_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "job/job.h"
#include "job/node.h"
#include "job/problem.h"

namespace matins {

using CalendarSet = std::map<std::string, CalendarData>;

struct ReadJobOptions {
  const CalendarSet* calendars = nullptr;  // what `calendar:` can name; null: the map carries days
  // For warnings about the next two years; InfinitePast: no warnings at all.
  absl::Time now = absl::InfinitePast();
  bool checked = false;  // was read before: what its values mean together is right
};

// The map with K8s' words in the house's: concurrencyPolicy, startingDeadlineSeconds, timeZone, the
// history limits. A word given in both is reported.
NodePtr HouseWords(const NodePtr& job, Problems& problems);

// `job` with what it does not say itself taken from `defaults`; of nested maps key by key.
NodePtr WithDefaults(const NodePtr& job, const NodePtr& defaults);

// Nothing where it has errors; all of them are in `problems`.
std::optional<Job> ReadJob(const NodePtr& job, const ReadJobOptions& options, Problems& problems);

}  // namespace matins

#endif  // MATINS_JOB_READ_JOB_H_
