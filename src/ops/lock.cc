#include "ops/lock.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/timing.h"
#include "execute/process_runner.h"
#include "ops/lock_lease.h"
#include "ops/node.h"

namespace matins {
namespace {

constexpr absl::Duration kTryAgain = absl::Milliseconds(200);
constexpr absl::Duration kLongestLook = absl::Seconds(1);
// Signals wait while a call is under way.
constexpr absl::Duration kLongestCall = absl::Seconds(2);

class LockCall {
 public:
  LockCall(const LockRequest& request, ExecHost& host, std::unique_ptr<LockLease> lease)
      : request_(request), host_(host), lease_(std::move(lease)), clock_(SystemClock()) {}

  absl::StatusOr<ExecAnswer> Run();

 private:
  using Verdict = absl::StatusOr<std::optional<ExecAnswer>>;

  // Nothing: it is ours.
  Verdict Take();
  Verdict Held();
  // Nothing: it is to be run.
  Verdict LookAtStep();
  absl::Status Start();
  absl::Status Follow();
  void Beat();
  void Lose(absl::string_view why);
  void TakeSignal(int signal);
  void TakeEvent(const RunnerEvent& event);
  void Answer(const RunAsked& ask);
  absl::StatusOr<ExecAnswer> End();
  absl::StatusOr<ExecAnswer> Commit();
  bool Wait(absl::Duration until);
  absl::Duration Patience() const { return std::min(CallDeadline(request_.ttl), kLongestCall); }
  absl::Duration grace() const { return std::min(request_.grace, request_.ttl / 4); }
  void Say(absl::string_view text, bool news) {
    host_.Tell(absl::StrCat("lock ", request_.key, ": ", text), news);
  }

