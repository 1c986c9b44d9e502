// What a seed makes of the jobs, and of what each run does.
#ifndef MATINS_LAB_WORKLOAD_H_
#define MATINS_LAB_WORKLOAD_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/random.h"
#include "job/job.h"
#include "lab/sim_host.h"
#include "store/act_store.h"

namespace matins {

// From an instant of the store's clock on, the job is due at `offset` beyond each multiple of
// `every`. That says it without the code that works out schedules.
struct SimVersion {
  absl::Time from;
  absl::Duration every;
  absl::Duration offset = absl::ZeroDuration();
};

// Short leases and short periods, so that a few minutes are a long history.
struct SimJob {
  Job job;
  std::vector<SimVersion> versions;  // as they were applied; the last one is in force
};

// By the version in force at `t`. One that was applied later wins, though the clock was set back
// before it.
bool IsDue(const std::vector<SimVersion>& versions, absl::Time t);
// The first instant after `t` at which the job is due.
absl::Time NextDue(const std::vector<SimVersion>& versions, absl::Time t);

// Two to four jobs of all policies, orders, overlaps, recoveries and limits; valid by the rules of
// job files. In every other seed one of them comes `after` one more, which is due once a day, early
// in the simulation: the same business date, and rows of it that are opened again and deleted.
std::vector<SimJob> MakeJobs(Random& random);
// Changes something of the job at `now` of the store's clock: now and then its schedule, unless it
// is that of a day.
void ChangeJob(SimJob& job, absl::Time now, Random& random);

// Of a seed with limits: gives jobs tenants, a key that several share, and back-fill of more than
// one at a time. Drawn apart, so that a seed without limits is what it would be without them.
void GiveTenants(std::vector<SimJob>& jobs, Random& random);
// What such a store begins with; and one limit that a person sets, raises, lowers or clears.
SetLimitsRequest MakeLimits(Random& random);
SetLimitsRequest ChangeLimits(Random& random);

// The labels of a node's next incarnation. The first node always has them all, so that each job has
// a node that may run it; the others come back with different ones.
std::vector<std::string> MakeLabels(bool first_node, Random& random);

// `trouble`: some runs fail, hang, do not listen, forget their own commit or end badly after it;
// otherwise each ends well.
Fate MakeFate(const Job& job, bool trouble, Random& random);
// How many steps a run of `job` has; the same for each of its runs, so that they can be counted.
int StepsOf(const std::string& job);

}  // namespace matins

#endif  // MATINS_LAB_WORKLOAD_H_
