#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/rules.h"
#include "store/sqlite/schema_sql.h"
#include "store/sqlite/sqlite_acts.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

bool JobExists(Connection& db, absl::string_view job) {
  return db.Sql("SELECT 1 FROM job WHERE name = ? AND NOT deleted", job).Next();
}

std::optional<std::string> RunsOn(Connection& db, absl::string_view job) {
  Statement row = db.Sql(
      "SELECT node FROM job_watermark WHERE job_name = ? AND status = 'RUNNING' LIMIT 1", job);
  if (!row.Next()) return std::nullopt;
  return row.Text(0);
}

// A lease that outlasted its row is waited for whatever becomes of the period meanwhile (I7).
std::string WaitText(absl::Time wait_until) {
  return wait_until == absl::InfinitePast() ? "null" : absl::StrCat(ToMicros(wait_until));
}

void BumpRevision(Connection& db, absl::string_view job) {
  db.Sql("UPDATE job SET revision = revision + 1 WHERE name = ?", job).Run();
}

}  // namespace

void TakeBackHeld(Connection& db, absl::string_view job) {
  db.Sql(
        "UPDATE job_watermark SET held_by = '', held_until = NULL WHERE job_name = ? AND status = "
        "'PLANNED' AND held_by <> ''",
        job)
      .Run();
}

void Withdraw(Connection& db, absl::Time now, absl::string_view job) {
  db.Sql(
        "UPDATE job_watermark SET op = 'withdrawn' WHERE job_name = ? AND status = 'PLANNED' AND "
        "due_at > ? AND generation = 1 AND attempts_total = 0 AND NOT manual",
        job, now)
      .Run();
  db.Sql(
        "DELETE FROM job_journal WHERE job_name = ?1 AND period IN (SELECT period FROM "
        "job_watermark WHERE job_name = ?1 AND status = 'PLANNED' AND op = 'withdrawn')",
        job)
      .Run();
  db.Sql("DELETE FROM job_watermark WHERE job_name = ? AND status = 'PLANNED' AND op = 'withdrawn'",
         job)
      .Run();
}

int SkipForDeleted(Connection& db, absl::Time now, absl::string_view job, absl::string_view who) {
  return db
      .Sql(
          "UPDATE job_watermark SET status = 'SKIPPED', reason = ?1, by_whom = ?2, finished_at = "
          "?3, held_by = '', held_until = NULL, look_at = NULL, ver = ver + 1, op = 'skip', op_at "
          "= "
          "?4 WHERE job_name = ?5 AND status IN ('PLANNED', 'FAILED') AND NOT held",
          reason::kDeleted, who, FinishedText(now), now, job)
      .Run();
}

void SuspendJob(Connection& db, absl::Time now, absl::string_view job, const Act& act) {
  TakeBackHeld(db, job);
  db.Sql(
        "UPDATE job SET suspended_at = ?, suspended_by = ?, suspended_why = ?, revision = revision "
        "+ 1, next_look = 0 WHERE name = ?",
        now, act.who, act.why, job)
      .Run();
  db.Sql(
        "INSERT INTO job_span (job, kind, from_at, to_at, by_whom, why) VALUES (?, 'suspended', ?, "
        "NULL, ?, ?)",
        job, now, act.who, act.why)
      .Run();
  WriteEvent(db, now, {.kind = "suspended", .job = job, .who = act.who, .why = act.why});
}

void ResumeJob(Connection& db, absl::Time now, absl::string_view job, bool trigger,
               const Act& act) {
  db.Sql(
        "UPDATE job SET suspended_at = NULL, suspended_by = '', suspended_why = '', revision = "
        "revision + 1, next_look = 0, pending = CASE WHEN ? THEN 'person' ELSE pending END WHERE "
        "name = ?",
        trigger, job)
      .Run();
  db.Sql("UPDATE job_span SET to_at = ? WHERE job = ? AND kind = 'suspended' AND to_at IS NULL",
         now, job)
      .Run();
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? AND "
        "status = 'PLANNED' "
        "AND look_at > not_before",
        job)
      .Run();
  WriteEvent(db, now, {.kind = "resumed", .job = job, .who = act.who, .why = act.why});
}

