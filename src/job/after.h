// `after` among the jobs of a file: who waits for whom.
#ifndef MATINS_JOB_AFTER_H_
#define MATINS_JOB_AFTER_H_

#include <set>
#include <string>
#include <vector>

#include "job/job.h"
#include "job/problem.h"

namespace matins {

struct JobPlace {
  Job job;
  Mark after;
};

// Jobs that wait for each other in a circle are an error: none would ever start. A job that waits
// for one that is not in `known` is warned of (`warn`): another file may bring it.
void CheckAfter(const std::vector<JobPlace>& jobs, const std::set<std::string>& known, bool warn,
                Problems& problems);

}  // namespace matins

#endif  // MATINS_JOB_AFTER_H_
