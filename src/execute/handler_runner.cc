#include "execute/handler_runner.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "execute/event_queue.h"
#include "execute/handler_call.h"
#include "execute/stop_plan.h"

namespace matins {
namespace {

class HandlerRunner final : public Runner {
 public:
  explicit HandlerRunner(HandlerRunnerOptions options)
      : options_(std::move(options)), watchdog_([this] { Watch(); }) {}

  ~HandlerRunner() override {
    std::vector<std::thread> threads;
    std::vector<std::shared_ptr<Run>> runs;
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
      waiting_.clear();
      for (auto& [id, run] : runs_) runs.push_back(run);
      // Those in Ask wake up refused.
      for (auto& run : runs) run->let_go = true;
      threads.swap(threads_);
    }
    for (auto& run : runs) run->stop_source.request_stop();
    watchdog_.join();
    for (std::thread& thread : threads) thread.join();
  }

  void Start(RunRequest request) override {
    const int64_t id = request.run;
    auto handler = options_.handlers.find(request.program.handler);
    if (handler == options_.handlers.end()) {
      events_.Push({id, NoSuchHandler(request.program.handler)});
      return;
    }
    absl::MutexLock lock(&mutex_);
    auto run = std::make_shared<Run>(*this, std::move(request), handler->second);
    runs_[id] = run;
    waiting_.push_back(std::move(run));
    ++changes_;
    if (waiting_.size() > static_cast<size_t>(idle_) && busy_ < options_.threads) {
      ++busy_;
      threads_.emplace_back([this] { Work(); });
    }
  }

  void Stop(int64_t run, StopReason reason, absl::Duration grace) override {
    absl::MutexLock lock(&mutex_);
    auto it = runs_.find(run);
    if (it == runs_.end()) return;
    it->second->plan.Ask(reason, options_.clock->BootNow(), grace);
    ++changes_;
  }

  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override {
    absl::MutexLock lock(&mutex_);
    for (const DeadlineMove& move : moves) {
      auto it = runs_.find(move.run);
      if (it != runs_.end()) it->second->plan.MoveLease(move.lease);
    }
    ++changes_;
  }

  void Reply(int64_t run, int64_t ask, RunAnswer answer) override {
    absl::MutexLock lock(&mutex_);
    auto it = runs_.find(run);
    if (it == runs_.end()) return;
    auto asked = it->second->answers.find(ask);
    if (asked != it->second->answers.end() && !asked->second) asked->second = std::move(answer);
  }

  std::vector<RunnerEvent> Poll() override { return events_.TakeAll(); }
  void SetWakeUp(std::function<void()> wake_up) override { events_.SetWakeUp(std::move(wake_up)); }

 private:
  struct Run final : public HandlerContext {
    Run(HandlerRunner& runner, RunRequest request, Handler handler)
        : runner(runner),
          what(std::move(request)),
          handler(std::move(handler)),
          plan(what.lease, what.time_out) {}

    const RunRequest& request() const override { return what; }
    std::stop_token stop_token() const override { return stop_source.get_token(); }
    StopReason stop_reason() const override {
      absl::MutexLock lock(&runner.mutex_);
      return stop_source.stop_requested() ? plan.reason() : StopReason::kNone;
    }
    absl::StatusOr<std::string> Ask(AskKind kind, int64_t number, std::string payload) override {
      return runner.Ask(*this, {.kind = kind, .number = number, .payload = std::move(payload)});
    }
    void Print(absl::string_view text) override { runner.Print(*this, text); }

    HandlerRunner& runner;
    const RunRequest what;
    const Handler handler;
    std::stop_source stop_source;
    // All below under the runner's mutex.
    StopPlan plan;
    OutputKept output;
    int64_t last_ask = 0;
    std::map<int64_t, std::optional<RunAnswer>> answers;
    bool entered = false;
    bool let_go = false;  // its end was told, or nobody listens any more

    bool Refused() const { return let_go || plan.reason() == StopReason::kLeaseLost; }
  };

