#include "execute/event_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace matins {

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Open() {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd < 0 || wake_fd < 0) {
    const int error = errno;
    if (epoll_fd >= 0) close(epoll_fd);
    if (wake_fd >= 0) close(wake_fd);
    return absl::ResourceExhaustedError(absl::StrCat("cannot watch descriptors: ", strerror(error),
                                                     "; raise the limit of open files"));
  }
  auto loop = absl::WrapUnique(new EventLoop(epoll_fd, wake_fd));
  loop->Add(wake_fd, EPOLLIN, [wake_fd](uint32_t) {
    uint64_t count = 0;
    while (read(wake_fd, &count, sizeof(count)) > 0) {
    }
  });
  return loop;
}

EventLoop::~EventLoop() {
  close(wake_fd_);
  close(epoll_fd_);
}

void EventLoop::Add(int fd, uint32_t events, Callback callback) {
  callbacks_[fd] = std::make_shared<Callback>(std::move(callback));
  epoll_event event{.events = events, .data = {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void EventLoop::Change(int fd, uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::Remove(int fd) {
  callbacks_.erase(fd);
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

void EventLoop::RunOnce(absl::Duration timeout) {
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1)));
  std::array<epoll_event, 256> ready;
  const int count = epoll_wait(epoll_fd_, ready.data(), ready.size(),
                               static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000)));
  // The callbacks as they are now: a number that one callback closes may be another descriptor's
  // before its own turn comes, and that one was not ready.
  std::vector<std::pair<std::weak_ptr<Callback>, uint32_t>> due;
  for (int i = 0; i < count; ++i) {
    const epoll_event event = ready[i];  // the kernel packs it: its fields cannot be referred to
    const int fd = event.data.fd;
    const uint32_t events = event.events;
    auto it = callbacks_.find(fd);
    if (it != callbacks_.end()) due.emplace_back(it->second, events);
  }
  for (auto& [callback, events] : due) {
    if (std::shared_ptr<Callback> alive = callback.lock()) (*alive)(events);
  }
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof(one));
}

}  // namespace matins
