#include "base/alarms.h"

#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/clock.h"

namespace matins {
namespace {

void Empty(int fd) {
  uint64_t count;
  while (read(fd, &count, sizeof count) > 0) {
  }
}

}  // namespace

Alarms& Alarms::Instance() {
  static Alarms* const alarms = new Alarms;
  return *alarms;
}

Alarms::Alarms() : timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (timer_ < 0 || !bell_.ok()) {
    std::perror("matins: no descriptor for a timer");
    std::abort();
  }
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread([this] { Run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Alarms::Await(absl::Mutex& mutex, const absl::Condition& wake,
                   absl::Duration until) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (wake.Eval()) return true;
  if (until == absl::InfiniteDuration()) {
    mutex.Await(wake);
    return true;
  }
  Alarm alarm{&mutex};
  std::multimap<absl::Duration, Alarm*>::iterator entry;
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    entry = list_.emplace(until, &alarm);
    first = entry == list_.begin();
  }
  if (first) bell_.Ring();
  const auto over = [&] { return alarm.rung || wake.Eval(); };
  mutex.Await(absl::Condition(&over));
  absl::ReleasableMutexLock lock(&mutex_);
  if (alarm.listed) {
    list_.erase(entry);
    return wake.Eval();
  }
  if (!alarm.ringing) return wake.Eval();
  // It is about to take the mutex, and must not find the alarm gone.
  lock.Release();
  mutex.Unlock();
  {
    absl::MutexLock rung(&mutex_);
    const auto silent = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !alarm.ringing; };
    mutex_.Await(absl::Condition(&silent));
  }
  mutex.Lock();
  return wake.Eval();
}

Alarms::Alarm* Alarms::NextDue(absl::Duration* sleep) {
  absl::MutexLock lock(&mutex_);
  *sleep = absl::InfiniteDuration();
  if (list_.empty()) return nullptr;
  const auto first = list_.begin();
  *sleep = first->first - SystemClock().BootNow();
  if (*sleep > absl::ZeroDuration()) return nullptr;
  Alarm* const alarm = first->second;
  alarm->listed = false;
  alarm->ringing = true;
  list_.erase(first);
  return alarm;
}

void Alarms::Ring(Alarm* alarm) {
  {
    absl::MutexLock lock(alarm->mutex);
    alarm->rung = true;
  }
  absl::MutexLock lock(&mutex_);
  alarm->ringing = false;  // from here on it may be gone
}

void Alarms::Run() {
  for (;;) {
    absl::Duration sleep;
    if (Alarm* const due = NextDue(&sleep); due != nullptr) {
      Ring(due);
    } else {
      Sleep(sleep);
    }
  }
}

void Alarms::Sleep(absl::Duration at_most) {
  itimerspec wake{};
  if (at_most < absl::Hours(24)) {  // else somebody who comes first rings the bell
    wake.it_value = absl::ToTimespec(std::max(at_most, absl::Nanoseconds(1)));
  }
  timerfd_settime(timer_, 0, &wake, nullptr);
  pollfd asked[] = {{timer_, POLLIN, 0}, {bell_.fd(), POLLIN, 0}};
  poll(asked, 2, at_most < absl::Hours(24) ? -1 : 24 * 3600 * 1000);
  Empty(timer_);
  bell_.Take();
}

}  // namespace matins
