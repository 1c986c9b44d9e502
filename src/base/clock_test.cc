// A machine that sleeps, and one whose wall clock is set. This program is its own kernel in that:
// its clock_gettime stands before the C library's, and the boot clock is as much ahead as the
// machine has slept.
#include "base/clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace {

std::atomic<int64_t> slept_seconds{0};
std::atomic<time_t> wall_ahead{60};

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* now) noexcept {
  const int rc = static_cast<int>(syscall(SYS_clock_gettime, id, now));
  if (rc == 0 && id == CLOCK_BOOTTIME) now->tv_sec += slept_seconds.load();
  if (rc == 0 && id == CLOCK_REALTIME) now->tv_sec += wall_ahead.load();
  return rc;
}

// Abseil's timed waits ask this one.
extern "C" int gettimeofday(timeval* now, void* zone) noexcept {
  const int rc = static_cast<int>(syscall(SYS_gettimeofday, now, zone));
  if (rc == 0) now->tv_sec += wall_ahead.load();
  return rc;
}

namespace matins {
namespace {

TEST(SystemClock, CountsTheTimeThatTheMachineSlept) {
  const absl::Duration before = SystemClock().BootNow();
  slept_seconds += 3600;
  EXPECT_GE(SystemClock().BootNow() - before, absl::Hours(1));
}

TEST(SystemClock, WhatWasDueWhileItSleptIsDueWhenItWakes) {
  const absl::Duration due = SystemClock().BootNow() + absl::Minutes(30);
  slept_seconds += 3600;
  EXPECT_LE(due, SystemClock().BootNow());
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  const auto never = [] { return false; };
  if (due <= SystemClock().BootNow()) {
    EXPECT_FALSE(SystemClock().AwaitUntil(mutex, absl::Condition(&never), due));
  }
}

// To the kernel it is a minute earlier than to this program, as when somebody has set the clock
// back: who waits for an instant of the wall clock waits for a minute more.
TEST(SystemClock, AWaitIsNoLongerForAWallClockThatWasSetBack) {
  absl::Mutex mutex;
  const auto never = [] { return false; };
  const absl::Duration begun = SystemClock().BootNow();
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(
        SystemClock().AwaitUntil(mutex, absl::Condition(&never), begun + absl::Milliseconds(20)));
  }
  EXPECT_GE(SystemClock().BootNow() - begun, absl::Milliseconds(20));
  EXPECT_LT(SystemClock().BootNow() - begun, absl::Seconds(50));
}

// Abseil's Now asks the kernel once in seconds only, and counts processor cycles between: one
// process would take the clock for wrong that another, just begun, has seen put right.
TEST(SystemClock, AStepOfTheWallClockIsSeenAtOnce) {
  const absl::Time before = SystemClock().WallNow();
  // So long Abseil compares the two before it trusts the processor.
  while (SystemClock().WallNow() < before + absl::Seconds(5))
    absl::SleepFor(absl::Milliseconds(20));
  wall_ahead += 3600;
  EXPECT_GE(SystemClock().WallNow(), before + absl::Hours(1));
  wall_ahead -= 3600;
  EXPECT_LT(SystemClock().WallNow(), before + absl::Minutes(59));
}

TEST(SystemClock, AWaitEndsWhenItsConditionHolds) {
  absl::Mutex mutex;
  bool rung = false;
  std::thread other([&] {
    absl::MutexLock lock(&mutex);
    rung = true;
  });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(SystemClock().AwaitUntil(mutex, absl::Condition(&rung),
                                         SystemClock().BootNow() + absl::Hours(1)));
    EXPECT_TRUE(SystemClock().AwaitUntil(mutex, absl::Condition(&rung), absl::InfiniteDuration()));
  }
  other.join();
}

// Many at a time, of every length, some of them gone before their alarm.
TEST(SystemClock, EachOfManyWaitsEndsAtItsOwnTime) {
  absl::Mutex mutex;
  bool rung = false;
  std::atomic<int> late{0}, early{0};
  std::vector<std::thread> threads;
  for (int n = 0; n < 24; ++n) {
    threads.emplace_back([&, n] {
      for (int turn = 0; turn < 20; ++turn) {
        absl::Mutex own;
        absl::Mutex& lock_of = n % 2 == 0 ? mutex : own;
        const auto woken = [&] { return n % 2 == 0 && rung; };
        const absl::Duration until = SystemClock().BootNow() + absl::Microseconds(100 * (n + turn));
        absl::MutexLock lock(&lock_of);
        const bool met = SystemClock().AwaitUntil(lock_of, absl::Condition(&woken), until);
        if (!met && SystemClock().BootNow() < until) ++early;
        if (SystemClock().BootNow() > until + absl::Seconds(50)) ++late;
      }
    });
  }
  for (int turn = 0; turn < 50; ++turn) {
    absl::MutexLock lock(&mutex);
    rung = !rung;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(early, 0);
  EXPECT_EQ(late, 0);
}

}  // namespace
}  // namespace matins
