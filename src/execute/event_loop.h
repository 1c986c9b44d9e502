// Descriptors and what to do when they are ready; one thread.
#ifndef MATINS_EXECUTE_EVENT_LOOP_H_
#define MATINS_EXECUTE_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/event_fd.h"

namespace matins {

// Only Wake may be called from another thread. A callback may add and remove descriptors, its own
// among them.
class EventLoop {
 public:
  using Callback = std::function<void(uint32_t epoll_events)>;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Open();
  ~EventLoop();

  // `events`: EPOLLIN, EPOLLOUT; level-triggered. The descriptor stays the caller's.
  void Add(int fd, uint32_t events, Callback callback);
  void Change(int fd, uint32_t events);
  void Remove(int fd);

  // Waits for at most `timeout`, then calls back what is ready.
  void RunOnce(absl::Duration timeout);
  void Wake();

 private:
  explicit EventLoop(int epoll_fd) : epoll_fd_(epoll_fd) {}

  const int epoll_fd_;
  EventFd wake_;
  absl::flat_hash_map<int, std::shared_ptr<Callback>> callbacks_;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_EVENT_LOOP_H_
