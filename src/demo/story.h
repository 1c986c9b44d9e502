// `matins demo --story`: one night the plain way, then the same night with Matins, with a real kill
// -9 and a real SIGSTOP. Every figure is counted from the ledger at the moment it is shown.
#ifndef MATINS_DEMO_STORY_H_
#define MATINS_DEMO_STORY_H_

#include "absl/status/status.h"
#include "demo/demo.h"

namespace matins::demo {

// FailedPrecondition where Matins' nights did not end as they must: every difference booked, none
// twice, the late owner refused.
absl::Status RunStory(const DemoOptions& options);

}  // namespace matins::demo

#endif  // MATINS_DEMO_STORY_H_
