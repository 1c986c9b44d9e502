// What a seed makes of the jobs, and of what each run does.
#ifndef MATINS_LAB_WORKLOAD_H_
#define MATINS_LAB_WORKLOAD_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/random.h"
#include "job/job.h"
#include "lab/sim_host.h"

namespace matins {

// Short leases and short periods, so that a few minutes are a long history.
struct SimJob {
  Job job;
  absl::Duration every;
};

// Two to four jobs of all policies, orders, overlaps, recoveries and limits; valid by the rules of
// job files.
std::vector<SimJob> MakeJobs(Random& random);
// The same job with something of it changed.
Job ChangedJob(const SimJob& job, Random& random);

// The labels of a node's next incarnation. The first node always has them all, so that each job has
// a node that may run it; the others come back with different ones.
std::vector<std::string> MakeLabels(bool first_node, Random& random);

// `trouble`: some runs fail, hang, or do not listen; otherwise each ends well.
Fate MakeFate(const RunRequest& request, bool trouble, Random& random);
// How many steps a run of `job` has; the same for each of its runs, so that they can be counted.
int StepsOf(const std::string& job);

}  // namespace matins

#endif  // MATINS_LAB_WORKLOAD_H_
