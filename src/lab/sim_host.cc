#include "lab/sim_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace matins {
namespace {

// From the node's death, or a SIGKILL, to the last process's end.
constexpr absl::Duration kKillTakes = absl::Milliseconds(50);
constexpr absl::Duration kTermTakes = absl::Milliseconds(100);

PeriodKey KeyOf(const RunRequest& request) { return {request.values.job, request.values.period}; }

}  // namespace

void SimHost::Start(RunRequest request) {
  Process process;
  process.fate = parts_.prophet(request);
  process.due = clock_.BootNow() + process.fate.step;
  process.request = std::move(request);
  const int64_t run = process.request.run;
  Say(process, RunStarted{1});
  processes_[run] = std::move(process);
}

void SimHost::Stop(int64_t run, StopReason reason, absl::Duration grace) {
  const auto it = processes_.find(run);
  if (it == processes_.end() || it->second.told_why != StopReason::kNone) return;
  it->second.told = clock_.BootNow();
  it->second.told_kill = clock_.BootNow() + grace;
  it->second.told_why = reason;
}

void SimHost::MoveDeadlines(absl::Span<const DeadlineMove> moves) {
  for (const DeadlineMove& move : moves) {
    const auto it = processes_.find(move.run);
    if (it != processes_.end()) it->second.request.lease = move.lease;
  }
}

void SimHost::Reply(int64_t run, int64_t ask, RunAnswer answer) {
  const auto it = processes_.find(run);
  if (it == processes_.end() || ask != it->second.asked || !it->second.waiting) return;
  Process& process = it->second;
  process.waiting = false;
  process.due = clock_.BootNow() + process.fate.step;
  if (process.done == process.fate.steps) process.due += process.fate.before_commit;
  if (answer.status.ok()) return;
  End(process, 1, 0, StopReason::kNone);
  processes_.erase(it);
}

std::vector<RunnerEvent> SimHost::Poll() { return std::exchange(events_, {}); }

absl::Duration SimHost::TermAt(const Process& process) const {
  return std::min({process.request.lease.stop, process.request.time_out.stop, process.told});
}

absl::Duration SimHost::KillAt(const Process& process) const {
  absl::Duration at =
      std::min({process.request.lease.kill, process.request.time_out.kill, process.told_kill});
  if (!process.fate.ignores_term) at = std::min(at, TermAt(process) + kTermTakes);
  return at;
}

StopReason SimHost::WhyAt(const Process& process, absl::Duration at) const {
  if (process.told <= at) return process.told_why;
  return process.request.time_out.stop <= at ? StopReason::kTimeOut : StopReason::kLeaseLost;
}

bool SimHost::Guard(Process& process, absl::Duration now) {
  if (KillAt(process) > now) return false;
  End(process, -1, process.fate.ignores_term ? 9 : 15, WhyAt(process, TermAt(process)));
  return true;
}

bool SimHost::Work(Process& process) {
  const RunRequest& request = process.request;
  const PeriodKey key = KeyOf(request);
  if (!process.raised) {
    std::optional<int64_t> done = std::max<int64_t>(request.values.checkpoint_number, 0);
    if (!process.fate.by_job) {
      done = ledger_.Raise(key, request.values.generation, request.run);
    }
    if (!done.has_value()) return false;
    process.raised = true;
    process.done = *done;
  }
  if (process.done == process.fate.steps || process.fate.by_job) return true;
  return ledger_.Step(key, request.run, process.done + 1, parts_.store_now());
}

bool SimHost::CommitItself(Process& process) {
  if (process.fate.forgets) return true;
  if (!parts_.commit(process.request)) return false;
  for (int64_t step = 1; step <= process.fate.steps; ++step) {
    ledger_.Book(KeyOf(process.request), process.request.run, step, parts_.store_now());
  }
  return true;
}

bool SimHost::Act(Process& process) {
  if (!Work(process)) {
    End(process, 3, 0, StopReason::kNone);
    return true;
  }
  if (process.done < process.fate.steps) {
    ++process.done;
    process.waiting = true;
    process.due = absl::InfiniteDuration();
    Say(process, RunAsked{++process.asked, AskKind::kCheckpoint, process.done,
                          absl::StrCat("step ", process.done)});
    return false;
  }
  if (process.fate.hangs) {
    process.due = absl::InfiniteDuration();
    return false;
  }
  const bool refused = process.fate.by_job && !CommitItself(process);
  End(process, refused ? 3 : process.fate.exit_code, 0, StopReason::kNone);
  return true;
}

void SimHost::Advance(bool guards_first) {
  const absl::Duration now = clock_.BootNow();
  for (auto it = processes_.begin(); it != processes_.end();) {
    Process& process = it->second;
    bool ended = guards_first && Guard(process, now);
    if (!ended && process.due <= now) ended = Act(process);
    if (!ended) ended = Guard(process, now);
    it = ended ? processes_.erase(it) : std::next(it);
  }
}

absl::Duration SimHost::NextAt() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [run, process] : processes_) {
    next = std::min({next, process.due, KillAt(process)});
  }
  return next;
}

std::vector<SimHost::Orphan> SimHost::NodeDied() {
  std::vector<Orphan> orphans;
  for (auto& [run, process] : processes_) {
    if (!process.orphan) {
      orphans.push_back({run, process.request.values, process.request.give_back.nonce});
    }
    process.orphan = true;
    process.fate.ignores_term = true;
    process.told_kill = std::min(process.told_kill, clock_.BootNow() + kKillTakes);
    process.told_why = StopReason::kNodeDied;
  }
  events_.clear();
  wake_up_ = nullptr;
  return orphans;
}

void SimHost::PowerLost() {
  processes_.clear();
  events_.clear();
  wake_up_ = nullptr;
}

void SimHost::End(Process& process, int exit_code, int signal, StopReason why) {
  RunEnded ended;
  ended.exit_code = exit_code;
  ended.signal = signal;
  ended.stopped = why;
  Say(process, std::move(ended));
}

void SimHost::Say(const Process& process, decltype(RunnerEvent::what) what) {
  if (process.orphan) return;
  events_.push_back({process.request.run, std::move(what)});
  if (wake_up_) wake_up_();
}

}  // namespace matins
