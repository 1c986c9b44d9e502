// What contradicts itself in a job, and what is likely not meant. Pure functions of the job, so
// that a job made by a program is judged as one from a file.
#ifndef MATINS_JOB_RULES_H_
#define MATINS_JOB_RULES_H_

#include <string>
#include <vector>

#include "job/job.h"

namespace matins {

struct Finding {
  // The keys that it speaks of, as paths ("backfill.order"); the first is where it is shown.
  std::vector<std::string> keys;
  std::string what;
  std::string mend;
};

// Contradictions between a job's own fields (docs/jobs.md): a job with one is refused.
std::vector<Finding> FindContradictions(const Job& job);

// Contradictions that need the schedule: a period shorter than the schedule's shortest step, days
// left out by a calendar not counted.
std::vector<Finding> FindScheduleContradictions(const ResolvedJob& job);

// The defaults that depend on other words.
Order DefaultOrder(Misfire misfire);
LockScope DefaultScope(Overlap overlap);

}  // namespace matins

#endif  // MATINS_JOB_RULES_H_
