#include "store/mariadb/acts.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/json.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/mariadb/clock.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/perform.h"
#include "store/mariadb/plan_statements.h"
#include "store/mariadb/schema.h"
#include "store/mariadb/schema_sql.h"
#include "store/rules.h"

namespace matins::mariadb {

Statement EventOf(absl::string_view kind, absl::string_view job, absl::string_view period,
                  const Act& act, absl::Time now, absl::string_view detail) {
  return Sql(
      "INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES "
      "(?, ?, ?, ?, 0, ?, ?, ?)",
      {now, kind, job, period, act.who, act.why, detail});
}

Statement TakeBackHeld(absl::string_view job) {
  return Sql(
      "UPDATE job_watermark SET held_by = NULL, held_until = NULL WHERE job_name = ? AND "
      "status = 'PLANNED' AND held_by IS NOT NULL",
      {job});
}

namespace {

// A START that read the job before this act has its rows locked, whether they were held or not, and
// is waited for; one that comes later sees what the act has written.
Statement WaitForStarts(absl::string_view job) {
  return Sql(
      "SELECT period FROM job_watermark WHERE job_name = ? AND status = 'PLANNED' ORDER BY period "
      "FOR UPDATE",
      {job});
}

}  // namespace

std::vector<Statement> SuspendJob(absl::string_view job, const Act& act, absl::Time now) {
  return {WaitForStarts(job), TakeBackHeld(job),
          Sql("UPDATE job SET suspended_at = ?, suspended_by = ?, suspended_why = ?, "
              "next_look = TIMESTAMP'1970-01-01 00:00:00', revision = revision + 1 WHERE name = ?",
              {now, act.who, act.why, job}),
          Sql("INSERT INTO job_span (job, kind, from_at, by_whom, why) VALUES (?, 'suspended', ?, "
              "?, ?)",
              {job, now, act.who, act.why}),
          EventOf("suspended", job, "", act, now)};
}

std::vector<Statement> ResumeJob(absl::string_view job, bool trigger, const Act& act,
                                 absl::Time now) {
  return {Sql("UPDATE job_span SET to_at = ? WHERE job = ? AND kind = 'suspended' AND "
              "to_at IS NULL",
              {now, job}),
          Sql(absl::StrCat("UPDATE job SET suspended_at = NULL, suspended_by = NULL, "
                           "suspended_why = NULL, ",
                           trigger ? "pending = 'person', " : "",
                           "next_look = TIMESTAMP'1970-01-01 00:00:00', revision = revision + 1 "
                           "WHERE name = ?"),
              {job}),
          Sql("UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? "
              "AND status = 'PLANNED' AND look_at > not_before",
              {job}),
          EventOf("resumed", job, "", act, now)};
}

// What the old version planned beyond this moment, and was never started, is as though it had never
// been: the new version plans it anew.
std::vector<Statement> WithdrawRows(absl::string_view job, absl::Time now) {
  // A job that was never planned has no cursor, and keeps all that it owes.
  return {
      Sql("UPDATE job SET `cursor` = LEAST(`cursor`, ?) WHERE name = ?", {JustBefore(now), job}),
      Sql("UPDATE job_watermark r SET r.op = 'withdrawn' WHERE r.job_name = ? AND "
          "r.status = 'PLANNED' AND r.attempts_total = 0 AND r.generation = 1 AND "
          "NOT r.manual AND r.due_at > ? ORDER BY r.period",
          {job, now}),
      Sql("DELETE g FROM job_watermark r STRAIGHT_JOIN job_journal g ON "
          "g.job_name = r.job_name AND g.period = r.period WHERE r.job_name = ? AND "
          "r.status = 'PLANNED' AND r.op = 'withdrawn'",
          {job}),
      Sql("DELETE FROM job_watermark WHERE job_name = ? AND status = 'PLANNED' AND "
          "op = 'withdrawn'",
          {job}),
      TakeBackHeld(job)};
}

// The rows may be another's between the act's clock and here: locked first, then dated. The last
// statement's count is that of the rows.
std::vector<Statement> SkipForDeleted(absl::string_view job, const Act& act) {
  constexpr absl::string_view kWhich =
      "job_name = ? AND (status = 'PLANNED' OR (status = 'FAILED' AND NOT held)) ORDER BY period";
  return {
      Sql(absl::StrCat("SELECT period FROM job_watermark WHERE ", kWhich, " FOR UPDATE"), {job}),
      Sql("SET @matins_now = @NOW"),
      Sql(absl::StrCat("UPDATE job_watermark SET reason = ?, by_whom = ?, "
                       "finished_at = CAST(@matins_now AS DATETIME(6)), held_by = NULL, "
                       "held_until = NULL, look_at = NULL, waits_for = NULL, ver = ver + 1, "
                       "op = 'skip', op_at = CAST(@matins_now AS DATETIME(6)), "
                       "status = 'SKIPPED' WHERE ",
                       kWhich),
          {reason::kDeleted, act.who, job})};
}

std::vector<Statement> DeleteJob(absl::string_view job, const Act& act, absl::Time now) {
  std::vector<Statement> out = WithdrawRows(job, now);
  for (Statement& s : SkipForDeleted(job, act)) out.push_back(std::move(s));
  out.push_back(
      Sql("INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES (?, "
          "'deleted', ?, '', 0, ?, ?, CONCAT('{\"skipped\":', ROW_COUNT(), '}'))",
          {now, job, act.who, act.why}));
  out.push_back(
      Sql("UPDATE job SET deleted = TRUE, next_look = NULL, pending = NULL, "
          "revision = revision + 1 WHERE name = ?",
          {job}));
  out.push_back(Sql("DELETE FROM job_after WHERE job = ?", {job}));
  return out;
}

namespace {

// Locks the job. The columns of LockedJob.
Statement LockJob(absl::string_view job) {
  return Sql(
      "SELECT j.suspended_at IS NOT NULL, j.suspended_by, j.suspended_why FROM job j WHERE "
      "j.name = ? AND NOT j.deleted FOR UPDATE",
      {job});
}

// After LockJob: how many of its runs are alive, and on which node the first.
Statement AliveOf(absl::string_view job) {
  return Sql(
      "SELECT COUNT(*), MIN(r.node) FROM job_watermark r WHERE r.job_name = ? AND "
      "r.status = 'RUNNING'",
      {job});
}

}  // namespace

absl::Status MariadbActs::Suspend(absl::string_view job, const Act& act) {
  return Perform(session_, {LockJob(job)},
                 [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
                   if (rows[0].size() == 0) return NoJob(job);
                   if (rows[0].Bool(0, 0)) {
                     return RefuseSuspended(job, rows[0].Text(0, 1), rows[0].Text(0, 2));
                   }
                   return SuspendJob(job, act, clock.now);
                 });
}

absl::Status MariadbActs::Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                                 const Act& act) {
  PlanRequest plan;
  if (skip) plan.writes.push_back(*skip);
  std::vector<Statement> locks = {LockJob(job)};
  if (skip) Append(locks, LockForPlan(plan));
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    if (rows[0].size() == 0) return NoJob(job);
    if (!rows[0].Bool(0, 0)) return RefuseNotSuspended(job);
    std::vector<Statement> writes;
    if (skip) {
      PlanLocked locked = ReadPlanLocked(plan, &rows[1]);
      PlanBatch batch(plan, std::move(locked.facts), JsonForm::kMariadb);
      if (!batch.written[0]) return RefuseChangedMeanwhile(job);
      Append(writes, PlanStatements(batch, plan, locked.wakes, clock.now,
                                    session_.connection.statement_bytes()));
    }
    Append(writes, ResumeJob(job, !skip, act, clock.now));
    return writes;
  });
}

