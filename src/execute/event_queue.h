// The events of a runner on their way to whoever polls.
#ifndef MATINS_EXECUTE_EVENT_QUEUE_H_
#define MATINS_EXECUTE_EVENT_QUEUE_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "execute/runner.h"

namespace matins {

// Thread-safe. Output that nobody fetches is dropped past 4 MiB, so that a lane that hangs costs
// bounded memory; no other event is ever dropped.
class EventQueue {
 public:
  void SetWakeUp(std::function<void()> wake_up);
  void Push(RunnerEvent event);
  // Without a wake-up; whoever pushes it sees to one (Push, or Flush) soon.
  void PushQuietly(RunnerEvent event);
  // Wakes where something lies here that nobody was woken for.
  void Flush();
  std::vector<RunnerEvent> TakeAll();

 private:
  std::function<void()> Add(RunnerEvent event, bool wake);

  absl::Mutex mutex_;
  std::function<void()> wake_up_ ABSL_GUARDED_BY(mutex_);
  std::vector<RunnerEvent> events_ ABSL_GUARDED_BY(mutex_);
  size_t output_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // since the last TakeAll
};

}  // namespace matins

#endif  // MATINS_EXECUTE_EVENT_QUEUE_H_