absl::Status DeleteJob(Connection& db, absl::Time now, absl::string_view job, bool force,
                       const Act& act) {
  if (!JobExists(db, job)) return NoJob(job);
  if (!force) {
    if (const std::optional<std::string> node = RunsOn(db, job)) {
      return RefuseDeleteRunning(job, *node);
    }
  }
  Withdraw(db, now, job);
  const int skipped = SkipForDeleted(db, now, job, act.who);
  db.Sql(
        "UPDATE job SET deleted = 1, next_look = NULL, pending = NULL, revision = revision + 1 "
        "WHERE name = ?",
        job)
      .Run();
  db.Sql("DELETE FROM job_after WHERE job = ?", job).Run();
  WriteEvent(db, now,
             {.kind = "deleted",
              .job = job,
              .who = act.who,
              .why = act.why,
              .detail = absl::StrCat("{\"skipped\":", skipped, "}")});
  return absl::OkStatus();
}

absl::Status SqliteActs::Suspend(absl::string_view job, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "suspend"));
  {
    Statement row = db_->Sql(
        "SELECT suspended_at IS NOT NULL, suspended_by, suspended_why FROM job WHERE name = ? AND "
        "NOT deleted",
        job);
    if (!row.Next()) return db_->ok() ? NoJob(job) : db_->status();
    if (row.Bool(0)) return RefuseSuspended(job, row.Text(1), row.Text(2));
  }
  SuspendJob(*db_, transaction.now(), job, act);
  return transaction.Commit();
}

absl::Status SqliteActs::Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                                const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "resume"));
  {
    Statement row =
        db_->Sql("SELECT suspended_at IS NOT NULL FROM job WHERE name = ? AND NOT deleted", job);
    if (!row.Next()) return db_->ok() ? NoJob(job) : db_->status();
    if (!row.Bool(0)) return RefuseNotSuspended(job);
  }
  if (skip) {
    HoldAtOnce none;
    std::vector<HeldRow> held;
    if (!WritePlan(*db_, transaction.now(), *skip, &none, &held)) {
      RETURN_IF_ERROR(db_->status());
      return RefuseChangedMeanwhile(job);
    }
  }
  ResumeJob(*db_, transaction.now(), job, !skip, act);
  return transaction.Commit();
}

absl::Status SqliteActs::Rename(absl::string_view from, absl::string_view to, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "rename"));
  if (!JobExists(*db_, from)) return NoJob(from);
  if (db_->Sql("SELECT 1 FROM job WHERE name = ?1 UNION SELECT 1 FROM job_watermark WHERE "
               "job_name = ?1",
               to)
          .Next()) {
    return RefuseTakenName(to);
  }
  if (const std::optional<std::string> node = RunsOn(*db_, from)) {
    return RefuseRenameRunning(from, *node);
  }
  TakeBackHeld(*db_, from);
  db_->Sql(
         "UPDATE job SET name = ?2, revision = revision + 1, definition = json_set(definition, "
         "'$.name', ?2) WHERE name = ?1",
         from, to)
      .Run();
  db_->Sql(
         "UPDATE job_version SET job = ?2, definition = json_set(definition, '$.name', ?2) WHERE "
         "job = ?1",
         from, to)
      .Run();
  db_->Sql(
         "UPDATE job_watermark SET lock_key = 'job/' || ?2 WHERE job_name = ?1 AND lock_key = "
         "'job/' || ?1",
         from, to)
      .Run();
  // A lease that outlasts its row keeps its job's lock under the new name too (I7).
  db_->Sql("UPDATE job_lock SET lock_key = 'job/' || ?2 WHERE lock_key = 'job/' || ?1", from, to)
      .Run();
  for (const char* sql : {"UPDATE job_watermark SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_after SET job = ?2 WHERE job = ?1",
                          "UPDATE job_after SET after_job = ?2 WHERE after_job = ?1",
                          "UPDATE job_span SET job = ?2 WHERE job = ?1",
                          "UPDATE job_run SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_event SET job = ?2 WHERE job = ?1",
                          "UPDATE job_checkpoint SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_figure SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_drill SET job = ?2 WHERE job = ?1",
                          "UPDATE job_journal SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_lock SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_slot SET job_name = ?2 WHERE job_name = ?1",
                          "UPDATE job_alert SET job = ?2 WHERE job = ?1",
                          "UPDATE job_silence SET job = ?2 WHERE job = ?1",
                          "UPDATE job_backfill SET job = ?2 WHERE job = ?1"}) {
    db_->Sql(sql, from, to).Run();
  }
  WriteEvent(*db_, transaction.now(),
             {.kind = "renamed",
              .job = to,
              .who = act.who,
              .why = act.why,
              .detail = absl::StrCat("{\"from\":", JsonString(from), "}")});
  return transaction.Commit();
}

