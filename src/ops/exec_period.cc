// One period of a call of `matins exec`: START, the run, its end, or who else has it.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/door_keys.h"
#include "ops/exec_call.h"

namespace matins {
namespace {

// Between looks at what another is at.
constexpr absl::Duration kLookAgain = absl::Milliseconds(300);
// Another call's START of the same row is under way.
constexpr absl::Duration kAtOnce = absl::Milliseconds(3);
constexpr int kMostTries = 1000;
// How long the end of a run is told to the store before this call gives up, beyond the lease.
constexpr absl::Duration kGiveUp = absl::Seconds(30);

std::string Named(const PeriodRow& row) { return absl::StrCat(row.key.job, " ", row.key.period); }

bool EndsTheCall(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

std::string RunningText(const PeriodRow& row) {
  return absl::StrCat(Named(row), " is run by ", row.node.empty() ? "another program" : row.node,
                      " since ",
                      FormatInstant(absl::FromUnixSeconds(absl::ToUnixSeconds(row.claimed_at))),
                      row.fence != 0 ? absl::StrCat(" (run ", row.fence, ")") : "");
}

}  // namespace

// ---- waiting ------------------------------------------------------------------------------------

void ExecCall::TakeSignal(int signal) {
  if (signal == 0) return;
  if (!EndsTheCall(signal)) {
    if (turn_ != nullptr) turn_->PassSignal(signal);
    return;
  }
  if (asked_to_end_ == 0) asked_to_end_ = signal;
  if (turn_ != nullptr && turn_->running()) turn_->StopBySignal(signal);
}

bool ExecCall::WaitUntil(absl::Duration until) {
  while (asked_to_end_ == 0 && SystemClock().BootNow() < until) TakeSignal(host_.Wait(until));
  return asked_to_end_ == 0;
}

ExecAnswer ExecCall::Stopped() const { return {ExecEnd::kStopped, 128 + asked_to_end_}; }

ExecCall::Next ExecCall::Again(absl::Duration in) const {
  return {Next::Kind::kAgain, SystemClock().BootNow() + in, {}};
}

// ---- a period -----------------------------------------------------------------------------------

ExecCall::Verdict ExecCall::RunPeriod(const PeriodRow& row) {
  Next next{Next::Kind::kAgain, seen_.BootAt(row.not_before), {}};
  for (int tries = 0; next.kind == Next::Kind::kAgain; ++tries) {
    if (!WaitUntil(next.at)) return Stopped();
    if (tries == kMostTries && request_.if_held != IfHeld::kWait) {
      return absl::AbortedError(absl::StrCat(Named(row),
                                             ": other planners and STARTs were quicker ",
                                             kMostTries, " times; nothing was run, try again"));
    }
    ASSIGN_OR_RETURN(next, Attempt(row));
  }
  if (next.kind == Next::Kind::kOver) return next.answer;
  return std::nullopt;
}

// A door saves the losers of a race from the store's lock, and may lie: where the store does not
// say the same, it is asked to START all the same, one lease later at most (I22).
absl::StatusOr<std::optional<ExecCall::Next>> ExecCall::AskDoor(const PeriodRow& row,
                                                                const std::string& key) {
  const DoorAnswer answer = door_->Enter({{key, ttl_}}).front();
  const absl::Duration now = SystemClock().BootNow();
  if (answer.open) {
    door_since_.reset();
    return std::nullopt;
  }
  if (!door_since_) door_since_ = now;
  const bool over = now - *door_since_ >= job_->job.lock.ttl;
  if (over) {  // what was planned before the wait is too old for START
    RETURN_IF_ERROR(LookAnew());
  } else {
    ASSIGN_OR_RETURN(seen_, ReadThawed());
  }
  if (!seen_.state) return std::nullopt;
  for (const PeriodRow& other : seen_.state->rows) {
    if (other.status == PeriodStatus::kRunning) return Held(RunningText(other));
  }
  if (Find(row.key.period) == nullptr) {
    RETURN_IF_ERROR(TellSettled(row.key));
    return Next{};
  }
  if (over) {
    door_since_.reset();
    return std::nullopt;
  }
  return Again(std::clamp(answer.left, absl::Milliseconds(20), absl::Seconds(1)));
}

absl::StatusOr<ExecCall::Next> ExecCall::Attempt(const PeriodRow& row) {
  const std::string door_key = door_ == nullptr ? "" : DoorKeyOf(*job_, row.key.period);
  if (!door_key.empty()) {
    ASSIGN_OR_RETURN(const std::optional<Next> elsewhere, AskDoor(row, door_key));
    if (elsewhere) return *elsewhere;
  }
  RETURN_IF_ERROR(runner_.GetReady());
  events_.Begin();
  StartAnswer answer;
  RETURN_IF_ERROR(Patiently([&]() -> absl::Status {
    ASSIGN_OR_RETURN(answer, turn_->Start(row.key));
    return absl::OkStatus();
  }));
  if (!answer.claim) {
    if (!door_key.empty()) door_->Leave({door_key});
    return Refused(row, answer);
  }
  if (row.backfill || answer.claim->backfill) News(absl::StrCat(Named(row), " is made good"));
  RETURN_IF_ERROR(Follow(answer.claim->fence));
  if (events_.accepted()) return Judged(row, *events_.accepted());
  Say(absl::StrCat(Named(row), ": the run ", answer.claim->fence,
                   " does not count, its lease was lost",
                   events_.refused().empty() ? "" : absl::StrCat(" (", events_.refused(), ")"),
                   "; who has the period now, `matins watermark ", request_.job, "` shows"));
  return Over(ExecEnd::kLost);
}

absl::Status ExecCall::Follow(int64_t run) {
  absl::Duration ended = absl::InfiniteDuration();
  if (asked_to_end_ != 0) turn_->StopBySignal(asked_to_end_);
  for (;;) {
    const absl::Duration next = turn_->Step();
    if (!turn_->running()) return absl::OkStatus();
    const absl::Duration now = SystemClock().BootNow();
    if (runner_.ended() || runner_.not_started()) ended = std::min(ended, now);
    if (now - ended > ttl_ + kGiveUp) {
      return InDoubtError(absl::StrCat("the store has not answered for the end of run ", run,
                                       "; `matins runs ", request_.job,
                                       "` says what became of it when the store is back"));
    }
    TakeSignal(host_.Wait(next));
  }
}

ExecAnswer ExecCall::BadEnd() const {
  if (runner_.not_started()) return {ExecEnd::kCommand, runner_.not_started()->exit_code};
  if (!runner_.ended()) return {ExecEnd::kFailed, 0};
  const RunEnded& ended = *runner_.ended();
  if (ended.stopped == StopReason::kTimeOut) return {ExecEnd::kTimeOut, 0};
  if (ended.stopped == StopReason::kCancelled) return {ExecEnd::kLost, 0};
  const int code = ended.ShellCode();
  return code > 0 ? ExecAnswer{ExecEnd::kCommand, code} : ExecAnswer{ExecEnd::kFailed, 0};
}

absl::StatusOr<ExecCall::Next> ExecCall::Judged(const PeriodRow& row, const Outcome& outcome) {
  const std::string said = absl::StrCat(Named(row), ": ", outcome.message);
  switch (outcome.kind) {
    case Outcome::Kind::kDone:
    case Outcome::Kind::kDoneByJob:
      if (!outcome.message.empty()) Say(said);
      if (const ExecAnswer end = BadEnd(); end.end == ExecEnd::kCommand) last_bad_ = end.code;
      return Next{};
    case Outcome::Kind::kRetry:
      Say(absl::StrCat(said, "; tried again in ", DurationText(outcome.backoff)));
      return Again(outcome.backoff);
    case Outcome::Kind::kReturned: {
      if (asked_to_end_ == 0) return absl::UnavailableError(said);
      const ExecAnswer end = BadEnd();
      return end.end == ExecEnd::kCommand ? Over(ExecEnd::kStopped, end.code)
                                          : Next{Next::Kind::kOver, {}, Stopped()};
    }
    case Outcome::Kind::kHeld:
      Say(absl::StrCat(said, "; the period is FAILED(held) until a person acts"));
      break;
    case Outcome::Kind::kFailed:
      Say(absl::StrCat(said, "; the period is FAILED(", outcome.reason, ")"));
      break;
  }
  return Next{Next::Kind::kOver, {}, BadEnd()};
}

// ---- who else has it ----------------------------------------------------------------------------

ExecCall::Next ExecCall::Held(const std::string& text) {
  switch (request_.if_held) {
    case IfHeld::kSkip:
      News(text);
      return Over(ExecEnd::kDone);
    case IfHeld::kFail:
      Say(text);
      return Over(ExecEnd::kHeld);
    case IfHeld::kWait:
      break;
  }
  if (std::exchange(told_, text) != text) News(absl::StrCat(text, "; waiting"));
  return Again(kLookAgain);
}

ExecCall::Next ExecCall::StandsFailed(const PeriodRow& row) {
  const std::string how = absl::StrCat(
      Named(row), " is FAILED", row.held ? "(held)" : absl::StrCat("(", row.reason, ")"),
      row.node.empty() ? "" : absl::StrCat(" on ", row.node, " (run ", row.fence, ")"));
  if (row.held) {
    Say(absl::StrCat(how, "; a person has to look at it, then `matins run ", request_.job,
                     " --date ", row.key.period, " --reason \"...\"`"));
    return Over(ExecEnd::kRefused);
  }
  Say(absl::StrCat(how, "; it gets new attempts at the next fire, or now with --retry"));
  return Over(ExecEnd::kFailed);
}

absl::Status ExecCall::TellSettled(const PeriodKey& key) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ActStore> acts, database_->OpenActs());
  RowFilter filter;
  filter.job = key.job;
  filter.period = key.period;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, acts->ReadRows(filter));
  if (rows.empty()) {
    News(absl::StrCat(key.job, " ", key.period, " is no longer owed"));
    return absl::OkStatus();
  }
  const PeriodRow& row = rows.front();
  const bool done = row.status == PeriodStatus::kDone;
  News(absl::StrCat(Named(row), done ? " was run by " : " was settled as SKIPPED by ",
                    done ? row.node : row.by,
                    row.fence != 0 ? absl::StrCat(" (run ", row.fence, ")") : ""));
  return absl::OkStatus();
}

