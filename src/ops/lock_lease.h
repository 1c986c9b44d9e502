// The lock of `matins lock`, wherever it is held. For lock.cc alone.
#ifndef MATINS_OPS_LOCK_LEASE_H_
#define MATINS_OPS_LOCK_LEASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "execute/runner.h"
#include "lease/redis_url.h"
#include "store/database.h"

namespace matins {

// One holding of one lock. Not thread-safe. A call whose answer did not come is Unavailable or
// InDoubt, and may be made again.
class LockLease {
 public:
  struct Taken {
    bool taken = false;
    int64_t fence = 0;
    absl::Duration sent;  // boot: before the call that took it
    std::string held_by;  // for people, where it was not taken
    absl::Duration left;  // it may be free then; InfiniteDuration: nobody can tell
    int64_t step = 0;     // the last one that is done; 0: none
    std::string data;     // what that step left
  };

  virtual ~LockLease() = default;
  virtual absl::StatusOr<Taken> Take(absl::Duration patience) = 0;
  // Empty: it lives for another ttl from before this call. Else why it is lost.
  virtual absl::StatusOr<std::string> Renew(absl::Duration patience) = 0;
  // Under the lease alone, and only forward.
  virtual absl::Status WriteStep(int64_t number, absl::string_view data) = 0;
  // `ended`: how the command did; null: it was not started. FailedPrecondition: the lock was no
  // longer ours.
  virtual absl::Status Release(const RunEnded* ended) = 0;
};

struct LockLeaseOptions {
  std::string key;
  std::string who;  // this incarnation
  absl::Duration ttl;
  absl::Duration keep;  // of a step's number and data
};

std::unique_ptr<LockLease> LockInRedis(LockLeaseOptions options, RedisUrl url, Clock& clock);
// The database is opened by the first Take. InvalidArgument: no URL of a store.
absl::StatusOr<std::unique_ptr<LockLease>> LockInStore(LockLeaseOptions options,
                                                       const std::string& store_url, Clock& clock);

}  // namespace matins

#endif  // MATINS_OPS_LOCK_LEASE_H_
