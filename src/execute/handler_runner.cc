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
      work_.SignalAll();
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
    std::vector<RunRequest> one;
    one.push_back(std::move(request));
    StartAll(std::move(one));
  }

  void StartAll(std::vector<RunRequest> requests) override {
    absl::MutexLock lock(&mutex_);
    for (RunRequest& request : requests) {
      const int64_t id = request.run;
      const auto handler = options_.handlers.find(request.program.handler);
      if (handler == options_.handlers.end()) {
        events_.Push({id, NoSuchHandler(request.program.handler)});
        continue;
      }
      auto run = std::make_shared<Run>(*this, std::move(request), handler->second);
      next_act_ = std::min(next_act_, run->plan.NextAt());
      runs_[id] = run;
      waiting_.push_back(std::move(run));
    }
    if (waiting_.empty()) return;
    // Threads that are awake come to it at once, if what they run is short.
    const bool held_up = options_.clock->BootNow() - taken_at_ >= kStuck;
    if (held_up || busy_ - idle_ < kEagerThreads) Wake(1);
    ++changes_;
  }

  void Stop(int64_t run, StopReason reason, absl::Duration grace) override {
    absl::MutexLock lock(&mutex_);
    auto it = runs_.find(run);
    if (it == runs_.end()) return;
    it->second->plan.Ask(reason, options_.clock->BootNow(), grace);
    next_act_ = absl::ZeroDuration();
    ++changes_;
  }

  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override {
    absl::MutexLock lock(&mutex_);
    for (const DeadlineMove& move : moves) {
      auto it = runs_.find(move.run);
      if (it == runs_.end()) continue;
      it->second->plan.MoveLease(move.lease);
      next_act_ = std::min(next_act_, it->second->plan.NextAt());
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

  // The next that waits, once there is one; null: closing.
  std::shared_ptr<Run> AwaitOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (waiting_.empty() && !closing_) {
      ++idle_;
      work_.Wait(&mutex_);
      --idle_;
    }
    if (closing_) return nullptr;
    std::shared_ptr<Run> run = std::move(waiting_.front());
    waiting_.pop_front();
    taken_at_ = options_.clock->BootNow();
    return run;
  }

  std::shared_ptr<Run> NextRun() {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Run> run = AwaitOne();
    // The process slept over its lease: the watchdog has not looked yet, or is at it.
    const auto stopped = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      run->plan.Due(taken_at_);
      return run->plan.reason() != StopReason::kNone;
    };
    while (run != nullptr && stopped()) {
      EndUnstarted(*run);
      run = AwaitOne();
    }
    if (run == nullptr) return nullptr;
    run->entered = true;
    grow_ = 1;
    // While more are to come, whoever listens need not be woken for each.
    quiet_ |= !waiting_.empty();
    RunnerEvent started{run->what.run, RunStarted{.at = taken_at_}};
    waiting_.empty() ? events_.Push(std::move(started)) : events_.PushQuietly(std::move(started));
    // One more while others wait: handlers that end at once need few threads, and those that do
    // not are seen by the watchdog.
    if (!waiting_.empty() && busy_ - idle_ < kEagerThreads) Wake(1);
    return run;
  }

  // Lets up to `count` more threads take what waits.
  void Wake(int count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    count = std::min(count, static_cast<int>(waiting_.size()));
    int idle = idle_;
    for (; count > 0; --count) {
      if (idle-- > 0) {
        work_.Signal();
      } else if (busy_ < options_.threads) {
        ++busy_;
        threads_.emplace_back([this] { Work(); });
      }
    }
  }

  void End(Run& run, absl::Status status, bool dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    run.let_go = true;
    const int64_t id = run.what.run;
    events_.Push(
        {id, HandlerEnded(std::move(status), dead, run.plan.reason(), std::move(run.output))});
    runs_.erase(id);
  }

  void EndUnstarted(Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    End(run, absl::AbortedError("stopped before a thread was free for it"), /*dead=*/true);
  }

  // ---- the watchdog ----

  // Never waits long at a time: the wait itself may not count a suspended machine's sleep. While
  // runs wait for a thread it looks often whether those that are awake come to them.
  void Watch() {
    absl::MutexLock lock(&mutex_);
    while (!closing_) {
      const int64_t seen = changes_;
      const bool busy = !waiting_.empty() || quiet_;
      const absl::Duration look = busy ? kStuck : absl::Seconds(1);
      const absl::Duration next = std::min(options_.clock->BootNow() + look, next_act_);
      auto wake = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return closing_ || changes_ != seen;
      };
      options_.clock->AwaitUntil(mutex_, absl::Condition(&wake), next);
      const absl::Duration now = options_.clock->BootNow();
      if (!waiting_.empty() && now - taken_at_ >= kStuck) {
        Wake(grow_);
        grow_ = std::min(2 * grow_, options_.threads);
      }
      if (std::exchange(quiet_, false)) events_.Flush();
      if (now >= next_act_) Act(now);
    }
  }

  void Act(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    next_act_ = absl::InfiniteDuration();
    std::vector<std::shared_ptr<Run>> runs;
    for (auto& [id, run] : runs_) runs.push_back(run);
    for (auto& run : runs) {
      const StopPlan::Act act = run->plan.Due(now);
      if (act == StopPlan::Act::kNothing) continue;
      RequestStop(*run);
      if (run->let_go) continue;  // it returned while its token was being set
      if (!run->entered) {
        std::erase(waiting_, run);
        EndUnstarted(*run);
      } else if (act == StopPlan::Act::kKill) {
        LetGo(*run);
      }
    }
    for (auto& [id, run] : runs_) next_act_ = std::min(next_act_, run->plan.NextAt());
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

  // So many threads are woken without a look at whether the others are held up.
  static constexpr int kEagerThreads = 2;
  // A run that waits so long for a thread gets another.
  static constexpr absl::Duration kStuck = absl::Microseconds(500);

  const HandlerRunnerOptions options_;
  EventQueue events_;
  absl::Mutex mutex_;
  absl::CondVar work_;  // something waits, or closing
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // each is a reason for the watchdog to look
  absl::Duration next_act_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();  // at the latest
  bool quiet_ ABSL_GUARDED_BY(mutex_) = false;  // an event lies there that nobody was woken for
  absl::Duration taken_at_ ABSL_GUARDED_BY(mutex_);  // when a thread took the last run
  int grow_ ABSL_GUARDED_BY(mutex_) = 1;             // threads that the next look adds
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
