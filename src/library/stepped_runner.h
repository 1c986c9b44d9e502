// Runs handlers in the thread of whoever steps: no thread, no wait, the same order every time.
#ifndef MATINS_LIBRARY_STEPPED_RUNNER_H_
#define MATINS_LIBRARY_STEPPED_RUNNER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "execute/event_queue.h"
#include "execute/handler_runner.h"
#include "execute/runner.h"

namespace matins {

// Not thread-safe, but for Print and Poll.
class SteppedRunner final : public Runner {
 public:
  // `answer_asks` carries what a run asks to the store and comes back with Reply.
  SteppedRunner(std::map<std::string, Handler> handlers, Clock& clock,
                std::function<void()> answer_asks)
      : handlers_(std::move(handlers)), clock_(clock), answer_asks_(std::move(answer_asks)) {}

  void Start(RunRequest request) override;
  void Stop(int64_t run, StopReason reason, absl::Duration grace) override;
  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override;
  void Reply(int64_t run, int64_t ask, RunAnswer answer) override;
  std::vector<RunnerEvent> Poll() override { return events_.TakeAll(); }
  void SetWakeUp(std::function<void()> wake_up) override { events_.SetWakeUp(std::move(wake_up)); }

  // Calls the handler of the run that was started first of those that wait, to its end. False: none
  // waits, or a handler is running already.
  bool RunNext();
  // Deadlines that have passed tell their runs to stop, or let them go.
  void ActOnDeadlines();
  // Nothing may be asked any more.
  void Close() { closed_ = true; }

 private:
  struct Run;
  using RunPtr = std::shared_ptr<Run>;

  absl::StatusOr<std::string> Ask(Run& run, AskKind kind, int64_t number, std::string payload);
  void Act(Run& run);
  void End(Run& run, absl::Status status, bool dead);

  const std::map<std::string, Handler> handlers_;
  Clock& clock_;
  const std::function<void()> answer_asks_;
  EventQueue events_;
  std::map<int64_t, RunPtr> runs_;
  std::deque<RunPtr> waiting_;
  bool running_ = false;
  bool closed_ = false;
};

}  // namespace matins

#endif  // MATINS_LIBRARY_STEPPED_RUNNER_H_
