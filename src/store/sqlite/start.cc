#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/sqlite/backfills.h"
#include "store/sqlite/due.h"
#include "store/sqlite/limits.h"
#include "store/sqlite/sqlite_store.h"
#include "store/start_rules.h"

namespace matins::sqlite {
namespace {

struct Verdict {
  StartResult result = StartResult::kStarted;
  std::string blocker;
  std::string waits_for = "";                 // the limit that has no room
  absl::Time look_at = absl::InfinitePast();  // InfinitePast: after the request's put_off
  bool started() const { return result == StartResult::kStarted; }
};

// START's conditions, in the order in which they refuse. All of them are asked behind the write
// lock, by the store's clock.
class Gate {
 public:
  Gate(Connection& db, const StartRequest& request, const Transaction& transaction)
      : db_(db),
        request_(request),
        now_(transaction.now()),
        limits_(db, transaction),
        backfills_(db, transaction) {}

  Verdict Judge(const Row& row, const JobInfo* job) {
    Verdict verdict = JudgeRow(row, job);
    if (verdict.started()) verdict = JudgeOrder(row, *job);
    if (verdict.started()) verdict = JudgeRoom(row, *job);
    return verdict;
  }

  void Granted(const Row& row) {
    limits_.Granted(row);
    backfills_.Granted(row);
  }

 private:
  Verdict JudgeRow(const Row& row, const JobInfo* job) {
    if (row.status != PeriodStatus::kPlanned) return {StartResult::kTaken, row.node};
    const bool held_by_other = !row.held_by.empty() && row.held_by != request_.node.name;
    if (held_by_other && row.held_until > now_) return {StartResult::kTaken, row.held_by};
    if (job == nullptr) return {StartResult::kTaken, "its job is deleted"};
    if (job->suspended) return {StartResult::kSuspended, row.key.job};
    if (row.not_before > now_ && !IsMutant(Mutant::kNoDueCheck))
      return {StartResult::kNotDue, FormatInstant(row.not_before)};
    const bool tried = row.manual || row.attempts_total > 0;
    if (PlanningIsBehind(request_, job->next_look, now_) || (job->asked && !tried)) {
      return {StartResult::kGap, "planning is behind"};
    }
    // What was tried is not judged missed again while its attempts last.
    if (row.start_by < now_ && row.attempts_total == 0)
      return {StartResult::kMissed, FormatInstant(row.start_by)};
    if (row.wait_until > now_ && !IsMutant(Mutant::kNoOldLease))
      return {StartResult::kOldLease, FormatInstant(row.wait_until)};
    if (!HasLabels(request_.node.labels, job->labels)) {
      return {StartResult::kLabels, absl::StrCat("needs ", JsonArray(job->labels))};
    }
    return {};
  }

  Verdict JudgeOrder(const Row& row, const JobInfo& job) {
    if (job.strict && !IsMutant(Mutant::kNoOrder)) {
      if (job.gap_from && *job.gap_from < row.due) {
        return {StartResult::kGap, FormatInstant(*job.gap_from)};
      }
      if (job.cursor < row.due) return {StartResult::kGap, "older periods are not planned yet"};
      Statement older = db_.Sql(
          "SELECT period FROM (SELECT * FROM (SELECT period, due_at FROM job_watermark WHERE "
          "job_name = ?1 AND due_at < ?2 AND status IN ('PLANNED', 'FAILED') ORDER BY due_at LIMIT "
          "1) UNION ALL SELECT * FROM (SELECT period, due_at FROM job_watermark WHERE "
          "job_name = ?1 AND due_at < ?2 AND status = 'RUNNING' ORDER BY due_at LIMIT 1)) "
          "ORDER BY due_at LIMIT 1",
          row.key.job, row.due);
      if (older.Next()) return {StartResult::kBlocked, older.Text(0)};
      Statement foreign = db_.Sql(
          "SELECT period FROM job_watermark WHERE job_name = ?1 AND due_at IS NULL AND "
          "biz_date < ?2 AND status IN ('PLANNED', 'FAILED') UNION ALL SELECT period FROM "
          "job_watermark WHERE job_name = ?1 AND due_at IS NULL AND biz_date < ?2 AND "
          "status = 'RUNNING' LIMIT 1",
          row.key.job, FormatDay(row.biz_date));
      if (foreign.Next()) return {StartResult::kBlocked, foreign.Text(0)};
    }
    for (const std::string& other : job.after) {
      Statement days = db_.Sql(
          "SELECT count(*), sum(status = 'DONE') FROM job_watermark WHERE job_name = ? AND "
          "biz_date = ?",
          other, FormatDay(row.biz_date));
      if (!days.Next() || days.Int(0) == 0 || days.Int(1) < days.Int(0)) {
        return {StartResult::kAfter, other};
      }
    }
    return {};
  }