absl::StatusOr<ExecCall::Next> ExecCall::Refused(const PeriodRow& row, const StartAnswer& answer) {
  if (answer.result == StartResult::kLabels) {
    Say(absl::StrCat(Named(row), ": its job has `nodes:`, and this call lacks a label of it ",
                     answer.blocker, "; say --label"));
    return Over(ExecEnd::kRefused);
  }
  RETURN_IF_ERROR(LookAnew());
  const PeriodRow* const now = Find(row.key.period);
  if (seen_.state->suspended) {
    News(absl::StrCat(request_.job, " has been suspended; nothing more is run"));
    return Over(ExecEnd::kDone);
  }
  if (now == nullptr) {
    RETURN_IF_ERROR(TellSettled(row.key));
    return Next{};
  }
  if (now->status == PeriodStatus::kFailed) return StandsFailed(*now);
  return InTheWay(*now, answer);
}

absl::StatusOr<ExecCall::Next> ExecCall::InTheWay(const PeriodRow& row, const StartAnswer& answer) {
  if (row.status == PeriodStatus::kRunning) return Held(RunningText(row));
  switch (answer.result) {
    case StartResult::kNotDue:
      return Next{
          Next::Kind::kAgain,
          std::max(seen_.BootAt(row.not_before), SystemClock().BootNow() + absl::Milliseconds(1)),
          {}};
    case StartResult::kBlocked:
      if (const PeriodRow* older = Find(answer.blocker)) {
        if (older->status == PeriodStatus::kFailed) return StandsFailed(*older);
        if (older->status == PeriodStatus::kRunning) return Held(RunningText(*older));
      }
      return Held(absl::StrCat(Named(row), " waits for ", answer.blocker));
    case StartResult::kBusy: {
      if (job_->job.overlap == Overlap::kReplace) {
        RETURN_IF_ERROR(turn_->store().Replace({row.key}).status());
        return Again(kLookAgain);
      }
      for (const PeriodRow& other : seen_.state->rows) {
        if (other.status == PeriodStatus::kRunning) return Held(RunningText(other));
      }
      return Held(absl::StrCat(Named(row), ": its lock is held: ", answer.blocker));
    }
    case StartResult::kFull:
      return Held(absl::StrCat(Named(row), ": a limit is reached: ", answer.blocker));
    case StartResult::kBackfill:
      // Its own time comes; what is owed besides does not wait for it.
      News(absl::StrCat(Named(row), " waits: ", answer.blocker));
      return Next{};
    case StartResult::kAfter:
      return Held(absl::StrCat(Named(row), " waits for job ", answer.blocker));
    case StartResult::kOldLease:
      return Held(absl::StrCat(Named(row),
                               ": an earlier run of it, taken back or deleted, may be alive until ",
                               answer.blocker));
    default:
      return Again(kAtOnce);
  }
}

}  // namespace matins
