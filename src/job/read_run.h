// The part of a job's map that says what runs, where, and as whom.
#ifndef MATINS_JOB_READ_RUN_H_
#define MATINS_JOB_READ_RUN_H_

#include "job/fields.h"
#include "job/job.h"

namespace matins {

// nodes, priority, after, env, dir, user, umask, output.
void ReadPlace(Fields& fields, Job& job);
// run and check.
void ReadRun(Fields& fields, Job& job);

}  // namespace matins

#endif  // MATINS_JOB_READ_RUN_H_
