#include "ops/exec_call.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/backends.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/timing.h"
#include "job/calendar_fires.h"
#include "job/json.h"
#include "lease/redis_url.h"
#include "ops/jobs.h"
#include "ops/node.h"
#include "ops/runs.h"
#include "store/exec_label.h"

namespace matins {
namespace {

// A new node may have to wait for another's judgement of the clock so long, and a little more
// (store/rules.h).
constexpr absl::Duration kClockPatience = absl::Seconds(13);
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(2);
// What is due soon is planned with what is due, so that START may rely on the look.
constexpr absl::Duration kAhead = absl::Seconds(5);

std::string InstantText(absl::Time t) {
  return FormatInstant(absl::FromUnixSeconds(absl::ToUnixSeconds(t)));
}

}  // namespace

void ExecEvents::OnEvent(const EngineEvent& event) {
  if (event.name == event::kFinished && event.outcome != nullptr) {
    accepted_ = *event.outcome;
  } else if (event.name == event::kLeaseLost || event.name == event::kZombieRefused) {
    refused_ = event.detail;
  } else if (event.name == event::kResolved && event.detail == "no") {
    refused_ = "the store did not take it in time";
  } else if (event.name == event::kStoreAway) {
    host_.Tell(absl::StrCat("the store does not answer, it is asked again; ", event.detail), false);
  }
}

absl::StatusOr<ExecAnswer> ExecJob(const ExecRequest& request, ExecHost& host) {
  return ExecCall(request, host).Run();
}

absl::StatusOr<ExecAnswer> ExecCall::Run() {
  absl::StatusOr<ExecAnswer> answer = [&]() -> absl::StatusOr<ExecAnswer> {
    RETURN_IF_ERROR(Patiently([this] { return Prepare(); }, MayBeAskedAgain));
    ASSIGN_OR_RETURN(std::optional<ExecAnswer> over, FirstPass());
    if (!over) {
      ASSIGN_OR_RETURN(over, SecondPass());
    }
    if (over) return *over;
    return ExecAnswer{last_bad_ == 0 ? ExecEnd::kDone : ExecEnd::kCommand, last_bad_};
  }();
  // What it says is already in the store; a sign of life that stays behind costs the next call's
  // patience, nothing more.
  if (turn_ != nullptr) turn_->Leave().IgnoreError();
  return answer;
}

// ---- getting there ------------------------------------------------------------------------------

absl::Status ExecCall::Patiently(const std::function<absl::Status()>& what,
                                 bool (*again)(const absl::Status&)) {
  const absl::Duration until = SystemClock().BootNow() + request_.store_wait;
  absl::Duration pause = kFirstPause;
  for (;;) {
    const absl::Status status = what();
    if (!again(status) || SystemClock().BootNow() + pause > until) return status;
    if (!WaitUntil(SystemClock().BootNow() + pause)) return status;
    pause = std::min(pause * 2, kLongestPause);
  }
}

absl::Status ExecCall::Prepare() {
  RETURN_IF_ERROR(OpenTurn());
  RETURN_IF_ERROR(Settle());
  if (job_->job.lock.ttl < ttl_) {
    // Calls about a lease have a deadline that fits it.
    ttl_ = job_->job.lock.ttl;
    RETURN_IF_ERROR(OpenTurn());
  }
  return OpenDoor();
}

absl::Status ExecCall::OpenDoor() {
  if (job_->job.lock.provider != LockProvider::kRedis) {
    if (!request_.door_wanted) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", request_.job,
        "' does not ask Redis before its store's lock, and this call is to; say "
        "what it is with --lock redis://... and --apply, or write lock: { provider: redis }"));
  }
  if (request_.redis_url.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(RedisUrl url, ParseRedisUrl(request_.redis_url));
  door_ = OpenRedisDoor(std::move(url), turn_->node().options.id.name, SystemClock());
  turn_->node().door = door_.get();
  return absl::OkStatus();
}