absl::Status MariadbActs::Rename(absl::string_view from, absl::string_view to, const Act& act) {
  const std::vector<Statement> locks = {
      LockJob(from),
      Sql("SELECT EXISTS (SELECT 1 FROM job WHERE name = ?) OR EXISTS (SELECT 1 FROM "
          "job_watermark WHERE job_name = ?)",
          {to, to}),
      AliveOf(from), Sql("SELECT definition FROM job WHERE name = ?", {from}),
      Sql("SELECT version, definition FROM job_version WHERE job = ?", {from})};
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    if (rows[0].size() == 0) return NoJob(from);
    if (rows[1].Bool(0, 0)) return RefuseTakenName(to);
    if (rows[2].Int(0, 0) > 0) return RefuseRenameRunning(from, rows[2].Text(0, 1));
    std::vector<Statement> writes = {TakeBackHeld(from)};
    for (const auto& [table, column] : {std::pair{"job", "name"},
                                        {"job_version", "job"},
                                        {"job_after", "job"},
                                        {"job_after", "after_job"},
                                        {"job_span", "job"},
                                        {"job_watermark", "job_name"},
                                        {"job_run", "job_name"},
                                        {"job_checkpoint", "job_name"},
                                        {"job_figure", "job_name"},
                                        {"job_drill", "job"},
                                        {"job_journal", "job_name"},
                                        {"job_lock", "job_name"},
                                        {"job_slot", "job_name"},
                                        {"job_alert", "job"},
                                        {"job_silence", "job"},
                                        {"job_backfill", "job"},
                                        {"job_event", "job"}}) {
      writes.push_back(
          Sql(absl::StrCat("UPDATE ", table, " SET ", column, " = ? WHERE ", column, " = ?"),
              {to, from}));
    }
    const std::string old_lock = absl::StrCat("job/", from), new_lock = absl::StrCat("job/", to);
    writes.push_back(
        Sql("UPDATE job_watermark SET lock_key = ?, waits_for = NULL, "
            "look_at = IF(status = 'PLANNED', not_before, look_at) WHERE job_name = ? AND "
            "lock_key = ?",
            {new_lock, to, old_lock}));
    // A lease that outlasts its row keeps its job's lock under the new name too (I7).
    writes.push_back(
        Sql("UPDATE job_lock SET lock_key = ? WHERE lock_key = ?", {new_lock, old_lock}));
    const std::string name = UsableText(to);
    writes.push_back(Sql("UPDATE job SET definition = ?, revision = revision + 1 WHERE name = ?",
                         {RenamedJson(rows[3].Text(0, 0), name), to}));
    for (int i = 0; i < rows[4].size(); ++i) {
      writes.push_back(Sql("UPDATE job_version SET definition = ? WHERE job = ? AND version = ?",
                           {RenamedJson(rows[4].Text(i, 1), name), to, rows[4].Int(i, 0)}));
    }
    writes.push_back(EventOf("renamed", to, "", act, clock.now,
                             absl::StrCat("{\"from\":", JsonString(from), "}")));
    return writes;
  });
}

