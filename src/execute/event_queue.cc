#include "execute/event_queue.h"

namespace matins {
namespace {

constexpr size_t kMaxOutputBytes = 4 << 20;

}  // namespace

void EventQueue::SetWakeUp(std::function<void()> wake_up) {
  absl::MutexLock lock(&mutex_);
  wake_up_ = std::move(wake_up);
}

void EventQueue::Push(RunnerEvent event) {
  std::function<void()> wake_up;
  {
    absl::MutexLock lock(&mutex_);
    if (const auto* output = std::get_if<RunOutput>(&event.what)) {
      if (output_bytes_ + output->bytes.size() > kMaxOutputBytes) return;
      output_bytes_ += output->bytes.size();
    }
    if (events_.empty()) wake_up = wake_up_;
    events_.push_back(std::move(event));
  }
  if (wake_up) wake_up();
}

std::vector<RunnerEvent> EventQueue::TakeAll() {
  absl::MutexLock lock(&mutex_);
  output_bytes_ = 0;
  return std::exchange(events_, {});
}

}  // namespace matins