absl::Status ExecCall::OpenTurn() {
  DatabaseOptions options;
  options.call_deadline = std::min(options.call_deadline, CallDeadline(ttl_));
  turn_.reset();
  door_.reset();
  ASSIGN_OR_RETURN(database_, DatabaseFromUrl(request_.store_url, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                   OpenMigrated(*database_, [this] { return database_->Open(); }));
  JobTurnParts parts;
  parts.options.id.name = NewNodeName();
  parts.options.id.labels = request_.labels;
  parts.options.id.labels.push_back(kExecLabel);
  parts.options.global_limit = request_.global_limit;
  parts.options.give_back_program = request_.give_back_program;
  parts.options.store_url = request_.store_url;
  parts.job = request_.job;
  parts.clock = &SystemClock();
  parts.runner = &runner_;
  parts.events = &events_;
  parts.store = std::move(store);
  parts.random = std::make_unique<SystemRandom>();
  parts.wake_up = [this] { host_.WakeUp(); };
  parts.get_ready = [this] { runner_.BeginGettingReady(); };
  ASSIGN_OR_RETURN(turn_, JobTurn::Open(std::move(parts)));
  return absl::OkStatus();
}

absl::Status ExecCall::WithSession(const std::function<absl::Status(Session&)>& use) {
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, absl::StrCat("exec:", WhoAmI())));
  return use(session);
}

absl::StatusOr<JobTurn::Seen> ExecCall::ReadThawed() {
  ASSIGN_OR_RETURN(Seen seen, turn_->Read());
  const absl::Duration until = SystemClock().BootNow() + kClockPatience;
  while (seen.frozen) {
    // Where no node has been for an hour, somebody has to look at the clock first.
    const bool frozen = turn_->Tick();
    if (turn_->node().outdated) {
      return absl::FailedPreconditionError(
          absl::StrCat(database_->Describe(),
                       ": a newer matins has migrated its schema; use that version, or a "
                       "newer one"));
    }
    if (frozen && (SystemClock().BootNow() > until ||
                   !WaitUntil(SystemClock().BootNow() + absl::Seconds(1)))) {
      return absl::FailedPreconditionError(
          "the store's clock stepped, and nothing is started until it has been steady for 5m; "
          "`matins status` says what was seen, `matins clock accept` takes it as it is");
    }
    ASSIGN_OR_RETURN(seen, turn_->Read());
  }
  return seen;
}

absl::Status ExecCall::Settle() {
  ASSIGN_OR_RETURN(seen_, ReadThawed());
  if (!seen_.state) {
    if (!request_.definition) {
      return absl::NotFoundError(absl::StrCat(
          "job '", request_.job, "' is not in ", database_->Describe(),
          "; say what it is, --schedule \"0 1 * * *\" --misfire each, or --config FILE, and this "
          "call makes it known"));
    }
    RETURN_IF_ERROR(Apply());
    ASSIGN_OR_RETURN(seen_, ReadThawed());
    if (!seen_.state) {
      return absl::NotFoundError(absl::StrCat("job '", request_.job, "' has just been deleted"));
    }
  }
  RETURN_IF_ERROR(Compare(*seen_.state));
  ASSIGN_OR_RETURN(job_,
                   turn_->node().definitions.Resolve(seen_.state->versions.back().definition));
  if (job_->job.run.kind != RunKind::kExec) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", request_.job, "' is run by nodes, by what its own `run` says; `matins run ",
        request_.job,
        "` asks for a run of it. Give this line's job another name, or write run: { exec: true }"));
  }
  return std::exchange(is_new_, false) ? PlanFirstFire() : absl::OkStatus();
}

absl::Status ExecCall::Compare(const JobState& state) {
  if (state.versions.empty()) return absl::InternalError("a job without a version");
  if (!request_.definition) return absl::OkStatus();
  const std::string given = JobToJson(*request_.definition);
  const std::string& stored = state.versions.back().definition;
  if (given == stored) return absl::OkStatus();
  if (request_.apply) {
    RETURN_IF_ERROR(Apply());
    ASSIGN_OR_RETURN(seen_, ReadThawed());
    return seen_.state ? absl::OkStatus()
                       : absl::NotFoundError(
                             absl::StrCat("job '", request_.job, "' has just been deleted"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "job '", request_.job, "' is another one in ", database_->Describe(), ":\n  ",
      absl::StrJoin(DifferencesOf(stored, given), "\n  "),
      "\nnothing was run; say it as the store has it, or change the store's with --apply"));
}

absl::Status ExecCall::Apply() {
  return WithSession([this](Session& session) -> absl::Status {
    JobFile file;
    file.jobs = {*request_.definition};
    file.digest = DigestOf(file.jobs);
    ApplyFileOptions options;
    options.source = absl::StrCat("exec:", request_.job);
    options.force = request_.force;
    ASSIGN_OR_RETURN(const ApplyAnswer answer, ApplyFile(session, file, options));
    is_new_ = !answer.added.empty();
    if (is_new_)
      News(absl::StrCat(request_.job, " is known to ", database_->Describe(), " from now on"));
    if (!answer.changed.empty()) News(absl::StrCat(request_.job, " is changed"));
    return absl::OkStatus();
  });
}

// A job is owed what is due from its first sight on. The fire that came with its first call was due
// an instant before that, and is what the call is for.
absl::Status ExecCall::PlanFirstFire() {
  const std::optional<Fire> fire = PreviousFire(*job_, seen_.now + absl::Microseconds(1));
  if (!fire || job_->job.backfill.start || fire->at >= seen_.state->first_sight ||
      seen_.now - fire->at > job_->job.start_deadline) {
    return absl::OkStatus();
  }
  const std::optional<CalendarFire> next = NextFire(*job_, seen_.now);
  if (next && next->fire.at - seen_.now <= std::min(request_.early, seen_.now - fire->at)) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WithSession([this](Session& session) {
    return RunByHand(session, {.job = request_.job, .reason = "the fire of its first call"})
        .status();
  }));
  ASSIGN_OR_RETURN(seen_, ReadThawed());
  return absl::OkStatus();
}

