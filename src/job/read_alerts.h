// The parts of a job file that say where alerts go.
#ifndef MATINS_JOB_READ_ALERTS_H_
#define MATINS_JOB_READ_ALERTS_H_

#include "job/alerts.h"
#include "job/fields.h"
#include "job/job.h"

namespace matins {

// `alerts` and `ping` of a file.
void ReadAlertConfig(const std::string& file, Fields& fields, AlertConfig& config);
// `alerts` of a job: names of channels.
void ReadJobAlerts(Fields& fields, Job& job);

}  // namespace matins

#endif  // MATINS_JOB_READ_ALERTS_H_
