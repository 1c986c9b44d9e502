// What the demo's jobs do: the programs that Matins runs, each a process of its own that is told
// who it is by MATINS_*.
#ifndef MATINS_DEMO_BODIES_H_
#define MATINS_DEMO_BODIES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins::demo {

struct BodyOptions {
  std::string ledger;  // the ledger's URL; in a run it comes as LEDGER, and the next two as DEMO_*
  std::string plain_day;  // recon the plain way, for this date, with no scheduler around it
  std::string folder;     // where bodies leave a file with their process's number, for the story;
                          // empty: nowhere
  int64_t pause_ms = 0;   // a rest after each step, so that a person can watch
};

// `name` is recon, count, billing, report, warm-cache or deliver. `count` is recon's check: it
// prints a figure a line.
absl::Status RunBody(absl::string_view name, BodyOptions options);

}  // namespace matins::demo

#endif  // MATINS_DEMO_BODIES_H_
