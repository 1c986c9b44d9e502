// When a purge has nothing to look for.
#ifndef MATINS_STORE_PURGED_H_
#define MATINS_STORE_PURGED_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace matins {

// What a purge that left nothing had seen. Without a new end or act, and within an hour, there is
// nothing to purge again: floors rise with the time alone.
struct PurgedUpTo {
  int64_t fence = 0;  // the highest of the history's
  int64_t event = 0;  // the newest event
  absl::Time at;      // store's
};

inline bool NothingToPurge(const std::optional<PurgedUpTo>& last, const PurgedUpTo& now) {
  return last && last->fence == now.fence && last->event == now.event && now.at >= last->at &&
         now.at < last->at + absl::Hours(1);
}

}  // namespace matins

#endif  // MATINS_STORE_PURGED_H_
