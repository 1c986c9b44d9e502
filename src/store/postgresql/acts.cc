#include "store/postgresql/acts.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/json.h"
#include "store/act_rules.h"
#include "store/postgresql/clock.h"
#include "store/postgresql/finish.h"
#include "store/postgresql/perform.h"
#include "store/postgresql/plan_statements.h"
#include "store/postgresql/schema_sql.h"
#include "store/rules.h"

namespace matins::postgresql {

Statement EventOf(const Session& session, absl::string_view kind, absl::string_view job,
                  absl::string_view period, const Act& act, absl::string_view detail) {
  return session.Of(
      "insert into @.job_event (at, kind, job, period, generation, who, why, detail) values "
      "(@NOW, $1, $2, $3, 0, $4, $5, $6)",
      {std::string(kind), UsableText(job), UsableText(period), UsableText(act.who),
       UsableText(act.why), UsableText(detail)});
}

Statement TakeBackHeld(const Session& session, absl::string_view job) {
  return session.Of(
      "update @.job_watermark set held_by = null, held_until = null where job_name = $1 and "
      "status = 'PLANNED' and held_by is not null",
      {UsableText(job)});
}

namespace {

// A START that read the job before this act has its rows locked, whether they were held or not, and
// is waited for; one that comes later sees what the act has written.
Statement WaitForStarts(const Session& session, absl::string_view job) {
  return session.Of(
      "select from @.job_watermark where job_name = $1 and status = 'PLANNED' order by period "
      "for update",
      {UsableText(job)});
}

}  // namespace

std::vector<Statement> SuspendJob(const Session& session, absl::string_view job, const Act& act) {
  const std::vector<Parameter> params = {UsableText(job), UsableText(act.who), UsableText(act.why)};
  return {WaitForStarts(session, job), TakeBackHeld(session, job),
          session.Of("update @.job set suspended_at = @NOW, suspended_by = $2, "
                     "suspended_why = $3, next_look = timestamptz 'epoch', "
                     "revision = revision + 1 where name = $1",
                     params),
          session.Of("insert into @.job_span (job, kind, from_at, by_whom, why) values ($1, "
                     "'suspended', @NOW, $2, $3)",
                     params),
          EventOf(session, "suspended", job, "", act)};
}

std::vector<Statement> ResumeJob(const Session& session, absl::string_view job, bool trigger,
                                 const Act& act) {
  return {session.Of("update @.job_span set to_at = @NOW where job = $1 and kind = 'suspended' and "
                     "to_at is null",
                     {UsableText(job)}),
          session.Of(absl::StrCat("update @.job set suspended_at = null, suspended_by = null, "
                                  "suspended_why = null, ",
                                  trigger ? "pending = 'person', " : "",
                                  "next_look = timestamptz 'epoch', revision = revision + 1 "
                                  "where name = $1"),
                     {UsableText(job)}),
          session.Of("update @.job_watermark set look_at = not_before, waits_for = null where "
                     "job_name = $1 and status = 'PLANNED' and look_at > not_before",
                     {UsableText(job)}),
          EventOf(session, "resumed", job, "", act)};
}

// What the old version planned beyond this moment, and was never started, is as though it had never
// been: the new version plans it anew. It goes with its journal, and opens no gap.
std::vector<Statement> WithdrawRows(const Session& session, absl::string_view job) {
  // The cursor first: a fire between the two readings of the clock is planned again, not lost. A
  // job that was never planned has none, and keeps all that it owes.
  return {
      session.Of("update @.job set cursor = case when cursor is null then null else "
                 "least(cursor, @NOW - interval '1 microsecond') end where name = $1",
                 {UsableText(job)}),
      session.Of("with c as materialized (select @NOW as now), "
                 "l as materialized (select r.job_name, r.period from @.job_watermark r "
                 "cross join c where r.job_name = $1 and r.status = 'PLANNED' and "
                 "r.attempts_total = 0 and r.generation = 1 and not r.manual and r.due_at > c.now "
                 "order by r.period for update of r), "
                 "g as (delete from @.job_journal g using l where g.job_name = l.job_name and "
                 "g.period = l.period) "
                 "update @.job_watermark r set op = 'withdrawn' from l where "
                 "r.job_name = l.job_name and r.period = l.period",
                 {UsableText(job)}),
      session.Of("delete from @.job_watermark where job_name = $1 and status = 'PLANNED' and "
                 "op = 'withdrawn'",
                 {UsableText(job)}),
      TakeBackHeld(session, job)};
}

std::string SkipForDeletedText() {
  return absl::StrCat(
      "with l as materialized (select r.job_name, r.period "
      "from @.job_watermark r where r.job_name = $1 and (r.status = 'PLANNED' or "
      "r.status = 'FAILED' and not r.held) order by r.period for update of r), "
      "c as materialized (select @NOW as now, count(*) from l), "
      "s as (update @.job_watermark r set status = 'SKIPPED', reason = '",
      reason::kDeleted,
      "', by_whom = $2, finished_at = c.now, held_by = null, held_until = null, look_at = null, "
      "waits_for = null, ver = r.ver + 1, op = 'skip', op_at = c.now from l cross join c "
      "where r.job_name = l.job_name and r.period = l.period returning r.period) ");
}

std::vector<Statement> DeleteJob(const Session& session, absl::string_view job, const Act& act) {
  std::vector<Statement> out = WithdrawRows(session, job);
  for (Statement& s : std::vector<Statement>{
           session.Of("update @.job set deleted = true, next_look = null, pending = null, "
                      "revision = revision + 1 where name = $1",
                      {UsableText(job)}),
           session.Of("delete from @.job_after where job = $1", {UsableText(job)}),
           session.Of(
               absl::StrCat(SkipForDeletedText(),
                            "insert into @.job_event (at, kind, job, period, generation, who, "
                            "why, detail) select c.now, 'deleted', $1, '', 0, $2, $3, "
                            "json_build_object('skipped', (select count(*) from s))::text "
                            "from c"),
               {UsableText(job), UsableText(act.who), UsableText(act.why)})}) {
    out.push_back(std::move(s));
  }
  return out;
}

namespace {

// Locks the job; columns: suspended_at is not null, runs alive, suspended_by, suspended_why.
Statement LockJob(const Session& session, absl::string_view job) {
  return session.Of(
      "select j.suspended_at is not null, (select count(*) from @.job_watermark r where "
      "r.job_name = j.name and r.status = 'RUNNING'), j.suspended_by, j.suspended_why, "
      "(select min(r.node) from @.job_watermark r where r.job_name = j.name and "
      "r.status = 'RUNNING') from @.job j where j.name = $1 and not j.deleted for no key update",
      {UsableText(job)});
}

}  // namespace

absl::Status PostgresActs::Suspend(absl::string_view job, const Act& act) {
  return Perform(session_, {LockJob(session_, job)},
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   if (rows[0].size() == 0) return NoJob(job);
                   if (rows[0].Bool(0, 0)) {
                     return RefuseSuspended(job, rows[0].Text(0, 2), rows[0].Text(0, 3));
                   }
                   return SuspendJob(session_, job, act);
                 });
}

