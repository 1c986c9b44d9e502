#include "execute/event_queue.h"

namespace matins {
namespace {

constexpr size_t kMaxOutputBytes = 4 << 20;

}  // namespace

void EventQueue::SetWakeUp(std::function<void()> wake_up) {
  absl::MutexLock lock(&mutex_);
  wake_up_ = std::move(wake_up);
}

std::function<void()> EventQueue::Add(RunnerEvent event, bool wake) {
  absl::MutexLock lock(&mutex_);
  if (const auto* output = std::get_if<RunOutput>(&event.what)) {
    if (output_bytes_ + output->bytes.size() > kMaxOutputBytes) return nullptr;
    output_bytes_ += output->bytes.size();
  }
  events_.push_back(std::move(event));
  return wake && !std::exchange(woken_, true) ? wake_up_ : nullptr;
}

void EventQueue::Push(RunnerEvent event) {
  if (const auto wake_up = Add(std::move(event), true)) wake_up();
}

void EventQueue::PushQuietly(RunnerEvent event) { Add(std::move(event), false); }

void EventQueue::Flush() {
  std::function<void()> wake_up;
  {
    absl::MutexLock lock(&mutex_);
    if (!events_.empty() && !std::exchange(woken_, true)) wake_up = wake_up_;
  }
  if (wake_up) wake_up();
}

std::vector<RunnerEvent> EventQueue::TakeAll() {
  absl::MutexLock lock(&mutex_);
  output_bytes_ = 0;
  woken_ = false;
  return std::exchange(events_, {});
}

}  // namespace matins