absl::Status SqliteActs::Delete(absl::string_view job, bool force, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "delete"));
  RETURN_IF_ERROR(DeleteJob(*db_, transaction.now(), job, force, act));
  return transaction.Commit();
}

absl::Status ReopenRow(Connection& db, absl::Time now, const PeriodKey& key,
                       absl::string_view params, const Act& act, Turns& turns) {
  const std::optional<Row> row = FindRow(db, key);
  if (!row) return db.ok() ? NoRowToReopen(key) : db.status();
  if (!JobExists(db, key.job)) return NoJob(key.job);
  RETURN_IF_ERROR(MayReopen(key, Word(row->status), row->held, row->node, row->fence));
  db.Sql(
        "UPDATE job_watermark SET status = 'PLANNED', held = 0, generation = generation + 1, "
        "ver = 1, op = 'plan', op_at = ?1, finished_at = NULL, start_by = NULL, look_at = "
        "coalesce(not_before, 0), not_before = coalesce(not_before, 0), manual = 1, params = ?2, "
        "reason = '', by_whom = ?3, attempts = 0, attempts_total = 0, losses = 0, "
        "checkpoint = 0, checkpointed_at = NULL, planned_at = ?1, "
        "dispatched_at = NULL, backfill = 0, backfill_id = NULL, waits_for = NULL, "
        "start_tag = ?6, lock_key = coalesce(lock_key, "
        "(SELECT 'job/' || "
        "name FROM job WHERE name = job_name AND lock_scope = 'job')) WHERE job_name = ?4 AND "
        "period = ?5",
        now, params, act.who, key.job, key.period, turns.Take(row->tenant))
      .Run();
  BumpRevision(db, key.job);
  WriteEvent(
      db, now,
      {.kind = "reopened",
       .job = key.job,
       .period = key.period,
       .generation = row->generation + 1,
       .who = act.who,
       .why = act.why,
       .detail = absl::StrCat("{\"old_status\":\"", Word(row->status), "\",\"old_fence\":\"",
                              row->fence, "\",\"lease_until\":", WaitText(row->wait_until), "}")});
  return db.status();
}