absl::Status PostgresActs::Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                                  const Act& act) {
  PlanRequest plan;
  if (skip) plan.writes.push_back(*skip);
  std::vector<Statement> locks = {LockJob(session_, job)};
  if (skip) Append(locks, LockForPlan(session_, plan));
  return Perform(session_, locks,
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   if (rows[0].size() == 0) return NoJob(job);
                   if (!rows[0].Bool(0, 0)) return RefuseNotSuspended(job);
                   std::vector<Statement> writes;
                   if (skip) {
                     PlanBatch batch(plan, ReadPlanFacts(rows[1], rows[2], rows[3], nullptr),
                                     JsonForm::kPostgresql);
                     if (!batch.written[0]) return RefuseChangedMeanwhile(job);
                     Append(writes, PlanStatements(session_, batch));
                   }
                   Append(writes, ResumeJob(session_, job, !skip, act));
                   return writes;
                 });
}

absl::Status PostgresActs::Rename(absl::string_view from, absl::string_view to, const Act& act) {
  const std::vector<Statement> locks = {
      LockJob(session_, from),
      session_.Of("select exists (select from @.job where name = $1), exists "
                  "(select from @.job_watermark where job_name = $1)",
                  {UsableText(to)}),
      session_.Of("select definition from @.job where name = $1", {UsableText(from)}),
      session_.Of("select version, definition from @.job_version where job = $1",
                  {UsableText(from)})};
  return Perform(
      session_, locks,
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        if (rows[0].size() == 0) return NoJob(from);
        if (rows[1].Bool(0, 0) || rows[1].Bool(0, 1)) return RefuseTakenName(to);
        if (rows[0].Int(0, 1) > 0) return RefuseRenameRunning(from, rows[0].Text(0, 4));
        std::vector<Statement> writes = {TakeBackHeld(session_, from)};
        const auto rename = [&](absl::string_view table, absl::string_view column) {
          writes.push_back(session_.Of(
              absl::StrCat("update @.", table, " set ", column, " = $2 where ", column, " = $1"),
              {UsableText(from), UsableText(to)}));
        };
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
          rename(table, column);
        }
        writes.push_back(session_.Of(
            "update @.job_watermark set lock_key = 'job/' || $2, waits_for = null, "
            "look_at = case when status = 'PLANNED' then not_before else look_at end where "
            "job_name = $2 and lock_key = 'job/' || $1",
            {UsableText(from), UsableText(to)}));
        // A lease that outlasts its row keeps its job's lock under the new name too (I7).
        writes.push_back(session_.Of(
            "update @.job_lock set lock_key = 'job/' || $2 where lock_key = 'job/' || $1",
            {UsableText(from), UsableText(to)}));
        writes.push_back(
            session_.Of("update @.job set definition = $2, revision = revision + 1 where name = $1",
                        {UsableText(to), RenamedJson(rows[2].Text(0, 0), UsableText(to))}));
        JsonRows versions;
        for (int i = 0; i < rows[3].size(); ++i) {
          versions.Row().AddInt("version", rows[3].Int(i, 0));
          versions.Add("definition", RenamedJson(rows[3].Text(i, 1), UsableText(to)));
        }
        writes.push_back(session_.Of(
            "update @.job_version v set definition = x.definition from json_to_recordset($2::json) "
            "as x(version int, definition text) where v.job = $1 and v.version = x.version",
            {UsableText(to), versions.Take()}));
        writes.push_back(EventOf(session_, "renamed", to, "", act,
                                 absl::StrCat("{\"from\":", JsonString(from), "}")));
        return writes;
      });
}

