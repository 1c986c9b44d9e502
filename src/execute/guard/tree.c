#define _GNU_SOURCE
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

enum { MAX_FOUND = 8192 }; /* more wait for the next walk */

struct found {
  int pid;
  int parent;
};

struct walk {
  struct found list[MAX_FOUND];
  int count;
};

static void add(struct walk* walk, int pid, int parent) {
  if (walk->count < MAX_FOUND) walk->list[walk->count++] = (struct found){pid, parent};
}

/* The parent of `pid`, or -1. */
static int parent_of(int pid) {
  char path[64], line[512];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, line, sizeof line - 1);
  close(fd);
  if (n <= 0) return -1;
  line[n] = 0;
  /* The name may hold blanks and brackets: what follows the last bracket counts. */
  const char* after = strrchr(line, ')');
  int parent = -1;
  if (after == NULL || sscanf(after + 1, " %*c %d", &parent) != 1) return -1;
  return parent;
}

/* Children of one thread, from its `children` file; -1 where the kernel has none. */
static int add_children_of_thread(struct walk* walk, int pid, const char* tid) {
  char path[128], text[4096];
  snprintf(path, sizeof path, "/proc/%d/task/%s/children", pid, tid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? -1 : 0;
  int number = 0, digits = 0;
  ssize_t n;
  while ((n = read(fd, text, sizeof text)) > 0) {
    for (ssize_t i = 0; i < n; i++) {
      if (text[i] >= '0' && text[i] <= '9') {
        number = number * 10 + (text[i] - '0');
        digits = 1;
      } else if (digits) {
        add(walk, number, pid);
        number = digits = 0;
      }
    }
  }
  if (digits) add(walk, number, pid);
  close(fd);
  return 0;
}

static void add_children(struct walk* walk, int pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", pid);
  DIR* dir = opendir(path);
  if (dir == NULL) return;
  struct dirent* entry;
  while ((entry = readdir(dir)) != NULL) {
    if (entry->d_name[0] != '.') add_children_of_thread(walk, pid, entry->d_name);
  }
  closedir(dir);
}

static int have_children_files(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", getpid(), getpid());
  return access(path, R_OK) == 0;
}

/* The slow way, for kernels without CONFIG_PROC_CHILDREN: every process's parent, and then again
 * and again those whose parent is below the root. */
static void scan_all(struct walk* walk, int root) {
  static struct walk all;
  all.count = 0;
  DIR* dir = opendir("/proc");
  if (dir == NULL) return;
  struct dirent* entry;
  while ((entry = readdir(dir)) != NULL) {
    int pid = atoi(entry->d_name);
    if (pid > 0) add(&all, pid, parent_of(pid));
  }
  closedir(dir);
  int done = -1; /* -1 stands for the root itself */
  for (; done < walk->count; done++) {
    int parent = done < 0 ? root : walk->list[done].pid;
    for (int i = 0; i < all.count; i++) {
      if (all.list[i].parent == parent) add(walk, all.list[i].pid, parent);
    }
  }
}

static int has_ended(int pidfd) {
  struct pollfd fds = {pidfd, POLLIN, 0}; /* -1 is passed over */
  return poll(&fds, 1, 0) != 0;
}

/* -1: refused, 0: gone, 1: signalled. */
static int signal_one(struct found found, int root, int root_fd, int sig) {
  int fd = (int)syscall(SYS_pidfd_open, found.pid, 0);
  if (fd < 0 && errno == ESRCH) return 0;
  int parent = parent_of(found.pid);
  int rc = 0;
  if ((parent == found.parent || parent == root) && !has_ended(root_fd)) {
    /* The descriptor was opened before the parent was read: it is the process that was judged. */
    long sent = fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) : kill(found.pid, sig);
    rc = sent == 0 ? 1 : errno == EPERM ? -1 : 0;
  }
  if (fd >= 0) close(fd);
  return rc;
}

int tree_signal(int root, int root_fd, int sig) {
  static struct walk walk; /* too big for a stack; the guard has one thread */
  walk.count = 0;
  if (have_children_files()) {
    add_children(&walk, root);
    for (int i = 0; i < walk.count; i++) add_children(&walk, walk.list[i].pid);
  } else {
    scan_all(&walk, root);
  }
  int signalled = 0, refused = 0;
  for (int i = 0; i < walk.count; i++) {
    int rc = signal_one(walk.list[i], root, root_fd, sig);
    if (rc < 0) refused = 1;
    if (rc > 0) signalled++;
  }
  return refused ? -1 : signalled;
}
