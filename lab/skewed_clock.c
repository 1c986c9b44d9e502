/* Preloaded into a process. Its wall clock is off by MATINS_TEST_SKEW_S seconds, and by what the file MATINS_LAB_CLOCK says, which may
   change while the process runs: two numbers of eight bytes, microseconds as int64 of this machine, the second of which is by how much
   its time since boot is ahead. Its monotonic clock, which stands still while a machine sleeps, is MATINS_LAB_SLEPT_S seconds behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* File(void) {
  static const volatile int64_t none[2];
  const char* path = getenv("MATINS_LAB_CLOCK");
  const int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return none;
  void* mapped = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? none : (const volatile int64_t*)mapped;
}

static int64_t MicrosOf(const char* variable) {
  const char* text = getenv(variable);
  return text == NULL ? 0 : (int64_t)atol(text) * 1000000;
}

static int64_t OffBy(clockid_t clock) {
  static const volatile int64_t* volatile told;
  static int64_t fixed, slept;
  if (told == NULL) {
    fixed = MicrosOf("MATINS_TEST_SKEW_S");
    slept = MicrosOf("MATINS_LAB_SLEPT_S");
    told = File();
  }
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return fixed + told[0];
    case CLOCK_BOOTTIME:
      return told[1];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
      return -slept;
    default:
      return 0;
  }
}

int clock_gettime(clockid_t clock, struct timespec* at) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int answer = real(clock, at);
  const int64_t off = answer == 0 ? OffBy(clock) : 0;
  if (off != 0) {
    const int64_t micros = off + at->tv_nsec / 1000;
    const int64_t rest = (micros % 1000000 + 1000000) % 1000000;
    at->tv_sec += (micros - rest) / 1000000;
    at->tv_nsec = rest * 1000 + at->tv_nsec % 1000;
  }
  return answer;
}

int gettimeofday(struct timeval* restrict at, void* restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* at) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (at != NULL) *at = now.tv_sec;
  return now.tv_sec;
}