absl::Status PostgresActs::Delete(absl::string_view job, bool force, const Act& act) {
  return Perform(session_, {LockJob(session_, job)},
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   if (rows[0].size() == 0) return NoJob(job);
                   if (rows[0].Int(0, 1) > 0 && !force) {
                     return RefuseDeleteRunning(job, rows[0].Text(0, 4));
                   }
                   return DeleteJob(session_, job, act);
                 });
}

Statement LockJobsOf(const Session& session, absl::string_view keys_json) {
  return session.Of(
      "select name from @.job where name in (select x.job from json_to_recordset($1::json) as "
      "x(job text)) and not deleted order by name for no key update",
      {std::string(keys_json)});
}

Statement LockRowsOf(const Session& session, absl::string_view keys_json) {
  return session.Of(
      "select r.job_name, r.period, r.status, r.held, r.node, r.fence from "
      "json_to_recordset($1::json) as x(job text, period text) join @.job_watermark r "
      "on r.job_name = x.job and r.period = x.period order by r.job_name, r.period "
      "for update of r",
      {std::string(keys_json)});
}

std::string KeysJson(absl::Span<const PeriodKey> keys) {
  JsonRows json;
  for (const PeriodKey& key : keys) json.Row().AddKey(key);
  return json.Take();
}

absl::Status MayReopenRows(const Rows& jobs, const Rows& rows, absl::Span<const PeriodKey> keys) {
  std::set<std::string> known;
  for (int i = 0; i < jobs.size(); ++i) known.insert(jobs.Text(i, 0));
  std::map<PeriodKey, int> found;
  for (int i = 0; i < rows.size(); ++i) found[{rows.Text(i, 0), rows.Text(i, 1)}] = i;
  for (const PeriodKey& key : keys) {
    const auto row = found.find({UsableText(key.job), UsableText(key.period)});
    if (row == found.end()) return NoRowToReopen(key);
    if (!known.contains(row->first.job)) return NoJob(key.job);
    const int i = row->second;
    RETURN_IF_ERROR(
        MayReopen(key, rows.Text(i, 2), rows.Bool(i, 3), rows.Text(i, 4), rows.Int(i, 5)));
  }
  return absl::OkStatus();
}