  Verdict JudgeRoom(const Row& row, const JobInfo& job) {
    if (!row.lock_key.empty()) {
      if (IsLeftBehind(row.lock_key) && !IsMutant(Mutant::kNoOldLease)) {
        return {StartResult::kBusy, row.lock_key};
      }
      Statement holder = db_.Sql(
          "SELECT job_name || ' ' || period FROM job_watermark WHERE lock_key = ? AND "
          "lock_key IS NOT NULL AND status = 'RUNNING'",
          row.lock_key);
      if (holder.Next()) return {StartResult::kBusy, holder.Text(0)};
    }
    const BackfillFacts* backfill = nullptr;
    if (row.backfill_id != 0) {
      backfill = backfills_.Find(row.backfill_id);
      if (auto stop = backfills_.Refuse(row)) {
        return {StartResult::kBackfill, std::move(stop->blocker), "", stop->look_at};
      }
    }
    if (IsMutant(Mutant::kNoLimit)) return {};
    if (job.limit && Running(row.key.job, false) >= *job.limit) {
      return {StartResult::kFull, absl::StrCat("limits.job ", *job.limit)};
    }
    const bool own_number = backfill != nullptr && backfill->terms.max_parallel;
    if (row.backfill && !own_number && job.max_parallel &&
        Running(row.key.job, true) >= *job.max_parallel) {
      return {StartResult::kFull, absl::StrCat("backfill.max_parallel ", *job.max_parallel)};
    }
    if (request_.global_limit > 0 && RunningInAll() >= request_.global_limit) {
      return {StartResult::kFull, absl::StrCat("limits.global ", request_.global_limit), "global"};
    }
    if (auto full = limits_.Refuse(row)) {
      return {StartResult::kFull, std::move(full->blocker), std::move(full->waits_for)};
    }
    return {};
  }

  // Locks outlive their rows but seldom: whether any does is asked once.
  bool IsLeftBehind(const std::string& lock_key) {
    if (!any_left_behind_) {
      any_left_behind_ = db_.Sql("SELECT 1 FROM job_lock WHERE until > ? LIMIT 1", now_).Next();
    }
    if (!*any_left_behind_) return false;
    return db_.Sql("SELECT 1 FROM job_lock WHERE lock_key = ? AND until > ?", lock_key, now_)
        .Next();
  }
  int64_t Running(const std::string& job, bool backfill) {
    Statement q = db_.Sql(
        "SELECT (SELECT count(*) FROM job_watermark WHERE job_name = ?1 AND status = 'RUNNING' AND "
        "backfill >= ?2) + (SELECT count(*) FROM job_slot WHERE job_name = ?1 AND backfill >= ?2 "
        "AND until > ?3)",
        job, backfill, now_);
    return q.Next() ? q.Int(0) : 0;
  }
  int64_t RunningInAll() {
    Statement q = db_.Sql(
        "SELECT (SELECT count(*) FROM job_watermark WHERE status = 'RUNNING') + (SELECT count(*) "
        "FROM job_slot WHERE until > ?)",
        now_);
    return q.Next() ? q.Int(0) : 0;
  }

