// `matins lock`: a command under a lock, with its fence, and nothing else: no schedule, no periods
// (docs/locks.md).
#ifndef MATINS_OPS_LOCK_H_
#define MATINS_OPS_LOCK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/exec.h"

namespace matins {

struct LockRequest {
  std::string key;  // expanded, and masked where that was asked for
  // Where the lock is held: in the store where one is named, else in Redis.
  std::string store_url;
  std::string redis_url;
  absl::Duration ttl = absl::Seconds(30);    // 1s and more; renewed at every quarter of it
  absl::Duration grace = absl::Seconds(10);  // between SIGTERM and SIGKILL
  IfHeld if_held = IfHeld::kSkip;
  absl::Duration wait = absl::InfiniteDuration();  // with kWait: for so long at most
  // A server that cannot be reached is tried again for so long, before anything has run.
  absl::Duration server_wait = absl::Seconds(10);
  // The command is this step of a long job: done once, after the step before it.
  std::optional<int64_t> step;
  absl::Duration keep = absl::Hours(24 * 30);  // of the last step's number
  ExecProgram program;
};

// Takes the lock, runs the command with MATINS_FENCE and MATINS_LOCK in its environment, renews at
// a quarter of the lease, and releases. A renewal that is refused stops the command at once, one
// that is not answered in time before the lease can end (I19), and the host is told why; kLost
// then, and whatever the command ended with does not count. kDone also where another holds the lock
// (kSkip) or the step is done already. kRefused: the step before this one is not done. Unavailable:
// the server could not be reached, and nothing was run.
absl::StatusOr<ExecAnswer> RunUnderLock(const LockRequest& request, ExecHost& host);

}  // namespace matins

#endif  // MATINS_OPS_LOCK_H_
