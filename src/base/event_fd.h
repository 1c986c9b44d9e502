// A bell of the kernel: what a thread that waits for descriptors is woken by.
#ifndef MATINS_BASE_EVENT_FD_H_
#define MATINS_BASE_EVENT_FD_H_

namespace matins {

// An eventfd that never blocks. It is readable from a ring until that is taken; rings that come
// before are one. Ring may be called by any thread.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  bool ok() const { return fd_ >= 0; }  // false: there was no descriptor to have, errno says why
  int fd() const { return fd_; }
  void Ring();
  void Take();

 private:
  const int fd_;
};

}  // namespace matins

#endif  // MATINS_BASE_EVENT_FD_H_