absl::Status MariadbActs::Delete(absl::string_view job, bool force, const Act& act) {
  return Perform(session_, {LockJob(job), AliveOf(job)},
                 [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
                   if (rows[0].size() == 0) return NoJob(job);
                   if (rows[1].Int(0, 0) > 0 && !force) {
                     return RefuseDeleteRunning(job, rows[1].Text(0, 1));
                   }
                   return DeleteJob(job, act, clock.now);
                 });
}

Statement LockJobsOf(absl::string_view keys_json) {
  return Sql(
      "SELECT j.name, j.deleted FROM (SELECT DISTINCT x.job FROM ? ORDER BY x.job) k STRAIGHT_JOIN "
      "job j FORCE INDEX (PRIMARY) ON j.name = k.job FOR UPDATE",
      {KeyTable(keys_json)});
}

absl::Status MayReopenRows(const Rows& jobs, const Rows& rows, absl::Span<const PeriodKey> keys) {
  std::set<std::string> known;
  for (int i = 0; i < jobs.size(); ++i) {
    if (!jobs.Bool(i, 1)) known.insert(jobs.Text(i, 0));
  }
  std::map<PeriodKey, AttemptRow> found;
  for (int i = 0; i < rows.size(); ++i) {
    AttemptRow row = ReadRow(rows, i);
    found[row.key] = std::move(row);
  }
  for (const PeriodKey& key : keys) {
    const auto row = found.find({UsableText(key.job), UsableText(key.period)});
    if (row == found.end()) return NoRowToReopen(key);
    if (!known.contains(row->first.job)) return NoJob(key.job);
    const AttemptRow& r = row->second;
    RETURN_IF_ERROR(MayReopen(key, Word(r.status), r.held, r.node, r.fence));
  }
  return absl::OkStatus();
}

