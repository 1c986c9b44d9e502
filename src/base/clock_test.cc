// A machine that sleeps. This program is its own kernel in that: its clock_gettime stands before
// the C library's, and the boot clock is as much ahead as the machine has slept.
#include "base/clock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "gtest/gtest.h"

namespace {

std::atomic<int64_t> slept_seconds{0};

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* now) noexcept {
  const int rc = static_cast<int>(syscall(SYS_clock_gettime, id, now));
  if (rc == 0 && id == CLOCK_BOOTTIME) now->tv_sec += slept_seconds.load();
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

}  // namespace
}  // namespace matins
