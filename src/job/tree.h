// A job as the tree that ReadJob reads: what JSON and YAML are written from.
#ifndef MATINS_JOB_TREE_H_
#define MATINS_JOB_TREE_H_

#include "job/job.h"
#include "job/node.h"

namespace matins {

// Keys in the order of job.h, those with their default left out. `with_days`: the calendar's days
// too.
NodePtr JobTree(const Job& job, bool with_days);

}  // namespace matins

#endif  // MATINS_JOB_TREE_H_
