#define _GNU_SOURCE
#include "pass.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SURE_TO_FIT = 512 }; /* what a pipe or terminal with room takes, by POSIX */

/* Its flags would be shared with everybody who has the descriptor, a shell for one; a new opening
 * has flags of its own. */
static int open_again(int fd) {
  char path[32] = "/proc/self/fd/";
  char digits[12];
  size_t count = 0, at = strlen(path);
  for (int rest = fd; count == 0 || rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) path[at++] = digits[--count];
  path[at] = 0;
  return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void pass_open(struct pass* pass, int fd) {
  struct stat info;
  pass->kind = PASS_NOWHERE;
  pass->size = pass->at = 0;
  pass->fd = fd;
  if (fd < 0 || fstat(fd, &info) != 0) return;
  if (S_ISREG(info.st_mode)) {
    pass->kind = PASS_FILE;
  } else if (S_ISSOCK(info.st_mode)) {
    pass->kind = PASS_SOCKET;
  } else {
    const int again = open_again(fd);
    pass->kind = again >= 0 ? PASS_OPENED : PASS_POLLED;
    if (again >= 0) pass->fd = again;
  }
}

void pass_add(struct pass* pass, const char* bytes, size_t size) {
  if (pass->kind == PASS_NOWHERE) return;
  memcpy(pass->bytes, bytes, size);
  pass->size = size;
  pass->at = 0;
  pass_flush(pass);
}

static int has_room(int fd) {
  struct pollfd ask = {fd, POLLOUT, 0};
  return poll(&ask, 1, 0) == 1;
}

static ssize_t write_some(struct pass* pass) {
  const char* from = pass->bytes + pass->at;
  size_t size = pass->size - pass->at;
  if (pass->kind == PASS_SOCKET) return send(pass->fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (pass->kind == PASS_POLLED) {
    if (!has_room(pass->fd)) {
      errno = EAGAIN;
      return -1;
    }
    if (size > SURE_TO_FIT) size = SURE_TO_FIT;
  }
  return write(pass->fd, from, size);
}

void pass_flush(struct pass* pass) {
  while (pass_left(pass)) {
    const ssize_t n = write_some(pass);
    if (n > 0) {
      pass->at += (size_t)n;
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return;
    } else {
      pass->kind = PASS_NOWHERE;
      pass->at = pass->size = 0;
    }
  }
}
