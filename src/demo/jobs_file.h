// The demo's jobs as a file, the way a user would write them.
#ifndef MATINS_DEMO_JOBS_FILE_H_
#define MATINS_DEMO_JOBS_FILE_H_

#include <string>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins::demo {

struct JobsFileOptions {
  std::string program;       // this program's path
  std::string ledger;        // the ledger's URL
  std::string folder;        // for BodyOptions::folder; empty: none
  absl::CivilDay first_day;  // the first business date that there is data for
  int max_periods = 30;
  int64_t pause_ms = 0;
  absl::Duration lease = absl::Seconds(30);
  bool only_recon = false;  // the story's night
};

std::string JobsFile(const JobsFileOptions& options);

}  // namespace matins::demo

#endif  // MATINS_DEMO_JOBS_FILE_H_