std::vector<Statement> ReopenRows(const Rows& rows, const Rows& turns,
                                  absl::Span<const Intent> planned, absl::string_view params,
                                  const Act& act, absl::Time now) {
  std::vector<AttemptRow> opened;
  bool any_tenant = false;
  for (int i = 0; i < rows.size(); ++i) {
    opened.push_back(ReadRow(rows, i));
    any_tenant = any_tenant || !opened.back().tenant.empty();
  }
  Turns next = TurnsOf(turns, any_tenant);
  for (const Intent& intent : planned) {
    if (intent.skip_reason.empty()) next.Take(intent.tenant);
  }
  JsonRows list;
  for (const AttemptRow& row : opened) {
    list.Row().AddKey(row.key).AddInt("tag", next.Take(row.tenant));
  }
  const Value keys = JsonTable(list.Take(), "job name, period name, tag int");
  return {
      Sql("INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) "
          "SELECT ?, 'reopened', r.job_name, r.period, r.generation + 1, ?, ?, "
          "JSON_OBJECT('old_status', r.status, 'old_fence', CAST(r.fence AS CHAR), 'lease_until', "
          "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', r.wait_until)) FROM "
          "? @ROWS",
          {now, act.who, act.why, keys}),
      // MariaDB assigns from left to right: what a column was is asked before it changes.
      Sql("UPDATE ? @ROWS "
          "SET r.lock_key = COALESCE(r.lock_key, (SELECT CONCAT('job/', j.name) FROM job j WHERE "
          "j.name = r.job_name AND j.lock_scope = 'job')), "
          "r.status = 'PLANNED', r.start_tag = x.tag, r.held = FALSE, "
          "r.generation = r.generation + 1, r.ver = 1, r.op = 'plan', r.op_at = ?, r.planned_at = "
          "?, r.attempts = 0, r.attempts_total = 0, "
          "r.losses = 0, r.checkpoint = 0, r.checkpointed_at = NULL, r.reason = NULL, "
          "r.by_whom = ?, r.manual = TRUE, r.params = ?, r.finished_at = NULL, "
          "r.start_by = NULL, r.backfill = FALSE, r.backfill_id = NULL, r.dispatched_at = NULL, "
          "r.not_before = COALESCE(r.not_before, TIMESTAMP'1970-01-01 00:00:00'), "
          "r.look_at = r.not_before, r.held_by = NULL, r.held_until = NULL, r.waits_for = NULL, "
          "r.cancel_by = NULL, r.cancel_why = NULL",
          {keys, now, now, act.who, Value::OrNull(params)}),
      Sql("UPDATE (SELECT DISTINCT x.job FROM ?) k STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON "
          "j.name = k.job SET "
          "j.revision = j.revision + 1",
          {keys})};
}

absl::StatusOr<std::vector<Statement>> SkipRows(const Rows& rows, const Rows& waiting,
                                                const Act& act, absl::Time now) {
  Wakes wakes(WaitingOf(waiting));
  std::vector<PeriodKey> keys;
  for (int i = 0; i < rows.size(); ++i) {
    const AttemptRow row = ReadRow(rows, i);
    RETURN_IF_ERROR(MaySkip(row.key, Word(row.status), row.node));
    wakes.Add(row.key.job, row.lock_key, row.biz_date);
    keys.push_back(row.key);
  }
  const std::string list = KeysInOrder(keys);
  std::vector<Statement> writes = {
      Sql("UPDATE ? @ROWS "
          "SET r.status = 'SKIPPED', r.held = FALSE, r.reason = ?, r.by_whom = ?, "
          "r.finished_at = ?, r.held_by = NULL, r.held_until = NULL, r.waits_for = NULL, "
          "r.ver = r.ver + 1, r.op = 'skip', r.op_at = ?",
          {KeyTable(list), act.why.empty() ? "by hand" : absl::string_view(act.why), act.who, now,
           now}),
      Sql("UPDATE (SELECT DISTINCT x.job FROM ?) k STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON "
          "j.name = k.job SET "
          "j.revision = j.revision + 1",
          {KeyTable(list)})};
  Append(writes, wakes.Statements());
  for (const PeriodKey& key : keys) {
    writes.push_back(EventOf("skip", key.job, key.period, act, now));
  }
  return writes;
}

absl::Status MariadbActs::Reopen(const PeriodKey& key, absl::string_view params, const Act& act) {
  const std::string list = KeysInOrder({key});
  const std::vector<Statement> locks = {LockJobsOf(list), LockRows(session_, list, Locking::kWait),
                                        ReadTurns()};
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    RETURN_IF_ERROR(MayReopenRows(rows[0], rows[1], {&key, 1}));
    return ReopenRows(rows[1], rows[2], {}, params, act, clock.now);
  });
}

