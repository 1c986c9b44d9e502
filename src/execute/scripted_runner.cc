#include "execute/scripted_runner.h"

#include <signal.h>

#include <algorithm>
#include <utility>

namespace matins {
namespace {

absl::Duration StepAfter(const Script& script, size_t step) {
  return step < script.steps.size() ? script.steps[step].after : script.then;
}

AskKind KindOfAsk(ScriptStep::Kind kind) {
  switch (kind) {
    case ScriptStep::Kind::kCheckpoint:
      return AskKind::kCheckpoint;
    case ScriptStep::Kind::kResult:
      return AskKind::kResult;
    default:
      return AskKind::kFence;
  }
}

}  // namespace

void ScriptedRunner::Start(RunRequest request) {
  Script script = writer_(request);
  {
    absl::MutexLock lock(&mutex_);
    Advance();
    const absl::Duration now = clock_.BootNow();
    const int64_t id = request.run;
    if (!script.not_started.ok()) {
      events_.push_back({now, {id, RunNotStarted{.error = script.not_started}}});
    } else {
      events_.push_back({now, {id, RunStarted{}}});
      StopPlan plan(request.lease, request.time_out);
      const absl::Duration due = now + StepAfter(script, 0);
      runs_.emplace(id, Run{.request = std::move(request),
                            .script = std::move(script),
                            .plan = plan,
                            .due = due});
    }
  }
  WakeUp();
}

void ScriptedRunner::Stop(int64_t run, StopReason reason, absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    Advance();
    auto it = runs_.find(run);
    if (it == runs_.end()) return;
    it->second.plan.Ask(reason, clock_.BootNow(), grace);
    Advance();
  }
  WakeUp();
}

void ScriptedRunner::MoveDeadlines(absl::Span<const DeadlineMove> moves) {
  absl::MutexLock lock(&mutex_);
  Advance();
  for (const DeadlineMove& move : moves) {
    auto it = runs_.find(move.run);
    if (it != runs_.end()) it->second.plan.MoveLease(move.lease);
  }
}

void ScriptedRunner::Reply(int64_t run, int64_t ask, RunAnswer answer) {
  {
    absl::MutexLock lock(&mutex_);
    Advance();
    auto it = runs_.find(run);
    if (it == runs_.end() || !it->second.waiting || it->second.asked != ask) return;
    Run& live = it->second;
    live.waiting = false;
    if (!answer.status.ok() && live.script.ends_when_refused) {
      End(live, clock_.BootNow(), 1, 0);
      runs_.erase(it);
    } else {
      live.due = clock_.BootNow() + StepAfter(live.script, live.step);
      Advance();
    }
  }
  WakeUp();
}

std::vector<RunnerEvent> ScriptedRunner::Poll() {
  absl::MutexLock lock(&mutex_);
  Advance();
  std::stable_sort(events_.begin(), events_.end(), [](const Timed& a, const Timed& b) {
    return std::pair(a.at, a.event.run) < std::pair(b.at, b.event.run);
  });
  std::vector<RunnerEvent> polled;
  polled.reserve(events_.size());
  for (Timed& timed : events_) polled.push_back(std::move(timed.event));
  events_.clear();
  return polled;
}

void ScriptedRunner::SetWakeUp(std::function<void()> wake_up) {
  absl::MutexLock lock(&mutex_);
  wake_up_ = std::move(wake_up);
}

absl::Duration ScriptedRunner::NextAt() {
  absl::MutexLock lock(&mutex_);
  Advance();
  if (!events_.empty()) return clock_.BootNow();
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [id, run] : runs_) {
    next = std::min(next, run.plan.NextAt());
    if (!run.waiting) next = std::min(next, run.due);
  }
  return next;
}

std::vector<int64_t> ScriptedRunner::Alive() {
  absl::MutexLock lock(&mutex_);
  Advance();
  std::vector<int64_t> alive;
  for (const auto& [id, run] : runs_) alive.push_back(id);
  return alive;
}

std::vector<RunRequest> ScriptedRunner::KillNode() {
  absl::MutexLock lock(&mutex_);
  Advance();
  std::vector<RunRequest> alive;
  for (auto& [id, run] : runs_) alive.push_back(std::move(run.request));
  runs_.clear();
  events_.clear();
  return alive;
}

void ScriptedRunner::Advance() {
  const absl::Duration now = clock_.BootNow();
  for (auto it = runs_.begin(); it != runs_.end();) {
    it = AdvanceRun(it->second, now) ? runs_.erase(it) : std::next(it);
  }
}

bool ScriptedRunner::AdvanceRun(Run& run, absl::Duration now) {
  while (true) {
    const absl::Duration stop_at = run.plan.NextAt();
    const absl::Duration step_at = run.waiting ? absl::InfiniteDuration() : run.due;
    if (std::min(stop_at, step_at) > now) return false;
    if (step_at <= stop_at) {
      if (run.step == run.script.steps.size()) {
        End(run, step_at, run.script.exit_code, run.script.signal);
        return true;
      }
      TakeStep(run);
      continue;
    }
    // A wish that stands already is due now, not at the beginning of time.
    const absl::Duration at = std::max(stop_at, absl::ZeroDuration());
    const StopPlan::Act act = run.plan.Due(stop_at < absl::ZeroDuration() ? now : at);
    if (act == StopPlan::Act::kKill || !run.script.ignores_term) {
      End(run, stop_at < absl::ZeroDuration() ? now : at, -1,
          act == StopPlan::Act::kKill ? SIGKILL : SIGTERM);
      return true;
    }
  }
}

void ScriptedRunner::TakeStep(Run& run) {
  const ScriptStep& step = run.script.steps[run.step++];
  if (step.kind == ScriptStep::Kind::kOutput) {
    events_.push_back(
        {run.due, {run.request.run, RunOutput{.offset = run.output, .bytes = step.payload}}});
    run.output += static_cast<int64_t>(step.payload.size());
    run.printed += step.payload;
    run.due += StepAfter(run.script, run.step);
    return;
  }
  run.waiting = true;
  events_.push_back({run.due,
                     {run.request.run, RunAsked{.ask = ++run.asked,
                                                .kind = KindOfAsk(step.kind),
                                                .number = step.number,
                                                .payload = step.payload}}});
}

void ScriptedRunner::End(Run& run, absl::Duration at, int exit_code, int signal) {
  RunEnded ended{
      .exit_code = signal != 0 ? -1 : exit_code, .signal = signal, .stopped = run.plan.reason()};
  ended.output.head = std::move(run.printed);
  ended.output.total_bytes = run.output;
  events_.push_back({at, {run.request.run, std::move(ended)}});
}

void ScriptedRunner::WakeUp() {
  std::function<void()> wake_up;
  {
    absl::MutexLock lock(&mutex_);
    if (!events_.empty()) wake_up = wake_up_;
  }
  if (wake_up) wake_up();
}

}  // namespace matins