absl::Status SkipRows(Connection& db, absl::Time now, absl::Span<const PeriodKey> keys,
                      const Act& act) {
  std::vector<std::optional<Row>> rows;
  size_t missing = 0;
  for (const PeriodKey& key : keys) {
    rows.push_back(FindRow(db, key));
    if (!rows.back()) ++missing;
  }
  RETURN_IF_ERROR(db.status());
  if (missing > 0) return NoRowsToSkip(missing, keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const PeriodKey& key = keys[i];
    const Row& row = *rows[i];
    RETURN_IF_ERROR(MaySkip(key, Word(row.status), row.node));
    db.Sql(
          "UPDATE job_watermark SET status = 'SKIPPED', held = 0, reason = ?1, by_whom = ?2, "
          "finished_at = ?3, ver = ver + 1, op = 'skip', op_at = ?4, held_by = '', held_until = "
          "NULL WHERE job_name = ?5 AND period = ?6",
          act.why.empty() ? "by hand" : act.why, act.who, FinishedText(now), now, key.job,
          key.period)
        .Run();
    BumpRevision(db, key.job);
    Wake(db, now, row, row.lock_key, false);
    WriteEvent(db, now,
               {.kind = "skip",
                .job = key.job,
                .period = key.period,
                .generation = row.generation,
                .who = act.who,
                .why = act.why});
  }
  return db.status();
}

absl::Status SqliteActs::Reopen(const PeriodKey& key, absl::string_view params, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "reopen"));
  Turns turns = TurnsOfRows(*db_, transaction.now(), {&key, 1});
  RETURN_IF_ERROR(ReopenRow(*db_, transaction.now(), key, params, act, turns));
  return transaction.Commit();
}

absl::Status SqliteActs::Skip(absl::Span<const PeriodKey> keys, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "skip"));
  RETURN_IF_ERROR(SkipRows(*db_, transaction.now(), keys, act));
  return transaction.Commit();
}

absl::Status SqliteActs::Cancel(int64_t fence, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "cancel"));
  PeriodKey key;
  int generation = 0;
  {
    Statement row = db_->Sql(
        "UPDATE job_watermark SET cancel_by = ?, cancel_why = ? WHERE status = 'RUNNING' AND "
        "fence = ? AND lease_until > ? RETURNING job_name, period, generation",
        act.who, act.why, fence, transaction.now());
    while (row.Next()) {
      key = {row.Text(0), row.Text(1)};
      generation = static_cast<int>(row.Int(2));
    }
  }
  if (key.job.empty()) {
    RETURN_IF_ERROR(db_->status());
    return NoRunAlive(fence);
  }
  WriteEvent(*db_, transaction.now(),
             {.kind = "cancel",
              .job = key.job,
              .period = key.period,
              .generation = generation,
              .who = act.who,
              .why = act.why,
              .detail = absl::StrCat("{\"fence\":\"", fence, "\"}")});
  return transaction.Commit();
}

absl::Status SqliteActs::TriggerNow(absl::string_view job, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "trigger"));
  if (!JobExists(*db_, job)) return NoJob(job);
  db_->Sql(
         "UPDATE job SET pending = 'person', next_look = 0, revision = revision + 1 WHERE name = ?",
         job)
      .Run();
  WriteEvent(*db_, transaction.now(),
             {.kind = "trigger", .job = job, .who = act.who, .why = act.why});
  return transaction.Commit();
}

absl::Status SqliteActs::AcceptClock(const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "accept_clock"));
  if (!transaction.frozen_to_nodes()) return absl::OkStatus();
  SettleClock(*db_, transaction, act.who, act.why);
  return transaction.Commit();
}

absl::StatusOr<int64_t> SqliteActs::BumpEpoch(const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "bump_epoch"));
  const int64_t epoch = NextEpoch(transaction.epoch(), transaction.now());
  RaiseEpoch(*db_, epoch, transaction.now());
  WriteEvent(*db_, transaction.now(),
             {.kind = "epoch",
              .who = act.who,
              .why = act.why,
              .detail = absl::StrCat("{\"epoch\":", epoch, "}")});
  RETURN_IF_ERROR(transaction.Commit());
  return epoch;
}

absl::Status SqliteActs::SetJournal(bool full) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "set_journal"));
  db_->Sql("UPDATE matins_meta SET value = ? WHERE key = 'journal'", full ? "full" : "runs").Run();
  RETURN_IF_ERROR(db_->Script(full ? kEnableJournal : kDisableJournal));
  return transaction.Commit();
}

}  // namespace matins::sqlite