// ---- what is owed -------------------------------------------------------------------------------

const PeriodRow* ExecCall::Find(absl::string_view period) const {
  if (!seen_.state) return nullptr;
  for (const PeriodRow& row : seen_.state->rows) {
    if (row.key.period == period) return &row;
  }
  return nullptr;
}

absl::Status ExecCall::Look(absl::Duration ahead) {
  for (;;) {
    // Nothing where an earlier try came to no end.
    if (!seen_.state) {
      ASSIGN_OR_RETURN(seen_, ReadThawed());
    }
    const std::optional<Trigger> trigger = retry_ ? std::optional(Trigger::kPerson) : std::nullopt;
    ASSIGN_OR_RETURN(seen_, turn_->Plan(std::exchange(seen_, Seen()), ahead, trigger));
    if (!seen_.state) {
      return absl::NotFoundError(absl::StrCat("job '", request_.job, "' has just been deleted"));
    }
    retry_ = false;
    const bool lost = std::any_of(
        seen_.state->rows.begin(), seen_.state->rows.end(), [this](const PeriodRow& row) {
          return row.status == PeriodStatus::kRunning && row.lease_until != absl::InfinitePast() &&
                 row.lease_until <= seen_.now;
        });
    if (!lost) return absl::OkStatus();
    RETURN_IF_ERROR(turn_->Reap());
    ASSIGN_OR_RETURN(seen_, ReadThawed());
  }
}

absl::Status ExecCall::LookAnew() {
  return Patiently([this]() -> absl::Status {
    ASSIGN_OR_RETURN(seen_, ReadThawed());
    return Look(kAhead);
  });
}

// Of two fires the nearer one is meant: a host's clock is off by less than half the way between
// them.
std::optional<absl::Time> ExecCall::FireMeantAhead() const {
  if (!seen_.state || seen_.state->suspended) return std::nullopt;
  const std::optional<CalendarFire> next = NextFire(*job_, seen_.now);
  if (!next || !next->covered || next->fire.at - seen_.now > request_.early) return std::nullopt;
  const std::optional<Fire> last = PreviousFire(*job_, seen_.now + absl::Microseconds(1));
  const bool last_is_nearer = last && seen_.now - last->at < next->fire.at - seen_.now;
  // What was due before the job was known has not been seen to by anybody, unless a call took it.
  const bool seen_to =
      last && (last->at >= seen_.state->first_sight || job_->job.backfill.start ||
               (!seen_.state->rows.empty() && seen_.state->rows.front().due <= last->at));
  if (last_is_nearer && seen_to) return std::nullopt;
  return next->fire.at;
}

std::vector<PeriodRow> ExecCall::Owed(absl::Time by) const {
  std::vector<PeriodRow> rows;
  for (const PeriodRow& row : seen_.state->rows) {
    const bool due = row.due <= std::max(by, seen_.now) || row.manual;
    if (due && row.status == PeriodStatus::kPlanned) rows.push_back(row);
  }
  return rows;
}

ExecCall::Verdict ExecCall::FirstPass() {
  for (;;) {
    const std::optional<absl::Time> meant = FireMeantAhead();
    const absl::Duration ahead = meant ? *meant - seen_.now : absl::ZeroDuration();
    RETURN_IF_ERROR(Patiently([&] { return Look(std::max(ahead, kAhead)); }));
    if (seen_.state->suspended) {
      News(absl::StrCat(request_.job, " is suspended (`matins job show ", request_.job,
                        "` says by whom); nothing is run"));
      return ExecAnswer{};
    }
    const std::vector<PeriodRow> rows = Owed(meant.value_or(seen_.now));
    if (!rows.empty()) return RunAll(rows);
    ASSIGN_OR_RETURN(const Next next, NothingToRun());
    if (next.kind == Next::Kind::kOver) return next.answer;
    if (!WaitUntil(next.at)) return Stopped();
    RETURN_IF_ERROR(Patiently([this]() -> absl::Status {
      ASSIGN_OR_RETURN(seen_, ReadThawed());
      return absl::OkStatus();
    }));
  }
}