  Connection& db_;
  const StartRequest& request_;
  absl::Time now_;
  std::optional<bool> any_left_behind_;
  LimitGate limits_;
  BackfillGate backfills_;
};

Claim Grant(Connection& db, Transaction& transaction, const StartRequest& request, const Row& row,
            const JobInfo& job) {
  const absl::Time now = transaction.now();
  Claim claim = ClaimFrom(row);
  const bool reuse = IsMutant(Mutant::kNoFenceBump) && row.fence != 0;
  claim.fence = reuse ? row.fence : transaction.NextFence();
  claim.nonce = request.nonce;
  claim.attempt = row.attempts + 1;
  claim.attempt_total = row.attempts_total + 1;
  claim.current_version = job.version;
  claim.claimed_at = now;
  claim.run_until = now + job.timeout + job.grace;
  claim.lease_until = std::min(now + job.lock_ttl, claim.run_until);
  const bool offer = !IsMutant(Mutant::kNoCheckpointOffer);
  claim.checkpoint = offer ? row.checkpoint : 0;
  if (claim.checkpoint > 0) {
    Statement data = db.Sql(
        "SELECT data FROM job_checkpoint WHERE job_name = ? AND period = ? AND generation = ?",
        row.key.job, row.key.period, row.generation);
    if (data.Next()) claim.checkpoint_data = data.Text(0);
  }
  db.Sql(
        "UPDATE job_watermark SET status = 'RUNNING', ver = ver + 1, op = 'claim', op_at = ?1, "
        "attempts = attempts + 1, attempts_total = attempts_total + 1, fence = ?2, nonce = ?3, "
        "node = ?4, held_by = '', held_until = NULL, claimed_at = ?1, lease_until = ?5, "
        "run_until = ?6, wait_until = NULL, waits_for = NULL, start_by = NULL, reason = '', "
        "finished_at = NULL, "
        "checkpointed_at = NULL, renewals = NULL WHERE rowid = ?7",
        now, claim.fence, claim.nonce, request.node.name, claim.lease_until, claim.run_until,
        row.rowid)
      .Run();
  return claim;
}

// A refused row is looked at again later, so that it does not stand in the way of others that are
// due; what frees it pulls it back.
void PutOff(Connection& db, const Row& row, const Verdict& verdict, absl::Time now,
            absl::Duration put_off) {
  absl::Time look_at = verdict.look_at == absl::InfinitePast() ? now + put_off : verdict.look_at;
  switch (verdict.result) {
    case StartResult::kStarted:
    case StartResult::kTaken:
    case StartResult::kNotDue:
    case StartResult::kLabels:
    case StartResult::kFrozen:
      return;
    case StartResult::kOldLease:
      look_at = row.wait_until;
      break;
    default:
      break;
  }
  db.Sql(
        "UPDATE job_watermark SET look_at = ?, waits_for = ?, held_by = '', held_until = NULL "
        "WHERE "
        "job_name = ? AND period = ?",
        look_at,
        verdict.waits_for.empty() ? std::nullopt : std::optional<std::string>(verdict.waits_for),
        row.key.job, row.key.period)
      .Run();
}

}  // namespace

// All jobs are asked only after an act.
DueOrder SqliteStore::OrderOfDue() {
  int64_t event = 0;
  bool turns = false;
  {
    Statement last = db_->Sql(
        "SELECT max(id), EXISTS (SELECT 1 FROM job_watermark WHERE status = 'PLANNED' AND "
        "start_tag > 0) FROM job_event");
    if (last.Next()) {
      event = last.Int(0);
      turns = last.Bool(1);
    }
  }
  if (event != priority_event_) {
    any_priority_ = db_->Sql("SELECT 1 FROM job WHERE priority <> 0 LIMIT 1").Next();
    priority_event_ = db_->ok() ? event : -1;
  }
  return {any_priority_, turns};
}

absl::StatusOr<StartAnswers> SqliteStore::Start(const StartRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "start"));
  const absl::Time now = transaction.now();
  StartAnswers answers;
  answers.now = now;
  Jobs jobs(*db_);
  Gate gate(*db_, request, transaction);
  int started = 0;
  const auto start = [&](const PeriodKey& key, const Row* row) {
    StartAnswer answer;
    answer.key = key;
    Verdict verdict{StartResult::kTaken, "no such row"};
    if (transaction.frozen_to_nodes()) {
      verdict = {StartResult::kFrozen, "the clock stepped; `matins clock accept`"};
    } else if (row != nullptr) {
      const JobInfo* job = jobs.Find(key.job);
      verdict = gate.Judge(*row, job);
      if (verdict.started()) {
        answer.claim = Grant(*db_, transaction, request, *row, *job);
        gate.Granted(*row);
        ++started;
      } else {
        PutOff(*db_, *row, verdict, now, request.put_off);
      }
    }
    answer.result = verdict.result;
    answer.blocker = std::move(verdict.blocker);
    answers.rows.push_back(std::move(answer));
  };
  for (const PeriodKey& key : request.keys) {
    const std::optional<Row> row = FindRow(*db_, key);
    start(key, row ? &*row : nullptr);
  }
  if (request.also_due > 0 && !transaction.frozen_to_nodes()) {
    const std::set<PeriodKey> named(request.keys.begin(), request.keys.end());
    const int wanted = started + request.also_due;
    const Due due(*db_, jobs,
                  {request.node, now, request.also_due, named, OrderOfDue(), request.put_off});
    for (const Row& row : due.rows()) {
      if (started >= wanted || !db_->ok()) break;
      start(row.key, &row);
    }
    answers.more = started >= wanted || due.more();
  }
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

