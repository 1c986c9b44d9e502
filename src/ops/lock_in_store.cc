// A lock that the store holds: a run of one hidden job, whose period is the key. START gives fence
// and lease, and the unique index over running rows is the lock, so that a job with that lock key
// (key_template.h) is kept out as well.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/timing.h"
#include "job/json.h"
#include "job/sha256.h"
#include "ops/jobs.h"
#include "ops/lock_lease.h"
#include "ops/node.h"
#include "ops/session.h"
#include "store/exec_label.h"

namespace matins {
namespace {

// A job's name that says where its runs come from, in `matins runs` and events.
constexpr char kLockJob[] = "matins-lock";
// START's lease, for the moment until the first beat makes it as long as was asked for: a beat
// never makes one shorter.
constexpr absl::Duration kFirstLease = absl::Seconds(5);
// Of a period's text, in every store.
constexpr size_t kMostPeriod = 120;
constexpr int kMostStale = 500;

Job LockJob() {
  Job job;
  job.name = kLockJob;
  job.at = absl::FromUnixSeconds(0);  // long gone, and never owed: only calls run it
  job.misfire = Misfire::kSkip;
  job.overlap = Overlap::kAllow;
  job.lock = {LockScope::kKey, "{{period}}", kFirstLease};
  job.timeout = absl::Hours(24 * 365);
  job.max_lost = 1'000'000;
  job.run.kind = RunKind::kExec;
  return job;
}

std::string PeriodOfKey(const std::string& key) {
  if (key.size() <= kMostPeriod) return key;
  return absl::StrCat(key.substr(0, kMostPeriod - 17), "~", Sha256Hex(key).substr(0, 16));
}

absl::Status Away(const Refusal& refusal) {
  return StoreAwayError(absl::StrCat("the store is busy with this row: ", refusal.why));
}

class StoreLease final : public LockLease {
 public:
  StoreLease(LockLeaseOptions options, std::unique_ptr<Database> database, Clock& clock)
      : options_(std::move(options)), clock_(clock), database_(std::move(database)) {
    period_ = {kLockJob, PeriodOfKey(options_.key)};
  }

  absl::StatusOr<Taken> Take(absl::Duration) override;
  absl::StatusOr<std::string> Renew(absl::Duration) override;
  absl::Status WriteStep(int64_t number, absl::string_view data) override;
  absl::Status Release(const RunEnded* ended) override;

 private:
  absl::Status Open();
  absl::StatusOr<std::optional<PeriodRow>> Row();
  // The row is there, and PLANNED or RUNNING.
  absl::Status Prepare();
  // `failed`: the row as it stands; null: there is none.
  absl::Status Plan(const PeriodRow* failed);
  absl::Status ReapIfStale();
  absl::StatusOr<Taken> TakeOnce();
  // Empty where nobody holds it any more.
  absl::StatusOr<Taken> HeldBy();

