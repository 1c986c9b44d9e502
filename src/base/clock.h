// Clocks are passed in, never reached for. A node's wall clock appears in logs alone; what is due
// and whose lease lives is the store's clock (I23); what must stop is the boot clock (I19).
#ifndef MATINS_BASE_CLOCK_H_
#define MATINS_BASE_CLOCK_H_

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace matins {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // The machine's wall clock: for logs, and for SQLite, whose clock is the machine's.
  virtual absl::Time WallNow() = 0;
  // Time since boot, CLOCK_BOOTTIME: goes on while the machine sleeps, never steps.
  virtual absl::Duration BootNow() = 0;
  // Waits until BootNow() >= `until` or `wake` (a condition under `mutex`, which the caller holds)
  // is true. Returns whether `wake` was true.
  virtual bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& wake, absl::Duration until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;
  // AwaitUntil, with the longest wait instead of its end.
  bool AwaitFor(absl::Mutex& mutex, const absl::Condition& wake, absl::Duration at_most)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return AwaitUntil(mutex, wake, BootNow() + at_most);
  }
};

// The real clock of this machine.
Clock& SystemClock();

// Moves only when told; for tests, users' tests, and the simulator.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time wall) : wall_(wall) {}
  absl::Time WallNow() override;
  absl::Duration BootNow() override;
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& wake, absl::Duration until) override;
  // Both clocks go on together.
  void Advance(absl::Duration d);
  // The wall clock alone steps, as when a person or NTP sets it.
  void StepWall(absl::Duration d);

 private:
  absl::Mutex mutex_;
  absl::Time wall_ ABSL_GUARDED_BY(mutex_);
  absl::Duration boot_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_BASE_CLOCK_H_