std::vector<Statement> ReopenRows(const Session& session, const std::string& keys_json,
                                  absl::string_view params, const Act& act) {
  return {
      session.Of(
          "insert into @.job_event (at, kind, job, period, generation, who, why, detail) "
          "select @NOW, 'reopened', r.job_name, r.period, r.generation + 1, $2, $3, "
          "json_build_object('old_status', r.status, 'old_fence', r.fence::text, "
          "'lease_until', (extract(epoch from r.wait_until) * 1000000)::bigint)::text "
          "from json_to_recordset($1::json) as x(job text, period text) join @.job_watermark r "
          "on r.job_name = x.job and r.period = x.period order by r.job_name, r.period",
          {keys_json, UsableText(act.who), UsableText(act.why)}),
      // A tenant's rows that wait again take turns as those that are planned (store/turns.h).
      session.Of("with c as materialized (select @NOW as now), x as materialized (select "
                 "w.job_name as job, w.period, w.tenant, row_number() over (partition by w.tenant "
                 "order by w.job_name, w.due_at, w.period) as n from "
                 "json_to_recordset($1::json) as k(job text, period text) join @.job_watermark w "
                 "on w.job_name = k.job and w.period = k.period), "
                 "q as materialized (select min(w.start_tag) filter (where w.look_at <= c.now + "
                 "interval '5 seconds' and w.waits_for is null or w.waits_for >= 'with/') as next, "
                 "count(*) > 0 as tagged "
                 "from @.job_watermark w cross join c where w.status = 'PLANNED' and "
                 "w.start_tag > 0), "
                 "l as materialized (select w.tenant, max(w.start_tag) as last from "
                 "@.job_watermark w where w.status = 'PLANNED' and w.start_tag > 0 group by 1), "
                 "t as materialized (select x.job, x.period, case when q.tagged or exists (select "
                 "from x where tenant is not null) then greatest(coalesce(q.next, 1), "
                 "coalesce(l.last, 0) + 1) + x.n - 1 else 0 end as tag from x cross join q "
                 "left join l on l.tenant is not distinct from x.tenant) "
                 "update @.job_watermark r set "
                 "status = 'PLANNED', start_tag = t.tag, held = false, generation = r.generation + "
                 "1, ver = 1, "
                 "op = 'plan', op_at = c.now, planned_at = c.now, attempts = 0, "
                 "attempts_total = 0, losses = 0, checkpoint = 0, checkpointed_at = null, "
                 "reason = null, by_whom = $3, manual = true, params = nullif($2, ''), "
                 "finished_at = null, start_by = null, backfill = false, backfill_id = null, "
                 "dispatched_at = null, not_before = coalesce(r.not_before, timestamptz 'epoch'), "
                 "look_at = coalesce(r.not_before, timestamptz 'epoch'), held_by = null, "
                 "held_until = null, waits_for = null, cancel_by = null, cancel_why = null, "
                 "lock_key = coalesce(r.lock_key, (select 'job/' || j.name from @.job j where "
                 "j.name = r.job_name and j.lock_scope = 'job')) "
                 "from c, t where r.job_name = t.job and r.period = t.period",
                 {keys_json, UsableText(params), UsableText(act.who)}),
      session.Of("update @.job set revision = revision + 1 where name in (select x.job from "
                 "json_to_recordset($1::json) as x(job text))",
                 {keys_json})};
}

std::vector<Statement> SkipRows(const Session& session, absl::Span<const PeriodKey> keys,
                                const Act& act) {
  const std::string list = KeysJson(keys);
  std::vector<Statement> writes = {
      session.Of("update @.job_watermark r set status = 'SKIPPED', held = false, "
                 "reason = $2, by_whom = $3, finished_at = @NOW, held_by = null, "
                 "held_until = null, waits_for = null, ver = r.ver + 1, op = 'skip', "
                 "op_at = @NOW from json_to_recordset($1::json) as x(job text, period text) "
                 "where r.job_name = x.job and r.period = x.period",
                 {list, act.why.empty() ? "by hand" : UsableText(act.why), UsableText(act.who)}),
      session.Of("update @.job set revision = revision + 1 where name in (select x.job "
                 "from json_to_recordset($1::json) as x(job text))",
                 {list}),
      session.Of(WakeWaiting(), {list})};
  for (const PeriodKey& key : keys) {
    writes.push_back(EventOf(session, "skip", key.job, key.period, act));
  }
  return writes;
}

absl::Status PostgresActs::Reopen(const PeriodKey& key, absl::string_view params, const Act& act) {
  const std::string list = KeysJson({&key, 1});
  return Perform(session_, {LockJobsOf(session_, list), LockRowsOf(session_, list)},
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   RETURN_IF_ERROR(MayReopenRows(rows[0], rows[1], {&key, 1}));
                   return ReopenRows(session_, list, params, act);
                 });
}