// Who came for what fell due meanwhile found this call at work, and left it to it. What falls due
// while that is run is for the next call.
ExecCall::Verdict ExecCall::SecondPass() {
  const std::optional<CalendarFire> next = NextFire(*job_, std::max(seen_.now, last_due_));
  if (!next || SystemClock().BootNow() < seen_.BootAt(next->fire.at) || asked_to_end_ != 0) {
    return std::nullopt;
  }
  RETURN_IF_ERROR(Patiently([this]() -> absl::Status {
    ASSIGN_OR_RETURN(seen_, ReadThawed());
    return Look(kAhead);
  }));
  if (seen_.state->suspended) return std::nullopt;
  return RunAll(Owed(seen_.now));
}

ExecCall::Verdict ExecCall::RunAll(const std::vector<PeriodRow>& rows) {
  if (rows.size() > 1) {
    News(absl::StrCat(request_.job, " owes ", rows.size(), " periods, ", rows.front().key.period,
                      " to ", rows.back().key.period));
  }
  const Seen looked = seen_;
  if (!rows.empty()) last_due_ = std::max(last_due_, rows.back().due);
  for (const PeriodRow& row : rows) {
    ASSIGN_OR_RETURN(std::optional<ExecAnswer> over, RunPeriod(row));
    if (over) return over;
  }
  seen_ = looked;
  return std::nullopt;
}

absl::StatusOr<ExecCall::Next> ExecCall::NothingToRun() {
  for (const PeriodRow& row : seen_.state->rows) {
    if (row.status == PeriodStatus::kRunning) return InTheWay(row, {});
  }
  for (const PeriodRow& row : seen_.state->rows) {
    if (row.status == PeriodStatus::kFailed) return StandsFailed(row);
  }
  // More than a word about it is not asked of the store: it has said that nothing is owed.
  if (!TellNothingOwed().ok()) {
    News(absl::StrCat(request_.job, ": nothing is owed", NextFireText()));
  }
  return Over(ExecEnd::kDone);
}

std::string ExecCall::NextFireText() const {
  const std::optional<CalendarFire> next = NextFire(*job_, seen_.now);
  if (!next) return "; it never fires again";
  if (!next->covered) return "; its calendar ends before the next fire";
  const absl::Duration ahead = next->fire.at - seen_.now;
  const bool early = ahead > request_.early && ahead <= request_.early + absl::Minutes(10);
  return absl::StrCat("; the next fire is ", FormatInstant(next->fire.at), early ? ", " : "",
                      early ? absl::StrCat(DurationText(absl::Trunc(ahead, absl::Seconds(1))),
                                           " ahead by the store's clock and beyond --early ",
                                           DurationText(request_.early))
                            : "");
}

absl::Status ExecCall::TellNothingOwed() {
  ASSIGN_OR_RETURN(const std::unique_ptr<ActStore> acts, database_->OpenActs());
  std::vector<PeriodRow> rows;
  for (const PeriodStatus status : {PeriodStatus::kDone, PeriodStatus::kSkipped}) {
    RowFilter filter;
    filter.job = request_.job;
    filter.status = status;
    filter.limit = 1;
    filter.newest_first = true;
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> newest, acts->ReadRows(filter));
    rows.insert(rows.end(), newest.begin(), newest.end());
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PeriodRow& a, const PeriodRow& b) { return a.due > b.due; });
  if (rows.empty()) {
    News(absl::StrCat(request_.job, ": nothing is owed yet, it is known since ",
                      InstantText(seen_.state->first_sight), NextFireText()));
  } else {
    const PeriodRow& row = rows.front();
    const bool done = row.status == PeriodStatus::kDone;
    News(absl::StrCat(
        request_.job, " ", row.key.period, done ? " is DONE" : " is SKIPPED",
        row.reason.empty() ? "" : absl::StrCat("(", row.reason, ")"), " since ",
        InstantText(std::max(row.finished_at, row.changed_at)),
        done && !row.node.empty() ? absl::StrCat(" by ", row.node, " (run ", row.fence, ")") : "",
        ", nothing is owed", NextFireText()));
  }
  return absl::OkStatus();
}

}  // namespace matins