  const LockLeaseOptions options_;
  Clock& clock_;
  const std::unique_ptr<Database> database_;
  std::optional<Session> session_;
  SystemRandom random_;
  PeriodKey period_;
  Ticket ticket_;
  std::string blocker_;  // as START said last
};

absl::Status StoreLease::Open() {
  if (session_) return absl::OkStatus();
  ASSIGN_OR_RETURN(Session session, OpenMigrated(*database_, [this] {
                     return Session::Open(*database_, absl::StrCat("lock:", WhoAmI()));
                   }));
  ASSIGN_OR_RETURN(const std::vector<JobRow> known, session.acts().ReadJobs(kLockJob));
  if (known.empty()) {
    JobFile file;
    file.jobs = {LockJob()};
    file.digest = Sha256Hex(JobToJson(file.jobs[0]));
    ApplyFileOptions options;
    options.source = "matins lock";
    RETURN_IF_ERROR(ApplyFile(session, file, options).status());
  }
  session_ = std::move(session);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<PeriodRow>> StoreLease::Row() {
  RowFilter filter;
  filter.job = period_.job;
  filter.period = period_.period;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session_->acts().ReadRows(filter));
  if (rows.empty()) return std::nullopt;
  return rows.front();
}

absl::Status StoreLease::Plan(const PeriodRow* failed) {
  return PlanAndWrite(
      *session_, kLockJob, [&](const Planned& planned) -> absl::StatusOr<PlanWrite> {
        Intent intent;
        intent.kind = failed == nullptr ? Intent::Kind::kInsert : Intent::Kind::kReattempt;
        intent.key = period_;
        intent.due = failed == nullptr ? planned.now() : failed->due;
        intent.window_start = intent.window_end = intent.not_before = intent.due;
        intent.nominal = absl::ToCivilSecond(intent.due, absl::UTCTimeZone());
        intent.biz_date = absl::CivilDay(intent.nominal);
        intent.version = planned.state().versions.back().number;
        intent.manual = true;
        intent.by = session_->who();
        intent.lock_key = options_.key;
        PlanWrite write;
        write.job = kLockJob;
        write.expected_revision = planned.state().revision;
        write.cursor = planned.state().cursor;
        write.next_look = absl::InfiniteFuture();
        write.intents = {std::move(intent)};
        return write;
      });
}

// With no node there to do it.
absl::Status StoreLease::ReapIfStale() {
  ASSIGN_OR_RETURN(const std::vector<StaleRun> stale, session_->store().ReadStale(kMostStale));
  for (const StaleRun& run : stale) {
    if (run.row.key != period_ || run.without_lease) continue;
    ReapRequest request;
    request.ticket = {period_, run.row.generation, run.row.fence, run.row.nonce};
    request.reason = reason::kLost;
    request.node = options_.who;
    return session_->store().Reap({&request, 1}).status();
  }
  return absl::OkStatus();
}

absl::Status StoreLease::Prepare() {
  RETURN_IF_ERROR(Open());
  ASSIGN_OR_RETURN(const std::optional<PeriodRow> row, Row());
  if (!row) return Plan(nullptr);
  switch (row->status) {
    case PeriodStatus::kPlanned:
      return absl::OkStatus();
    case PeriodStatus::kRunning:
      return ReapIfStale();
    case PeriodStatus::kFailed:  // released by hand, or lost too often
      if (!row->held) return Plan(&*row);
      [[fallthrough]];
    default:
      return session_->acts().Reopen(period_, "", session_->MakeAct("the lock is asked for again"));
  }
}

absl::StatusOr<LockLease::Taken> StoreLease::HeldBy() {
  Taken taken;
  taken.left = absl::Seconds(1);
  ASSIGN_OR_RETURN(const std::vector<LockRow> locks, session_->acts().ReadLocks());
  const auto lock = std::find_if(locks.begin(), locks.end(), [&](const LockRow& row) {
    return row.key == options_.key || row.run == period_;
  });
  if (lock == locks.end()) return taken;
  taken.held_by =
      lock->leftover
          ? absl::StrCat("what is left of run ", lock->fence)
          : absl::StrCat(lock->node, " since ",
                         FormatInstant(absl::FromUnixSeconds(absl::ToUnixSeconds(lock->since))),
                         ", fence ", lock->fence);
  if (lock->run.job != kLockJob) {
    absl::StrAppend(&taken.held_by, ", for ", lock->run.job, " ", lock->run.period);
  }
  return taken;
}

absl::StatusOr<LockLease::Taken> StoreLease::Take(absl::Duration) {
  ASSIGN_OR_RETURN(Taken taken, TakeOnce());
  // Who stood in the way has just gone: it may be had.
  if (!taken.taken && taken.held_by.empty()) {
    ASSIGN_OR_RETURN(taken, TakeOnce());
  }
  if (!taken.taken && taken.held_by.empty()) {
    taken.held_by = blocker_.empty() ? "another" : blocker_;
  }
  return taken;
}

absl::StatusOr<LockLease::Taken> StoreLease::TakeOnce() {
  RETURN_IF_ERROR(Prepare());
  StartRequest request;
  request.node = {options_.who, {kExecLabel}};
  request.nonce = static_cast<int64_t>(random_.Next() >> 1 | 1);
  request.keys = {period_};
  request.put_off = absl::ZeroDuration();
  Taken taken;
  taken.sent = clock_.BootNow();
  ASSIGN_OR_RETURN(const StartAnswers answers, session_->store().Start(request));
  if (answers.rows.empty() || answers.rows[0].result != StartResult::kStarted) {
    blocker_ = answers.rows.empty() ? "" : answers.rows[0].blocker;
    return HeldBy();
  }
  const Claim& claim = *answers.rows[0].claim;
  ticket_ = TicketOf(claim);
  taken.taken = true;
  taken.fence = claim.fence;
  taken.step = claim.checkpoint;
  taken.data = claim.checkpoint_data;
  // START's own lease is shorter than was asked for.
  taken.sent = clock_.BootNow();
  ASSIGN_OR_RETURN(const std::string lost, Renew(absl::InfiniteDuration()));
  if (!lost.empty()) return absl::AbortedError(lost);
  return taken;
}

absl::StatusOr<std::string> StoreLease::Renew(absl::Duration) {
  ASSIGN_OR_RETURN(const std::vector<ExtendAnswer> answers,
                   session_->store().Extend({{ticket_, options_.ttl}}));
  const ExtendAnswer& answer = answers[0];
  if (answer.refusal.busy()) return Away(answer.refusal);
  if (!answer.refusal.accepted()) {
    return absl::StrCat("the store refuses its renewal (", answer.refusal.why, ")");
  }
  if (answer.cancel_asked) return absl::StrCat("it was released by hand: ", answer.cancel_why);
  return std::string();
}

absl::Status StoreLease::WriteStep(int64_t number, absl::string_view data) {
  ASSIGN_OR_RETURN(const std::vector<Refusal> answers,
                   session_->store().Checkpoint({{ticket_, number, std::string(data)}}));
  if (answers[0].busy()) return Away(answers[0]);
  if (answers[0].accepted()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the store refuses it (", answers[0].why, "), and it will be done again"));
}

absl::Status StoreLease::Release(const RunEnded* ended) {
  FinishRequest request;
  request.ticket = ticket_;
  request.node = options_.who;
  request.outcome.kind = Outcome::Kind::kReturned;  // for the next who asks, with its steps
  request.outcome.reason = reason::kHandedOver;
  request.outcome.message = ended == nullptr ? "not started" : ended->Text();
  if (ended != nullptr) {
    if (ended->exit_code >= 0) request.outcome.exit_code = ended->exit_code;
    if (ended->signal != 0) request.outcome.signal = ended->signal;
    request.outcome.output_head = ended->output.head;
    request.outcome.output_tail = ended->output.tail;
    request.outcome.output_bytes = ended->output.total_bytes;
  }
  ASSIGN_OR_RETURN(const std::vector<Refusal> answers, session_->store().Finish({request}));
  if (answers[0].busy()) return Away(answers[0]);
  if (answers[0].accepted()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("it was no longer ours at the end (", answers[0].why, ")"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LockLease>> LockInStore(LockLeaseOptions options,
                                                       const std::string& store_url, Clock& clock) {
  DatabaseOptions calls;
  calls.call_deadline = std::min(CallDeadline(options.ttl), absl::Seconds(5));
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, DatabaseFromUrl(store_url, calls));
  return std::make_unique<StoreLease>(std::move(options), std::move(database), clock);
}

}  // namespace matins
