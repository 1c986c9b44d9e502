/* Preloaded into a node. Each file in the folder MATINS_LAB_DISK is copied to the folder MATINS_LAB_FLUSHED whenever it is synced: what
   stands there is what a disk has when the power fails that keeps nothing but what it was told to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* By the descriptor that was synced: whoever opens the file anew and closes it drops the locks that this process has on it. */
static int CopyAll(int from, int to) {
  char bytes[1 << 16];
  off_t at = 0;
  for (;;) {
    const ssize_t n = pread(from, bytes, sizeof bytes, at);
    if (n <= 0) return (int)n;
    if (write(to, bytes, (size_t)n) != n) return -1;
    at += n;
  }
}

static void Keep(int file) {
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  const char* folder = getenv("MATINS_LAB_DISK");
  const char* flushed = getenv("MATINS_LAB_FLUSHED");
  char link[64], path[PATH_MAX], made[PATH_MAX], kept[PATH_MAX];
  if (folder == NULL || flushed == NULL) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = '\0';
  struct stat what;
  if (fstat(file, &what) != 0 || !S_ISREG(what.st_mode)) return;
  const size_t in = strlen(folder);
  if (strncmp(path, folder, in) != 0 || path[in] != '/') return;
  const char* name = path + in + 1;
  if (snprintf(kept, sizeof kept, "%s/%s", flushed, name) >= (int)sizeof kept) return;
  if (snprintf(made, sizeof made, "%s/.%d", flushed, (int)getpid()) >= (int)sizeof made) return;
  pthread_mutex_lock(&one_at_a_time);
  const int to = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (to >= 0 && CopyAll(file, to) == 0) rename(made, kept);
  if (to >= 0) close(to);
  pthread_mutex_unlock(&one_at_a_time);
}

static int Synced(const char* which, int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, which);
  const int answer = real(file);
  const int error = errno;
  if (answer == 0) Keep(file);
  errno = error;
  return answer;
}

int fsync(int file) { return Synced("fsync", file); }
int fdatasync(int file) { return Synced("fdatasync", file); }
