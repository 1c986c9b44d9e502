// `matins demo`: a nightly reconciliation by business date, on real input, with two nodes on one
// store.
#ifndef MATINS_DEMO_DEMO_H_
#define MATINS_DEMO_DEMO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace matins::demo {

struct DemoOptions {
  bool once = false;   // stop when the newest `days` business dates are DONE
  bool story = false;  // the plain way first, then Matins through the same night
  int days = 30;       // 1 to 30; there is data for five days more
  std::string store;   // the scheduler's store; empty: a SQLite file in the folder
  std::string folder;  // for the ledger, the jobs' file and the nodes' logs; empty: a new one among
                       // the temporary files
  int64_t pause_ms = 0;  // a rest after each step of a run
};

// FailedPrecondition with the first failure where a business date did not become DONE, or where
// what was booked is not what the generator planted.
absl::Status RunDemo(const DemoOptions& options);

}  // namespace matins::demo

#endif  // MATINS_DEMO_DEMO_H_
