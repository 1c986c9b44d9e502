#include "library/core.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/status.h"
#include "base/time.h"
#include "job/names.h"
#include "job/parse.h"
#include "lease/redis_url.h"
#include "library/drive.h"
#include "ops/jobs.h"
#include "ops/node.h"
#include "ops/runs.h"
#include "ops/session.h"
#include "schedule/schedule.h"
#include "store/database.h"

namespace matins {
namespace {

PeriodState StateOf(const PeriodRow& row) {
  PeriodState state;
  state.job = row.key.job;
  state.period = row.key.period;
  state.biz_date = row.biz_date;
  state.status = static_cast<PeriodState::Status>(row.status);
  state.held = row.held;
  state.reason = row.reason;
  state.generation = row.generation;
  state.attempts = row.attempts;
  state.fence = row.fence;
  state.checkpoint = row.checkpoint;
  state.node = row.node;
  state.due = row.due;
  state.finished_at = row.finished_at;
  return state;
}

absl::Status CheckOptions(const SchedulerOptions& options, bool by_hand) {
  if (options.slots < 1) {
    return BadInput("SchedulerOptions::slots", absl::StrCat(options.slots, " runs at a time"),
                    "give 1 or more");
  }
  if (options.store.empty() && !by_hand) {
    return BadInput(
        "SchedulerOptions::store", "names no store",
        "write sqlite:PATH, postgresql://user@host/database or mariadb://user@host/database");
  }
  if (by_hand && !options.store.empty() && !absl::StartsWith(options.store, "sqlite:")) {
    return BadInput("SchedulerOptions::clock", "a server's clock cannot be a TestClock",
                    "leave the store empty, or write sqlite:PATH");
  }
  for (const std::string& label : options.labels) {
    RETURN_IF_ERROR(CheckName("SchedulerOptions::labels", label));
  }
  if (!options.audit.empty()) {
    RETURN_IF_ERROR(Annotate(Schedule::Parse(options.audit, {.zone = absl::UTCTimeZone()}).status(),
                             "SchedulerOptions::audit"));
  }
  if (options.redis.empty()) return absl::OkStatus();
  if (by_hand) {
    return BadInput("SchedulerOptions::redis", "a lock in Redis ends by Redis's clock",
                    "leave it out with a TestClock: the store's own lock is asked");
  }
  return Annotate(ParseRedisUrl(options.redis).status(), "SchedulerOptions::redis");
}

// What a file says of a node is this scheduler's to say; nothing of it is taken without effect.
absl::Status CheckOfNode(const std::string& name, const JobFile& file,
                         const SchedulerOptions& options) {
  if (!file.store.empty() && file.store != options.store) {
    return BadInput(name, "store: names another store than this scheduler's",
                    "take it out: SchedulerOptions::store says where the jobs go");
  }
  if (file.global_limit && *file.global_limit != options.global_limit) {
    return BadInput(name, "limits.global: is not this scheduler's",
                    "take it out: SchedulerOptions::global_limit says it");
  }
  if (!file.audit.empty() && file.audit != options.audit) {
    return BadInput(name, "audit: is not this scheduler's",
                    "take it out: SchedulerOptions::audit says it; a job's own audit: is taken");
  }
  if (!file.redis.empty() && file.redis != options.redis) {
    return BadInput(name, "redis: is not this scheduler's",
                    "take it out: SchedulerOptions::redis says it");
  }
  if (file.alerts != AlertConfig()) {
    return BadInput(name, "alerts: and ping: are of nodes that send, and a scheduler does not",
                    "give them to a `matins serve` on this store: it tells what happens here too");
  }
  return absl::OkStatus();
}

}  // namespace

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::Status TemporaryFolder::Make() {
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "matins.XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no temporary folder could be made: ", pattern, "; set TMPDIR to one"));
  }
  path_ = pattern;
  return absl::OkStatus();
}

Core::Core(SchedulerOptions options, Clock* clock)
    : options_(std::move(options)), test_clock_(clock) {}

Core::~Core() = default;

absl::StatusOr<std::unique_ptr<Core>> Core::Open(SchedulerOptions options, Clock* clock) {
  RETURN_IF_ERROR(CheckOptions(options, clock != nullptr));
  if (options.who.empty()) options.who = absl::StrCat("program:", WhoAmI());
  std::unique_ptr<Core> core(new Core(std::move(options), clock));
  RETURN_IF_ERROR(core->OpenStore());
  return core;
}

absl::Status Core::OpenStore() {
  if (options_.store.empty()) {
    RETURN_IF_ERROR(folder_.Make());
    options_.store = absl::StrCat("sqlite:", folder_.path(), "/matins.db");
  }
  DatabaseOptions options;
  if (by_hand()) options.clock = [clock = test_clock_] { return clock->WallNow(); };
  ASSIGN_OR_RETURN(database_, DatabaseFromUrl(options_.store, options));
  ASSIGN_OR_RETURN(place_, CommitPlaceOf(options_.store));
  return database_->Migrate();
}

