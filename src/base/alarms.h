// Timed waits by the boot clock. Abseil's own (Mutex::AwaitWithTimeout, CondVar::WaitWithTimeout)
// wait for an instant of the wall clock: set back by an hour, it makes a wait of a second one of an
// hour and a second.
#ifndef MATINS_BASE_ALARMS_H_
#define MATINS_BASE_ALARMS_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event_fd.h"

namespace matins {

// One thread that sleeps by CLOCK_BOOTTIME, which goes on while the machine sleeps, and ends the
// waits of all others. Thread-safe.
class Alarms {
 public:
  // Of this process; begins with its first use.
  static Alarms& Instance();

  // Waits until SystemClock().BootNow() >= `until` or `wake` is true; whether it was. The caller
  // holds `mutex`, of which `wake` is a condition.
  bool Await(absl::Mutex& mutex, const absl::Condition& wake, absl::Duration until);

 private:
  struct Alarm {
    absl::Mutex* mutex;
    bool rung = false;                    // guarded by *mutex
    bool listed = true, ringing = false;  // guarded by Alarms::mutex_
  };

  Alarms();
  void Run();
  // Takes from the list what is due, and says how long to sleep where nothing is.
  Alarm* NextDue(absl::Duration* sleep) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ring(Alarm* alarm) ABSL_LOCKS_EXCLUDED(mutex_);
  void Sleep(absl::Duration at_most);

  int timer_;
  EventFd bell_;
  absl::Mutex mutex_;
  std::multimap<absl::Duration, Alarm*> list_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_BASE_ALARMS_H_
