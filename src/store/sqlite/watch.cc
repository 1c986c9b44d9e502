#include "store/sqlite/watch.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace matins::sqlite {
namespace {

constexpr absl::Duration kSoonest = absl::Microseconds(250);
constexpr absl::Duration kQuick = absl::Milliseconds(25);
// A commit that is not on the disk by then is found when the wait is over.
constexpr absl::Duration kLongestCommit = absl::Seconds(10);

}  // namespace

void CommitLooks::Looked(absl::Duration now, bool touched, bool changed) {
  if (changed) {
    not_before_ = now + kWritesPoll;
    // Where both are seen at once, the write may be of the next commit.
    since_.reset();
  }
  if (touched && !since_) since_ = now;
  if (since_ && now - *since_ > kLongestCommit) since_.reset();
}

absl::Duration CommitLooks::Next(absl::Duration now) const {
  if (since_) {
    const absl::Duration passed = now - *since_;
    return std::max(not_before_, now + std::max(kSoonest, passed < kQuick ? passed / 2 : passed));
  }
  return now < not_before_ ? not_before_ : absl::InfiniteDuration();
}

bool CommitLooks::Listens(absl::Duration now) const { return !since_ && now >= not_before_; }

WriteWatch::WriteWatch(std::string file)
    : file_(std::move(file)), inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

WriteWatch::~WriteWatch() {
  if (inotify_ >= 0) close(inotify_);
}

void WriteWatch::Listen() {
  if (watch_ >= 0 || inotify_ < 0) return;
  watch_ = inotify_add_watch(inotify_, file_.c_str(), IN_MODIFY | IN_DELETE_SELF);
}

bool WriteWatch::TakeTouched() {
  if (watch_ < 0) return false;
  bool touched = false;
  alignas(inotify_event) char buffer[4096];
  for (ssize_t n; (n = read(inotify_, buffer, sizeof buffer)) > 0;) {
    touched = true;
    for (ssize_t at = 0; at < n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      // The file is gone, and with it the watch; another may have taken its name.
      if ((event->mask & IN_IGNORED) != 0) watch_ = -1;
      at += static_cast<ssize_t>(sizeof *event + event->len);
    }
  }
  return touched;
}

void WriteWatch::Wait(absl::Duration at_most, bool listens) {
  pollfd fds[2] = {{bell_.fd(), POLLIN, 0}, {listens ? inotify_ : -1, POLLIN, 0}};
  const timespec most = absl::ToTimespec(std::clamp(at_most, absl::ZeroDuration(), absl::Hours(1)));
  if (ppoll(fds, 2, &most, nullptr) > 0 && fds[0].revents != 0) bell_.Take();
}

}  // namespace matins::sqlite
