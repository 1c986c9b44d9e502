// How lanes wake one another: a bell that stays rung until its lane has heard it.
#ifndef MATINS_ENGINE_DOORBELL_H_
#define MATINS_ENGINE_DOORBELL_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace matins {

// Thread-safe. A ring is never lost: one that comes between two waits ends the next wait at once.
class Doorbell {
 public:
  void Ring() {
    std::function<void()> also;
    {
      absl::MutexLock lock(&mutex_);
      rung_ = true;
      also = also_;
    }
    if (also) also();
  }
  // Also called by Ring, from the ringer's thread: for a lane that waits for something else than
  // this bell.
  void OnRing(std::function<void()> also) {
    absl::MutexLock lock(&mutex_);
    also_ = std::move(also);
  }
  // Whether it was rung since it was last heard; silences it.
  bool Hear() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(rung_, false);
  }
  bool IsRung() const {
    absl::MutexLock lock(&mutex_);
    return rung_;
  }
  // Waits until it is rung, or until the boot clock says `until`. Does not silence it.
  void Wait(Clock& clock, absl::Duration until) {
    absl::MutexLock lock(&mutex_);
    clock.AwaitUntil(mutex_, absl::Condition(&rung_), until);
  }

 private:
  mutable absl::Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> also_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_ENGINE_DOORBELL_H_
