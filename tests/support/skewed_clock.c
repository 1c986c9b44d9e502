/* Preloaded into a node by tests: its wall clock is off by MATINS_TEST_SKEW_S seconds. The
   monotonic clocks stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t Skew(void) {
  const char* text = getenv("MATINS_TEST_SKEW_S");
  return text == NULL ? 0 : (time_t)atol(text);
}

int clock_gettime(clockid_t clock, struct timespec* at) {
  static int (*real)(clockid_t, struct timespec*);
  if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int answer = real(clock, at);
  if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    at->tv_sec += Skew();
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