  absl::StatusOr<std::string> Ask(Run& run, RunAsked asked) {
    absl::MutexLock lock(&mutex_);
    if (run.Refused()) return LeaseLostError();
    asked.ask = ++run.last_ask;
    auto answer = run.answers.emplace(asked.ask, std::nullopt).first;
    events_.Push({run.what.run, asked});
    auto done = [&] { return run.Refused() || answer->second.has_value(); };
    mutex_.Await(absl::Condition(&done));
    std::optional<RunAnswer> told = std::move(answer->second);
    run.answers.erase(answer);
    if (!told) return LeaseLostError();
    RETURN_IF_ERROR(told->status);
    return std::move(told->text);
  }

  void Print(Run& run, absl::string_view text) {
    absl::MutexLock lock(&mutex_);
    if (run.let_go) return;
    const int64_t offset = run.output.total_bytes;
    run.output.Append(text, run.what.output);
    events_.Push({run.what.run, RunOutput{.offset = offset, .bytes = std::string(text)}});
  }

  // ---- the pool ----

  void Work() {
    while (std::shared_ptr<Run> run = NextRun()) {
      absl::Status status = CallHandler(run->handler, *run);
      absl::MutexLock lock(&mutex_);
      if (run->let_go) return;  // its place was given away then
      End(*run, std::move(status), /*dead=*/true);
    }
  }

  std::shared_ptr<Run> NextRun() {
    absl::MutexLock lock(&mutex_);
    ++idle_;
    auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return closing_ || !waiting_.empty();
    };
    mutex_.Await(absl::Condition(&ready));
    --idle_;
    if (closing_) return nullptr;
    std::shared_ptr<Run> run = std::move(waiting_.front());
    waiting_.pop_front();
    run->entered = true;
    events_.Push({run->what.run, RunStarted{}});
    return run;
  }

  void End(Run& run, absl::Status status, bool dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    run.let_go = true;
    const int64_t id = run.what.run;
    events_.Push(
        {id, HandlerEnded(std::move(status), dead, run.plan.reason(), std::move(run.output))});
    runs_.erase(id);
  }

  // ---- the watchdog ----

  // Never waits long at a time: the wait itself may not count a suspended machine's sleep.
  void Watch() {
    absl::MutexLock lock(&mutex_);
    while (!closing_) {
      const int64_t seen = changes_;
      absl::Duration next = options_.clock->BootNow() + absl::Seconds(1);
      for (auto& [id, run] : runs_) next = std::min(next, run->plan.NextAt());
      auto wake = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closing_ || changes_ != seen;
      };
      options_.clock->AwaitUntil(mutex_, absl::Condition(&wake), next);
      Act(options_.clock->BootNow());
    }
  }

  void Act(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::shared_ptr<Run>> runs;
    for (auto& [id, run] : runs_) runs.push_back(run);
    for (auto& run : runs) {
      const StopPlan::Act act = run->plan.Due(now);
      if (act == StopPlan::Act::kNothing) continue;
      RequestStop(*run);
      if (run->let_go) continue;  // it returned while its token was being set
      if (!run->entered) {
        std::erase(waiting_, run);
        End(*run, absl::AbortedError("stopped before a thread was free for it"), /*dead=*/true);
      } else if (act == StopPlan::Act::kKill) {
        LetGo(*run);
      }
    }
  }

  // A callback on the token may call back into here, or take its time.
  void RequestStop(Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    mutex_.Unlock();
    run.stop_source.request_stop();
    mutex_.Lock();
  }

  void LetGo(Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (AbortsProcess(run.what, run.plan.reason())) {
      options_.abort_process ? options_.abort_process(run.what) : AbortProcess(run.what);
    }
    End(run, LetGoError(), /*dead=*/false);
    // Its thread is lost for now; the next run gets another.
    if (!waiting_.empty() && idle_ == 0) {
      threads_.emplace_back([this] { Work(); });
    } else {
      --busy_;
    }
  }

  const HandlerRunnerOptions options_;
  EventQueue events_;
  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // each is a reason for the watchdog to look
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  int busy_ ABSL_GUARDED_BY(mutex_) = 0;  // threads, less those of functions that were let go
  std::map<int64_t, std::shared_ptr<Run>> runs_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<Run>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread watchdog_;
};

}  // namespace

std::unique_ptr<Runner> NewHandlerRunner(HandlerRunnerOptions options) {
  return std::make_unique<HandlerRunner>(std::move(options));
}

}  // namespace matins
