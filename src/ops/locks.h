// The locks that are held, in Redis and in a store, and ending one by hand.
#ifndef MATINS_OPS_LOCKS_H_
#define MATINS_OPS_LOCKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// Where to look; what is empty is not asked.
struct LockPlaces {
  std::string redis_url;
  std::string store_url;
};

struct LockView {
  std::string key;
  bool in_redis = false;
  std::string holder;  // the incarnation
  int64_t fence = 0;   // 0: it has none (the quick door)
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
  std::optional<int64_t> renewals;  // nothing: nobody renews what a stopped run left
  PeriodKey run;                    // of a store: whose lock it is
  bool leftover =
      false;  // its run's fence was burnt or its row deleted; free at `until` at the latest
};

// By key, Redis first. InvalidArgument: no place is named.
absl::StatusOr<std::vector<LockView>> ReadLocks(const LockPlaces& places);

struct ReleasedLock {
  std::string holder;
  int64_t fence = 0;
  bool asked = false;  // its owner was asked to stop, and the lock is free when it has
  std::string text;    // for people: what was done
};

// In Redis: the lease ends now and its fence is burnt; the owner learns of it at its next renewal.
// In a store: the lock is its run's lease, so the run is cancelled. Recorded with who and why,
// which is required. NotFound: nobody holds it. Where both places are named, Redis is asked first.
absl::StatusOr<ReleasedLock> ReleaseLock(const LockPlaces& places, const std::string& key,
                                         absl::string_view why);

}  // namespace matins

#endif  // MATINS_OPS_LOCKS_H_
