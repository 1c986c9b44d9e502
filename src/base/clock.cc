#include "base/clock.h"

#include <ctime>

#include "base/alarms.h"
#include "base/fault.h"

namespace matins {
namespace {

class RealClock final : public Clock {
 public:
  // Not absl::Now, which sees a step seconds later: it counts cycles of the processor meanwhile.
  absl::Time WallNow() override {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return absl::TimeFromTimespec(now);
  }
  absl::Duration BootNow() override {
    timespec now;
    clock_gettime(IsMutant(Mutant::kMonotonicClock) ? CLOCK_MONOTONIC : CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }
  bool AwaitUntil(absl::Mutex& mutex, const absl::Condition& wake, absl::Duration until) override {
    return Alarms::Instance().Await(mutex, wake, until);
  }
};

}  // namespace

Clock& SystemClock() {
  static RealClock* const clock = new RealClock;
  return *clock;
}

absl::Time ManualClock::WallNow() {
  absl::MutexLock lock(&mutex_);
  return wall_;
}

absl::Duration ManualClock::BootNow() {
  absl::MutexLock lock(&mutex_);
  return boot_;
}

bool ManualClock::AwaitUntil(absl::Mutex& mutex, const absl::Condition& wake,
                             absl::Duration until) {
  // Virtual time does not pass by waiting; look again often enough for a thread that shares this
  // clock.
  while (!wake.Eval()) {
    if (BootNow() >= until) return false;
    mutex.AwaitWithTimeout(wake, absl::Milliseconds(1));
  }
  return true;
}

void ManualClock::Advance(absl::Duration d) {
  absl::MutexLock lock(&mutex_);
  wall_ += d;
  boot_ += d;
}

void ManualClock::StepWall(absl::Duration d) {
  absl::MutexLock lock(&mutex_);
  wall_ += d;
}

}  // namespace matins