// A row that START refused, as long as its next look is to come.
constexpr char kPutOff[] = "coalesce(look_at > not_before, 0)";

absl::StatusOr<HoldAnswer> SqliteStore::Hold(const HoldRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "hold"));
  HoldAnswer answer;
  answer.now = transaction.now();
  const absl::Time until = answer.now + request.ahead;
  const std::string labels = JsonArray(request.node.labels);
  if (!transaction.frozen_to_nodes() && request.limit > 0) {
    // Rows due within `ahead` and held by nobody now: the most urgent of those that the index
    // gives first. What is behind many of other nodes' is found when it is due.
    static const std::string kSql = absl::StrCat(
        "SELECT job_name, period, not_before, priority FROM (SELECT w.* FROM (SELECT job_name, ",
        "period, not_before, priority, due_at, held_by, held_until FROM job_watermark WHERE ",
        "status = 'PLANNED' AND look_at > ?5 AND look_at <= ?1 AND (look_at <= ?2 OR NOT ", kPutOff,
        ") ORDER BY look_at LIMIT ",
        "8 * ?4 + 2000) w CROSS JOIN job j ON j.name = w.job_name WHERE ", kMayRun,
        " LIMIT 4 * ?4 + 200) ORDER BY priority DESC, due_at, job_name, period LIMIT ?4");
    Statement rows = db_->Sql(kSql, until, answer.now, labels, request.limit,
                              request.due ? int64_t{INT64_MIN} : ToMicros(answer.now));
    while (rows.Next()) {
      answer.rows.push_back({{rows.Text(0), rows.Text(1)},
                             rows.Time(2, absl::InfinitePast()),
                             static_cast<int>(rows.Int(3))});
    }
  }
  for (const HeldRow& row : answer.rows) {
    db_->Sql(
           "UPDATE job_watermark SET held_by = ?, held_until = ?, dispatched_at = ?, ver = ver + "
           "1, op = 'dispatch', op_at = ? WHERE job_name = ? AND period = ?",
           request.node.name, std::max(answer.now, row.not_before) + kHoldFor, answer.now,
           answer.now, row.key.job, row.key.period)
        .Run();
  }
  {
    Statement next = db_->Sql(
        "SELECT min(look_at) FROM job_watermark WHERE status = 'PLANNED' AND look_at > ?", until);
    if (next.Next()) answer.next_start = next.Time(0, absl::InfiniteFuture());
  }
  {
    static const std::string kNextLook = absl::StrCat(
        "SELECT look_at FROM job_watermark WHERE status = 'PLANNED' AND look_at > ? AND look_at ",
        "<= ? AND ", kPutOff, " ORDER BY look_at LIMIT 1");
    Statement next = db_->Sql(kNextLook, answer.now, until);
    if (next.Next()) answer.next_look = next.Time(0, absl::InfiniteFuture());
  }
  answer.due = AnyDue(*db_, request.node, answer.now);
  RETURN_IF_ERROR(transaction.Commit());
  return answer;
}

absl::Status SqliteStore::Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "unhold"));
  for (const PeriodKey& key : keys) {
    db_->Sql(
           "UPDATE job_watermark SET held_by = '', held_until = NULL WHERE job_name = ? AND "
           "period = ? AND status = 'PLANNED' AND held_by = ?",
           key.job, key.period, node.name)
        .Run();
  }
  return transaction.Commit();
}

}  // namespace matins::sqlite
