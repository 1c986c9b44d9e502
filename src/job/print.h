// A job as YAML, as `job show` prints it.
#ifndef MATINS_JOB_PRINT_H_
#define MATINS_JOB_PRINT_H_

#include <string>

#include "job/job.h"

namespace matins {

// An entry of a job file's `jobs:` list, which reads back as the same job where the file has its
// calendar. What has its default is left out, but for misfire.
std::string JobToYaml(const Job& job);

}  // namespace matins

#endif  // MATINS_JOB_PRINT_H_