absl::Status Core::AddHandler(absl::string_view name, Handler handler) {
  RETURN_IF_ERROR(CheckName("handler", name));
  absl::MutexLock lock(&mutex_);
  if (drive_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "handler '", name, "': the scheduler has started; add all handlers before Start"));
  }
  if (!handlers_.emplace(name, std::move(handler)).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("handler '", name, "' was added before; give each a name of its own"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Applied> Core::Apply(const std::string& name, absl::string_view yaml,
                                    const ApplyOptions& options) {
  Clock& clock = by_hand() ? *test_clock_ : SystemClock();
  ParseOptions parse;
  parse.now = clock.WallNow();
  ASSIGN_OR_RETURN(const JobFile file, ParseJobText(name, yaml, parse));
  RETURN_IF_ERROR(CheckOfNode(name, file, options_));
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, options_.who));
  ApplyFileOptions apply;
  apply.source = options.source.empty() ? name : options.source;
  apply.force = options.force;
  apply.prune = options.prune;
  apply.take_over = options.take_over;
  ASSIGN_OR_RETURN(ApplyAnswer answer, ApplyFile(session, file, apply));
  LookNow();
  Applied applied{std::move(answer.added),  std::move(answer.changed), std::move(answer.unchanged),
                  std::move(answer.pruned), std::move(answer.missing), {}};
  for (const Problem& warning : file.warnings) applied.warnings.push_back(warning.Text());
  absl::MutexLock lock(&mutex_);
  for (const matins::Job& job : file.jobs) {
    if (job.run.kind != RunKind::kHandler || handlers_.contains(job.run.handler)) continue;
    applied.warnings.push_back(absl::StrCat(
        "job '", job.name, "': run.handler: this program has no handler '", job.run.handler,
        "' so far; AddHandler before Start, or its runs wait for a program that has it"));
  }
  return applied;
}

absl::Status Core::Start() {
  absl::MutexLock lock(&mutex_);
  if (drive_ != nullptr) {
    return absl::FailedPreconditionError(
        "Start: the scheduler was started before; one that has left stays so, open another");
  }
  DriveParts parts;
  parts.options = options_;
  for (const auto& [name, handler] : handlers_) parts.options.labels.push_back(HandlerLabel(name));
  parts.handlers = handlers_;
  parts.events = this;
  parts.database = database_.get();
  parts.clock = by_hand() ? test_clock_ : &SystemClock();
  ASSIGN_OR_RETURN(drive_,
                   by_hand() ? DriveByHand(std::move(parts)) : DriveByThreads(std::move(parts)));
  return absl::OkStatus();
}

Drive* Core::drive() {
  absl::MutexLock lock(&mutex_);
  return left_ ? nullptr : drive_.get();
}

void Core::LookNow() {
  if (Drive* const running = drive()) running->LookNow();
}

absl::Status Core::Drain(absl::Duration patience) {
  Drive* running = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(left_, true)) running = drive_.get();
  }
  return running == nullptr ? absl::OkStatus() : running->Drain(patience);
}

absl::Status Core::Step() {
  Drive* const running = drive();
  if (running == nullptr) {
    return absl::FailedPreconditionError("Step: the scheduler does not run; call Start");
  }
  return running->Step();
}

absl::StatusOr<std::string> Core::RunPeriodByHand(const ByHand& request) {
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, options_.who));
  RunByHandRequest run{.job = request.job, .date = request.date};
  run.params.assign(request.params.begin(), request.params.end());
  run.again = request.again;
  run.reason = request.reason;
  ASSIGN_OR_RETURN(RunByHandAnswer answer, RunByHand(session, run));
  if (answer.failed_change > 0) {
    absl::MutexLock lock(&mutex_);
    failed_[{request.job, answer.period}] = answer.failed_change;
  }
  LookNow();
  return std::move(answer.period);
}

absl::StatusOr<PeriodState> Core::Wait(absl::string_view job, absl::string_view period,
                                       absl::Duration timeout) {
  if (by_hand()) {
    RETURN_IF_ERROR(Step());
    ASSIGN_OR_RETURN(PeriodState state, Read(job, period));
    if (state.ended()) return state;
    return absl::DeadlineExceededError(absl::StrCat(
        "job '", job, "' ", period, " has not ended at the TestClock's now; move it on, and Step"));
  }
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, options_.who));
  const PeriodKey key{std::string(job), std::string(period)};
  int64_t failed_change = 0;
  {
    absl::MutexLock lock(&mutex_);
    const auto failed = failed_.find({key.job, key.period});
    if (failed != failed_.end()) failed_change = failed->second;
  }
  ASSIGN_OR_RETURN(const PeriodRow row, WaitForPeriod(session, key, timeout, {}, failed_change));
  absl::MutexLock lock(&mutex_);
  failed_.erase({key.job, key.period});
  return StateOf(row);
}

absl::StatusOr<PeriodState> Core::Read(absl::string_view job, absl::string_view period) {
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, options_.who));
  ASSIGN_OR_RETURN(const PeriodRow row, ReadRow(session, {std::string(job), std::string(period)}));
  return StateOf(row);
}

absl::Status Core::Cancel(int64_t fence, absl::string_view reason) {
  ASSIGN_OR_RETURN(Session session, Session::Open(*database_, options_.who));
  return CancelRun(session, fence, reason);
}

void Core::OnEvent(const EngineEvent& event) {
  if (!options_.on_event) return;
  options_.on_event({std::string(event.name), event.alarm, event.key.job, event.key.period,
                     event.fence, event.detail});
}

}  // namespace matins
