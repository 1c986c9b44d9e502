#include "store/postgresql/listener.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace matins::postgresql {
namespace {

// A connection whose packets are lost looks alive for ever; so it is asked now and then.
constexpr absl::Duration kProbeEvery = absl::Seconds(30);

absl::Time Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace

Listener::Listener(ConnectionOptions options, std::string channel, bool unless_pooled)
    : connection_(std::move(options)),
      channel_(std::move(channel)),
      unless_pooled_(unless_pooled),
      enabled_(true) {}

void Listener::Listen() {
  if (unless_pooled_) {
    const auto pooled = connection_.IsPooled();
    if (!pooled.ok()) return;
    if (*pooled) {
      enabled_ = false;
      connection_.Drop();
      return;
    }
  }
  listening_ = connection_.Bare({{absl::StrCat("listen ", channel_), {}}}).ok();
  probed_ = Monotonic();
}

void Listener::Prepare() {
  if (connection_.socket() < 0) listening_ = false;
  if (!listening_) {
    Listen();
  } else if (Monotonic() - probed_ >= kProbeEvery) {
    listening_ = connection_.Bare({{"select 1", {}}}).ok();
    probed_ = Monotonic();
  }
}

Heard Listener::Await(absl::Duration at_most) {
  const absl::Time until = Monotonic() + std::max(at_most, absl::ZeroDuration());
  if (enabled_) {
    const bool was_listening = listening_ && connection_.socket() >= 0;
    Prepare();
    // What was told while nobody listened is not told again: look once more at once.
    if (listening_ && !was_listening) return Heard::kTold;
  }
  pollfd fds[2] = {{wake_.fd(), POLLIN, 0}, {listening_ ? connection_.socket() : -1, POLLIN, 0}};
  while (true) {
    const absl::Duration left = until - Monotonic();
    if (left <= absl::ZeroDuration()) break;
    const int64_t ms = std::min<int64_t>(absl::ToInt64Milliseconds(left) + 1, 3'600'000);
    if (poll(fds, 2, static_cast<int>(ms)) <= 0) continue;
    if ((fds[0].revents & POLLIN) != 0) {
      wake_.Take();
      break;
    }
    if (fds[1].revents != 0) {
      const auto told = connection_.TakeNotifications();
      if (told.ok() && *told) return Heard::kTold;
      if (!told.ok()) {
        listening_ = false;
        fds[1].fd = -1;  // wait for the rest of the time without it; no busy loop on a dead socket
      }
    }
  }
  return listening_ ? Heard::kNothing : Heard::kDeaf;
}

void Listener::Interrupt() { wake_.Ring(); }

}  // namespace matins::postgresql
