#include "execute/event_loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
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
  auto loop = absl::WrapUnique(new EventLoop(epoll_fd));
  EventFd& wake = loop->wake_;
  if (epoll_fd < 0 || !wake.ok()) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot watch descriptors: ", strerror(errno),
                                                     "; raise the limit of open files"));
  }
  loop->Add(wake.fd(), EPOLLIN, [&wake](uint32_t) { wake.Take(); });
  return loop;
}

EventLoop::~EventLoop() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
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

void EventLoop::Wake() { wake_.Ring(); }

}  // namespace matins
