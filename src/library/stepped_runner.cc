#include "library/stepped_runner.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "execute/handler_call.h"
#include "execute/stop_plan.h"

namespace matins {

struct SteppedRunner::Run final : public HandlerContext {
  Run(SteppedRunner& runner, RunRequest request, Handler handler)
      : runner(runner),
        what(std::move(request)),
        handler(std::move(handler)),
        plan(what.lease, what.time_out) {}

  const RunRequest& request() const override { return what; }
  std::stop_token stop_token() const override { return stop_source.get_token(); }
  StopReason stop_reason() const override {
    return stop_source.stop_requested() ? plan.reason() : StopReason::kNone;
  }
  absl::StatusOr<std::string> Ask(AskKind kind, int64_t number, std::string payload) override {
    return runner.Ask(*this, kind, number, std::move(payload));
  }
  void Print(absl::string_view text) override {
    if (let_go) return;
    const int64_t offset = output.total_bytes;
    output.Append(text, what.output);
    runner.events_.Push({what.run, RunOutput{.offset = offset, .bytes = std::string(text)}});
  }

  SteppedRunner& runner;
  const RunRequest what;
  const Handler handler;
  std::stop_source stop_source;
  StopPlan plan;
  OutputKept output;
  int64_t last_ask = 0;
  std::optional<RunAnswer> answer;
  bool entered = false;
  bool let_go = false;  // its end was told
};

void SteppedRunner::Start(RunRequest request) {
  const int64_t id = request.run;
  const std::string& name = request.program.handler;
  const auto handler = handlers_.find(name);
  if (handler == handlers_.end()) {
    RunNotStarted without = NoSuchHandler(name);
    if (name.empty()) {
      without.error = absl::FailedPreconditionError(
          "with a TestClock no process is started; give the job a handler");
    }
    events_.Push({id, std::move(without)});
    return;
  }
  auto run = std::make_shared<Run>(*this, std::move(request), handler->second);
  runs_[id] = run;
  waiting_.push_back(std::move(run));
}

void SteppedRunner::Stop(int64_t run, StopReason reason, absl::Duration grace) {
  const auto it = runs_.find(run);
  if (it != runs_.end()) it->second->plan.Ask(reason, clock_.BootNow(), grace);
}

void SteppedRunner::MoveDeadlines(absl::Span<const DeadlineMove> moves) {
  for (const DeadlineMove& move : moves) {
    const auto it = runs_.find(move.run);
    if (it != runs_.end()) it->second->plan.MoveLease(move.lease);
  }
}

void SteppedRunner::Reply(int64_t run, int64_t ask, RunAnswer answer) {
  const auto it = runs_.find(run);
  if (it != runs_.end() && it->second->last_ask == ask) it->second->answer = std::move(answer);
}

bool SteppedRunner::RunNext() {
  if (running_ || waiting_.empty()) return false;
  const RunPtr run = std::move(waiting_.front());
  waiting_.pop_front();
  if (run->let_go) return true;
  running_ = run->entered = true;
  events_.Push({run->what.run, RunStarted{}});
  answer_asks_();
  absl::Status status = CallHandler(run->handler, *run);
  running_ = false;
  Act(*run);
  if (!run->let_go) End(*run, std::move(status), /*dead=*/true);
  return true;
}

void SteppedRunner::ActOnDeadlines() {
  std::vector<RunPtr> runs;
  for (const auto& [id, run] : runs_) runs.push_back(run);
  for (const RunPtr& run : runs) Act(*run);
}

void SteppedRunner::Act(Run& run) {
  if (run.let_go) return;
  const StopPlan::Act act = run.plan.Due(clock_.BootNow());
  if (act == StopPlan::Act::kNothing) return;
  run.stop_source.request_stop();
  if (!run.entered) {
    End(run, absl::AbortedError("stopped before its handler was called"), /*dead=*/true);
    return;
  }
  if (act != StopPlan::Act::kKill) return;
  if (AbortsProcess(run.what, run.plan.reason())) AbortProcess(run.what);
  End(run, LetGoError(), /*dead=*/false);
}

absl::StatusOr<std::string> SteppedRunner::Ask(Run& run, AskKind kind, int64_t number,
                                               std::string payload) {
  Act(run);
  if (closed_ || run.let_go || run.plan.reason() == StopReason::kLeaseLost) return LeaseLostError();
  run.answer.reset();
  events_.Push(
      {run.what.run,
       RunAsked{
           .ask = ++run.last_ask, .kind = kind, .number = number, .payload = std::move(payload)}});
  answer_asks_();
  if (!run.answer) return absl::UnavailableError("the store did not answer; ask again");
  RETURN_IF_ERROR(run.answer->status);
  return std::move(run.answer->text);
}

void SteppedRunner::End(Run& run, absl::Status status, bool dead) {
  run.let_go = true;
  events_.Push({run.what.run,
                HandlerEnded(std::move(status), dead, run.plan.reason(), std::move(run.output))});
  runs_.erase(run.what.run);
}

}  // namespace matins
