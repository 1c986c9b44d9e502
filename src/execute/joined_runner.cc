#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "execute/handler_runner.h"

namespace matins {
namespace {

class JoinedRunner final : public Runner {
 public:
  JoinedRunner(std::unique_ptr<Runner> processes, std::unique_ptr<Runner> handlers)
      : processes_(std::move(processes)), handlers_(std::move(handlers)) {}

  void Start(RunRequest request) override {
    Runner& runner = request.program.handler.empty() ? *processes_ : *handlers_;
    runner.Start(std::move(request));
  }
  void StartAll(std::vector<RunRequest> requests) override {
    const auto handlers = std::stable_partition(
        requests.begin(), requests.end(),
        [](const RunRequest& request) { return request.program.handler.empty(); });
    std::vector<RunRequest> for_handlers(std::make_move_iterator(handlers),
                                         std::make_move_iterator(requests.end()));
    requests.erase(handlers, requests.end());
    if (!requests.empty()) processes_->StartAll(std::move(requests));
    if (!for_handlers.empty()) handlers_->StartAll(std::move(for_handlers));
  }
  // Each passes over the runs that it does not know.
  void Stop(int64_t run, StopReason reason, absl::Duration grace) override {
    processes_->Stop(run, reason, grace);
    handlers_->Stop(run, reason, grace);
  }
  void StopBySignal(int64_t run, StopReason reason, absl::Duration grace, int signal) override {
    processes_->StopBySignal(run, reason, grace, signal);
    handlers_->Stop(run, reason, grace);
  }
  void PassSignal(int64_t run, int signal) override { processes_->PassSignal(run, signal); }
  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override {
    processes_->MoveDeadlines(moves);
    handlers_->MoveDeadlines(moves);
  }
  void Reply(int64_t run, int64_t ask, RunAnswer answer) override {
    processes_->Reply(run, ask, answer);
    handlers_->Reply(run, ask, std::move(answer));
  }
  std::vector<RunnerEvent> Poll() override {
    std::vector<RunnerEvent> events = handlers_->Poll();
    for (RunnerEvent& event : processes_->Poll()) events.push_back(std::move(event));
    return events;
  }
  void SetWakeUp(std::function<void()> wake_up) override {
    processes_->SetWakeUp(wake_up);
    handlers_->SetWakeUp(std::move(wake_up));
  }

 private:
  const std::unique_ptr<Runner> processes_;
  const std::unique_ptr<Runner> handlers_;
};

}  // namespace

std::unique_ptr<Runner> JoinRunners(std::unique_ptr<Runner> processes,
                                    std::unique_ptr<Runner> handlers) {
  return std::make_unique<JoinedRunner>(std::move(processes), std::move(handlers));
}

}  // namespace matins
