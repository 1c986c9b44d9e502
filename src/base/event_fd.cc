#include "base/event_fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace matins {

EventFd::EventFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

EventFd::~EventFd() {
  if (ok()) close(fd_);
}

void EventFd::Ring() {
  const uint64_t one = 1;
  // Full: it rings already.
  [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
}

void EventFd::Take() {
  uint64_t count;
  [[maybe_unused]] const ssize_t taken = read(fd_, &count, sizeof count);
}

}  // namespace matins