absl::Status MariadbActs::Skip(absl::Span<const PeriodKey> keys, const Act& act) {
  if (keys.empty()) return absl::OkStatus();
  const std::string list = KeysInOrder({keys.begin(), keys.end()});
  const std::vector<Statement> locks = {LockJobsOf(list), LockRows(session_, list, Locking::kWait),
                                        ReadWaiting()};
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    if (rows[1].size() < static_cast<int>(keys.size())) {
      return NoRowsToSkip(keys.size() - static_cast<size_t>(rows[1].size()), keys.size());
    }
    return SkipRows(rows[1], rows[2], act, clock.now);
  });
}

absl::Status MariadbActs::Cancel(int64_t fence, const Act& act) {
  const std::vector<Statement> locks = {
      Sql("SELECT r.job_name, r.period, r.lease_until FROM job_watermark r WHERE "
          "r.status = 'RUNNING' AND r.fence = ? FOR UPDATE",
          {fence})};
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    if (rows[0].size() == 0 || rows[0].Time(0, 2) <= clock.now) return NoRunAlive(fence);
    const std::string job = rows[0].Text(0, 0), period = rows[0].Text(0, 1);
    return std::vector<Statement>{
        Sql("UPDATE job_watermark SET cancel_by = ?, cancel_why = ? WHERE job_name = ? AND "
            "period = ?",
            {act.who, act.why, job, period}),
        EventOf("cancel", job, period, act, clock.now,
                absl::StrCat("{\"fence\":\"", fence, "\"}"))};
  });
}

absl::Status MariadbActs::TriggerNow(absl::string_view job, const Act& act) {
  return Perform(session_, {LockJob(job)},
                 [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
                   if (rows[0].size() == 0) return NoJob(job);
                   return std::vector<Statement>{
                       Sql("UPDATE job SET pending = 'person', next_look = TIMESTAMP'1970-01-01 "
                           "00:00:00', revision = revision + 1 WHERE name = ?",
                           {job}),
                       EventOf("trigger", job, "", act, clock.now)};
                 });
}

absl::Status MariadbActs::AcceptClock(const Act& act) {
  return Perform(session_, {LockMark()},
                 [&](const std::vector<Rows>&, const Clock& clock) -> Writes {
                   if (!clock.frozen) return std::vector<Statement>{};
                   return SettleClock(session_, act);
                 });
}

absl::StatusOr<int64_t> MariadbActs::BumpEpoch(const Act& act) {
  int64_t epoch = 0;
  RETURN_IF_ERROR(Perform(
      session_, {Sql("SELECT value FROM matins_meta WHERE name = 'epoch' FOR UPDATE")},
      [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
        epoch = NextEpoch(rows[0].Int(0, 0), clock.now);
        return std::vector<Statement>{
            Sql("UPDATE matins_meta SET value = ? WHERE name = 'epoch'", {absl::StrCat(epoch)}),
            // Moves the numbers' counter up, never down.
            Sql("INSERT IGNORE INTO matins_fence_numbers (id) VALUES (?)",
                {FirstNumber(clock.now)}),
            Sql("DELETE FROM matins_fence_numbers WHERE id = ?", {FirstNumber(clock.now)}),
            EventOf("epoch", "", "", act, clock.now, absl::StrCat("{\"epoch\":", epoch, "}"))};
      }));
  return epoch;
}

absl::Status MariadbActs::SetJournal(bool full) {
  const std::string word = full ? "full" : "runs";
  const auto stands = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Bare({Sql("SELECT value FROM matins_meta WHERE name = 'journal'")}));
    return rows[0].size() > 0 && rows[0].Text(0, 0) == word;
  };
  // Triggers come and go by themselves. What says so is written when they are there, and before
  // they go: asked again after a crash between the two, the rest is done.
  const auto change = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const bool set, stands());
    if (set) return absl::OkStatus();
    std::vector<Statement> steps;
    const Statement mark = Sql("UPDATE matins_meta SET value = ? WHERE name = 'journal'", {word});
    if (!full) steps.push_back(mark);
    for (const std::string& sql : full ? EnableJournal() : DisableJournal()) steps.push_back({sql});
    if (full) steps.push_back(mark);
    for (const Statement& step : steps) RETURN_IF_ERROR(session_.connection.Bare({step}).status());
    return absl::OkStatus();
  };
  const auto once = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool set, stands());
    if (!set) RETURN_IF_ERROR(UnderSchemaLock(session_, change));
    return true;
  };
  RETURN_IF_ERROR(session_.Retried(once).status());
  MATINS_FAULT_POINT("act.after_commit");  // crash here: it stands
  return absl::OkStatus();
}

}  // namespace matins::mariadb