absl::Status PostgresActs::Skip(absl::Span<const PeriodKey> keys, const Act& act) {
  if (keys.empty()) return absl::OkStatus();
  const std::string list = KeysJson(keys);
  const std::vector<Statement> locks = {
      session_.Of("select name from @.job where name in (select x.job from "
                  "json_to_recordset($1::json) as x(job text)) order by name for no key update",
                  {list}),
      LockRowsOf(session_, list)};
  return Perform(session_, locks,
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   if (rows[1].size() < static_cast<int>(keys.size())) {
                     return NoRowsToSkip(keys.size() - static_cast<size_t>(rows[1].size()),
                                         keys.size());
                   }
                   for (int i = 0; i < rows[1].size(); ++i) {
                     RETURN_IF_ERROR(MaySkip({rows[1].Text(i, 0), rows[1].Text(i, 1)},
                                             rows[1].Text(i, 2), rows[1].Text(i, 4)));
                   }
                   return SkipRows(session_, keys, act);
                 });
}

absl::Status PostgresActs::Cancel(int64_t fence, const Act& act) {
  const std::vector<Statement> locks = {
      session_.Of("select r.job_name, r.period from @.job_watermark r where r.status = 'RUNNING' "
                  "and r.fence = $1::bigint and r.lease_until > @NOW for update",
                  {absl::StrCat(fence)})};
  return Perform(
      session_, locks,
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        if (rows[0].size() == 0) return NoRunAlive(fence);
        const std::string job = rows[0].Text(0, 0), period = rows[0].Text(0, 1);
        return std::vector<Statement>{
            session_.Of("update @.job_watermark set cancel_by = $3, cancel_why = $4 where "
                        "job_name = $1 and period = $2",
                        {job, period, UsableText(act.who), UsableText(act.why)}),
            EventOf(session_, "cancel", job, period, act,
                    absl::StrCat("{\"fence\":\"", fence, "\"}"))};
      });
}

absl::Status PostgresActs::TriggerNow(absl::string_view job, const Act& act) {
  return Perform(
      session_, {LockJob(session_, job)},
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        if (rows[0].size() == 0) return NoJob(job);
        return std::vector<Statement>{
            session_.Of("update @.job set pending = 'person', next_look = timestamptz 'epoch', "
                        "revision = revision + 1 where name = $1",
                        {UsableText(job)}),
            EventOf(session_, "trigger", job, "", act)};
      });
}

absl::Status PostgresActs::AcceptClock(const Act& act) {
  return Perform(session_,
                 {session_.Of("select key from @.matins_meta where key in ('clock_hwm', "
                              "'return_last') order by key for update"),
                  session_.Of("select @FROZEN")},
                 [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
                   if (!rows[1].Bool(0, 0)) return std::vector<Statement>{};
                   return SettleClock(session_, act);
                 });
}

absl::StatusOr<int64_t> PostgresActs::BumpEpoch(const Act& act) {
  int64_t epoch = 0;
  RETURN_IF_ERROR(Perform(
      session_,
      {session_.Of("select value::bigint, @NOW from @.matins_meta where key = 'epoch' for update")},
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        epoch = NextEpoch(rows[0].Int(0, 0), rows[0].Time(0, 1));
        const int64_t number = FirstNumber(rows[0].Time(0, 1));
        return std::vector<Statement>{
            session_.Of("update @.matins_meta set value = $1 where key = 'epoch'",
                        {absl::StrCat(epoch)}),
            // Never down: sequences know no transaction, and others may be taking numbers. A
            // thousand short of it nobody passes it meanwhile.
            session_.Of("select setval('@.matins_fence', $1::bigint) from @.matins_fence "
                        "where last_value < $1::bigint - 1000",
                        {absl::StrCat(number)}),
            EventOf(session_, "epoch", "", "", act, absl::StrCat("{\"epoch\":", epoch, "}"))};
      }));
  return epoch;
}

absl::Status PostgresActs::SetJournal(bool full) {
  return Perform(
      session_, {session_.Of("select value from @.matins_meta where key = 'journal' for update")},
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        const std::string word = full ? "full" : "runs";
        if (rows[0].Text(0, 0) == word) return std::vector<Statement>{};
        return std::vector<Statement>{
            session_.Of(full ? kEnableJournal : kDisableJournal),
            session_.Of("update @.matins_meta set value = $1 where key = 'journal'", {word})};
      });
}

}  // namespace matins::postgresql