  const LockRequest& request_;
  ExecHost& host_;
  const std::unique_ptr<LockLease> lease_;
  Clock& clock_;
  std::unique_ptr<Runner> runner_;
  LockLease::Taken taken_;
  absl::Duration proof_;
  absl::Duration next_beat_;
  std::string unanswered_;  // what the last renewal said, where none has been accepted since
  std::string lost_;        // why it is lost
  std::string told_;
  std::string step_data_;
  std::optional<RunEnded> ended_;
  std::optional<RunNotStarted> not_started_;
  int asked_to_end_ = 0;  // by this signal
};

bool LockCall::Wait(absl::Duration until) {
  while (asked_to_end_ == 0 && clock_.BootNow() < until) TakeSignal(host_.Wait(until));
  return asked_to_end_ == 0;
}

void LockCall::TakeSignal(int signal) {
  if (signal == 0) return;
  const bool running = runner_ != nullptr && !ended_ && !not_started_;
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    if (running) runner_->PassSignal(taken_.fence, signal);
    return;
  }
  if (asked_to_end_ == 0) asked_to_end_ = signal;
  if (running) runner_->StopBySignal(taken_.fence, StopReason::kShutdown, request_.grace, signal);
}

LockCall::Verdict LockCall::Held() {
  if (told_ != taken_.held_by) Say(absl::StrCat("held by ", taken_.held_by), true);
  told_ = taken_.held_by;
  if (request_.if_held == IfHeld::kSkip) return ExecAnswer{};
  if (request_.if_held == IfHeld::kFail) return ExecAnswer{ExecEnd::kHeld};
  return std::nullopt;
}

LockCall::Verdict LockCall::Take() {
  const absl::Duration begun = clock_.BootNow();
  absl::Duration away_since = begun;
  for (;;) {
    auto taken = lease_->Take(std::min(request_.ttl / 2, absl::Seconds(5)));
    const absl::Duration now = clock_.BootNow();
    absl::Duration again = now + kTryAgain;
    if (taken.ok()) {
      taken_ = *std::move(taken);
      if (taken_.taken) return std::nullopt;
      ASSIGN_OR_RETURN(std::optional<ExecAnswer> over, Held());
      if (over) return over;
      if (now - begun >= request_.wait) return ExecAnswer{ExecEnd::kHeld};
      away_since = now;
      again = now + std::clamp(taken_.left, kTryAgain, kLongestLook);
    } else if (!MayBeAskedAgain(taken.status()) || now - away_since >= request_.server_wait) {
      return taken.status();
    }
    if (!Wait(again)) return ExecAnswer{ExecEnd::kStopped, 128 + asked_to_end_};
  }
}

LockCall::Verdict LockCall::LookAtStep() {
  if (!request_.step || taken_.step == *request_.step - 1) return std::nullopt;
  const bool done = taken_.step >= *request_.step;
  lease_->Release(nullptr).IgnoreError();
  if (done) {
    Say(absl::StrCat("step ", *request_.step, " is done; the last one is ", taken_.step), true);
    return ExecAnswer{};
  }
  Say(absl::StrCat("step ", *request_.step, " is refused: the last one that is done is ",
                   taken_.step, "; do step ", taken_.step + 1, " first"),
      false);
  return ExecAnswer{ExecEnd::kRefused};
}

absl::Status LockCall::Start() {
  ASSIGN_OR_RETURN(runner_, OpenProcessRunner({}));
  runner_->SetWakeUp([this] { host_.WakeUp(); });
  proof_ = taken_.sent;
  next_beat_ = proof_ + BeatEvery(request_.ttl);
  RunRequest run;
  run.run = taken_.fence;
  for (const std::string& word : request_.program.command) {
    // Its words are its own: there is no run whose values could stand in them.
    run.program.argv.push_back(absl::StrReplaceAll(word, {{"{{", "\\{{"}}));
  }
  run.dir = request_.program.dir;
  run.umask = request_.program.umask;
  run.inherit_environment = run.pass_streams = true;
  run.values.job = request_.key;
  run.values.period = "lock";
  run.values.further = {{"LOCK", request_.key}};
  if (request_.step) {
    run.values.further.emplace_back("STEP", absl::StrCat(*request_.step));
    run.values.checkpoint_number = taken_.step;
    run.values.checkpoint = taken_.data;
  }
  run.lease = LeaseDeadline(proof_, request_.ttl, request_.grace);
  runner_->Start(std::move(run));
  return absl::OkStatus();
}

void LockCall::Lose(absl::string_view why) {
  if (!lost_.empty()) return;
  lost_ = std::string(why);
  Say(absl::StrCat("lost: ", why, "; its command is stopped"), false);
}

void LockCall::Beat() {
  const absl::Duration sent = clock_.BootNow();
  const absl::StatusOr<std::string> renewed = lease_->Renew(Patience());
  if (!renewed.ok()) {
    unanswered_ = std::string(renewed.status().message());
    next_beat_ = clock_.BootNow() + BeatRetry(request_.ttl);
    return;
  }
  if (!renewed->empty()) {
    Lose(*renewed);
    runner_->Stop(taken_.fence, StopReason::kLeaseLost, grace());
    next_beat_ = absl::InfiniteDuration();
    return;
  }
  unanswered_.clear();
  proof_ = ProofOf(sent, clock_.BootNow());
  next_beat_ = sent + BeatEvery(request_.ttl);
  runner_->MoveDeadlines({{taken_.fence, LeaseDeadline(proof_, request_.ttl, request_.grace)}});
}

void LockCall::Answer(const RunAsked& ask) {
  RunAnswer answer;
  switch (ask.kind) {
    case AskKind::kFence: {
      const absl::StatusOr<std::string> renewed = lease_->Renew(Patience());
      answer.text = absl::StrCat(taken_.fence);
      if (!renewed.ok()) {
        answer.status = renewed.status();
      } else if (!renewed->empty()) {
        answer.status = absl::FailedPreconditionError(absl::StrCat("the lock is lost: ", *renewed));
      }
      break;
    }
    case AskKind::kCheckpoint:
      if (request_.step && ask.number == *request_.step) {
        step_data_ = ask.payload;  // written with the step's end, under the lease
      } else {
        answer.status = absl::FailedPreconditionError(
            request_.step ? absl::StrCat("this is step ", *request_.step, ": give that number")
                          : "a lock keeps no checkpoint; do the job in steps: --step NUMBER");
      }
      break;
    case AskKind::kResult:
      answer.status =
          absl::FailedPreconditionError("a lock keeps no result; `matins exec` keeps a run's");
      break;
  }
  runner_->Reply(taken_.fence, ask.ask, std::move(answer));
}

void LockCall::TakeEvent(const RunnerEvent& event) {
  if (const auto* asked = std::get_if<RunAsked>(&event.what)) Answer(*asked);
  if (const auto* ended = std::get_if<RunEnded>(&event.what)) ended_ = *ended;
  if (const auto* failed = std::get_if<RunNotStarted>(&event.what)) not_started_ = *failed;
}

absl::Status LockCall::Follow() {
  if (asked_to_end_ != 0) {
    runner_->StopBySignal(taken_.fence, StopReason::kShutdown, request_.grace, asked_to_end_);
  }
  for (;;) {
    for (const RunnerEvent& event : runner_->Poll()) TakeEvent(event);
    if (ended_ || not_started_) return absl::OkStatus();
    const absl::Duration stop = LeaseDeadline(proof_, request_.ttl, request_.grace).stop;
    if (clock_.BootNow() >= stop) {
      Lose(unanswered_.empty() ? "it could not be renewed in time" : unanswered_);
    }
    if (clock_.BootNow() >= next_beat_ && lost_.empty()) Beat();
    TakeSignal(host_.Wait(lost_.empty() ? std::min(next_beat_, stop) : absl::InfiniteDuration()));
  }
}

absl::StatusOr<ExecAnswer> LockCall::Commit() {
  if (request_.step && ended_->Succeeded()) {
    const absl::Status written = lease_->WriteStep(*request_.step, step_data_);
    if (!written.ok()) {
      Say(absl::StrCat("step ", *request_.step, " was not recorded: ", written.message()), false);
      lease_->Release(&*ended_).IgnoreError();
      if (absl::IsFailedPrecondition(written)) return ExecAnswer{ExecEnd::kLost};
      return written;
    }
  }
  const absl::Status released = lease_->Release(&*ended_);
  if (absl::IsFailedPrecondition(released) && !request_.step) {
    Say(absl::StrCat("lost: ", released.message()), false);
    return ExecAnswer{ExecEnd::kLost};
  }
  if (!released.ok()) {
    Say(absl::StrCat("not released, it ends by itself: ", released.message()), false);
  }
  return asked_to_end_ != 0    ? ExecAnswer{ExecEnd::kStopped, ended_->ShellCode()}
         : ended_->Succeeded() ? ExecAnswer{}
                               : ExecAnswer{ExecEnd::kCommand, ended_->ShellCode()};
}

absl::StatusOr<ExecAnswer> LockCall::End() {
  if (not_started_) {
    Say(not_started_->error.message(), false);
    lease_->Release(nullptr).IgnoreError();
    return ExecAnswer{ExecEnd::kCommand, not_started_->exit_code};
  }
  if (!lost_.empty() || ended_->stopped == StopReason::kLeaseLost) {
    Lose(unanswered_.empty() ? "its lease could not be proven in time" : unanswered_);
    // Where it is another's already this touches nothing; a server that does not answer ends it.
    if (unanswered_.empty()) lease_->Release(&*ended_).IgnoreError();
    return ExecAnswer{ExecEnd::kLost};
  }
  return Commit();
}

absl::StatusOr<ExecAnswer> LockCall::Run() {
  ASSIGN_OR_RETURN(std::optional<ExecAnswer> over, Take());
  if (over) return *over;
  ASSIGN_OR_RETURN(over, LookAtStep());
  if (over) return *over;
  if (const absl::Status started = Start(); !started.ok()) {
    lease_->Release(nullptr).IgnoreError();
    return started;
  }
  RETURN_IF_ERROR(Follow());
  return End();
}

}  // namespace

absl::StatusOr<ExecAnswer> RunUnderLock(const LockRequest& request, ExecHost& host) {
  LockLeaseOptions options{request.key, NewNodeName(), request.ttl, request.keep};
  std::unique_ptr<LockLease> lease;
  if (!request.store_url.empty()) {
    ASSIGN_OR_RETURN(lease, LockInStore(std::move(options), request.store_url, SystemClock()));
  } else {
    ASSIGN_OR_RETURN(RedisUrl url, ParseRedisUrl(request.redis_url));
    lease = LockInRedis(std::move(options), std::move(url), SystemClock());
  }
  return LockCall(request, host, std::move(lease)).Run();
}

}  // namespace matins
