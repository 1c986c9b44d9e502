// Planning's two halves: what it reads, and the compare-and-set on each job's revision.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/words.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/plan_statements.h"
#include "store/mariadb/store.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::mariadb {
namespace {

constexpr absl::string_view kJobColumns =
    "j.name, j.revision, j.first_sight, j.floor, j.`cursor`, j.gap_from, j.pending, "
    "j.suspended_at IS NOT NULL";

std::vector<Statement> DueJobsOf(const ReadDueRequest& request) {
  const Statement set = Sql("SET @matins_now = @NOW");
  const Statement clock = ReadClock();
  if (!request.jobs.empty()) {
    // By names: a query of its own, because an OR would use neither index.
    JsonRows names;
    for (const std::string& job : request.jobs) names.Row().Add("job", job);
    return {set, clock,
            Sql(absl::StrCat("SELECT DISTINCT ", kJobColumns,
                             " FROM ? @JOBS WHERE NOT j.deleted "
                             "ORDER BY j.name"),
                {JsonTable(names.Take(), "job name")})};
  }
  return {set, clock,
          Sql(absl::StrCat(
                  "SELECT ", kJobColumns,
                  " FROM job j FORCE INDEX (job_next_look) WHERE NOT j.deleted AND j.next_look <= "
                  "CAST(@matins_now AS DATETIME(6)) + INTERVAL ? MICROSECOND "
                  "ORDER BY j.next_look, j.name LIMIT ?"),
              {request.ahead, request.limit})};
}

// Of more than are wanted: those that came due last.
Statement NewestDueJobs(const ReadDueRequest& request, int newest) {
  return Sql(absl::StrCat("SELECT ", kJobColumns,
                          " FROM job j FORCE INDEX (job_next_look) WHERE NOT j.deleted AND "
                          "j.next_look <= CAST(@matins_now AS DATETIME(6)) + INTERVAL ? "
                          "MICROSECOND ORDER BY j.next_look DESC, j.name DESC LIMIT ?"),
             {request.ahead, newest});
}

// Those in force at or after min(cursor, gap_from, now), which is before the cursor where the clock
// has been set back: each that has no successor by then. And what
// waits is judged by the version that was in force when it was due.
constexpr absl::string_view kVersions =
    "SELECT v.job, v.version, v.from_at, v.definition FROM ? @JOBS STRAIGHT_JOIN job_version v "
    "FORCE INDEX (PRIMARY) ON v.job = j.name LEFT JOIN job_version n FORCE INDEX (PRIMARY) ON "
    "n.job = v.job AND n.version = (SELECT MIN(m.version) FROM job_version m WHERE "
    "m.job = v.job AND m.version > v.version) "
    "WHERE n.from_at IS NULL OR j.`cursor` IS NULL OR "
    "n.from_at > LEAST(j.`cursor`, COALESCE(j.gap_from, j.`cursor`), ?) OR v.version >= (SELECT "
    "MIN(r.version) FROM job_watermark r FORCE INDEX (job_watermark_open) WHERE "
    "r.job_name = j.name AND r.status = 'PLANNED' AND r.version > 0) OR v.version >= (SELECT "
    "MIN(r.version) FROM job_watermark r FORCE INDEX (job_watermark_open) WHERE "
    "r.job_name = j.name AND r.status = 'FAILED' AND NOT r.held AND r.version > 0) ORDER BY v.job, "
    "v.version";

constexpr absl::string_view kSpans =
    "SELECT s.job, s.from_at, s.to_at, s.first_period, s.last_period, s.count, s.reason, s.by_whom "
    "FROM ? @JOBS STRAIGHT_JOIN job_span s FORCE INDEX (job_span_job) ON s.job = j.name "
    "WHERE s.kind = 'skipped' AND (j.`cursor` IS NULL OR "
    "s.to_at > LEAST(j.`cursor`, COALESCE(j.gap_from, j.`cursor`), ?)) ORDER BY s.job, s.from_at";

// Two queries, not one with OR: each has its index. `open`: each job with each open status.
Statement OpenRows(const Value& names, const Value& open) {
  return Sql(
      absl::StrCat(
          "SELECT * FROM (SELECT ", RowColumns(),
          " FROM ? STRAIGHT_JOIN job_watermark r FORCE INDEX (job_watermark_open) ON "
          "r.job_name = x.job AND r.status = x.status WHERE NOT (r.status = 'FAILED' AND r.held) "
          "UNION ALL SELECT ",
          RowColumns(),
          " FROM ? @JOBS STRAIGHT_JOIN job_watermark r FORCE INDEX (PRIMARY) ON "
          "r.job_name = j.name AND (r.due_at >= j.gap_from OR r.due_at IS NULL) WHERE "
          "j.gap_from IS NOT NULL AND (r.status IN ('DONE', 'SKIPPED') OR r.held)) q "
          "ORDER BY job_name, due_at, period"),
      {open, names});
}

std::optional<Trigger> PendingOf(absl::string_view text) {
  const std::optional<Trigger> trigger = FromWord<Trigger>(text);
  return trigger == Trigger::kFire ? std::nullopt : trigger;
}

JobState JobOf(const Rows& r, int i) {
  JobState job;
  job.job = r.Text(i, 0);
  job.revision = r.Int(i, 1);
  job.first_sight = r.Time(i, 2);
  job.floor = r.Time(i, 3);
  job.cursor = r.Time(i, 4);
  if (!r.IsNull(i, 5)) job.gap_from = r.Time(i, 5);
  job.pending = PendingOf(r.Text(i, 6));
  job.suspended = r.Bool(i, 7);
  return job;
}

}  // namespace

absl::StatusOr<DueJobs> MariadbStore::ReadDue(const ReadDueRequest& request) {
  Connection& connection = session_.connection;
  // One snapshot for both round trips: rows as they were at the revision that the plan is for.
  ASSIGN_OR_RETURN(const std::vector<Rows> first, connection.BeginSnapshot(DueJobsOf(request)));
  DueJobs due;
  const Clock clock = ClockOf(first[1]);
  due.now = clock.now;
  due.frozen = request.by_node ? clock.frozen : clock.stepped;
  std::map<std::string, size_t> index;
  JsonRows list, open;
  const auto add = [&](JobState job) {
    if (index.contains(job.job)) return;
    list.Row().Add("job", job.job);
    for (const char* status : {"PLANNED", "RUNNING", "FAILED"}) {
      open.Row().Add("job", job.job).Add("status", status);
    }
    index[job.job] = due.jobs.size();
    due.jobs.push_back(std::move(job));
  };
  const bool many = request.jobs.empty() && first[2].size() == request.limit;
  const int newest = many ? request.limit / 2 : 0;
  for (int i = 0; i < first[2].size() - newest; ++i) add(JobOf(first[2], i));
  if (newest > 0) {
    ASSIGN_OR_RETURN(const std::vector<Rows> last,
                     connection.More({NewestDueJobs(request, newest)}));
    for (int i = last[0].size() - 1; i >= 0; --i) add(JobOf(last[0], i));
  }
  const Value names = JsonTable(list.Take(), "job name");
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rest,
      connection.Commit(
          {Sql(kVersions, {names, due.now}),
           OpenRows(names, JsonTable(open.Take(), "job name, status name")),
           Sql(kSpans, {names, due.now}),
           Sql("SELECT j.name, j.next_look FROM job j FORCE INDEX (job_next_look) WHERE NOT "
               "j.deleted AND j.next_look IS NOT NULL ORDER BY "
               "j.next_look LIMIT ?",
               {static_cast<int64_t>(due.jobs.size()) + 1})}));
  for (int i = 0; i < rest[0].size(); ++i) {
    due.jobs[index[rest[0].Text(i, 0)]].versions.push_back(
        {static_cast<int>(rest[0].Int(i, 1)), rest[0].Time(i, 2), rest[0].Text(i, 3)});
  }
  for (int i = 0; i < rest[1].size(); ++i) {
    AttemptRow row = ReadRow(rest[1], i);
    std::vector<PeriodRow>& rows = due.jobs[index[row.key.job]].rows;
    rows.push_back(std::move(row));
  }
  for (int i = 0; i < rest[2].size(); ++i) {
    due.jobs[index[rest[2].Text(i, 0)]].spans.push_back(ReadSpan(rest[2], i, 1));
  }
  for (int i = 0; i < rest[3].size(); ++i) {
    if (index.contains(rest[3].Text(i, 0))) continue;
    due.next_look = rest[3].Time(i, 1, absl::InfiniteFuture());
    break;
  }
  return due;
}

absl::StatusOr<std::vector<JobDefinition>> MariadbStore::ReadDefinitions(
    const std::vector<std::string>& jobs) {
  JsonRows list;
  for (const std::string& job : jobs) list.Row().Add("job", job);
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({Sql(
                       "SELECT j.name, j.version, j.definition FROM ? @JOBS WHERE NOT j.deleted",
                       {JsonTable(list.Take(), "job name")})}));
  return ReadJobDefinitions(rows[0]);
}

// ---- the write ----

namespace {

constexpr absl::string_view kInsertColumns =
    "job name, period name, day day, ws time, we time, due time, nominal name, not_before time, "
    "start_by time, version int, backfill bool, manual bool, params text, lock_key key, "
    "priority int, skip text, by text, node name, tenant name, limit_key key, tag int";

// A settled period whose row is gone is opened by an event, as a deletion would have done. A
// generation above the first has its own, and events stay; the others say what came before them.
Statement ReopenSettled(const std::string& json, absl::Time now) {
  return Sql(
      "INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) "
      "SELECT ?, 'reopened', x.job, x.period, GREATEST(COALESCE(e.generation, 1), "
      "COALESCE((SELECT MAX(r.generation) FROM job_run r FORCE INDEX (job_run_period) WHERE "
      "r.job_name = x.job AND "
      "r.period = x.period), 1), COALESCE((SELECT MAX(f.generation) FROM job_figure f FORCE INDEX "
      "(job_figure_period) WHERE "
      "f.job_name = x.job AND f.period = x.period), 1)) + 1, x.who, x.why, "
      "JSON_OBJECT('old_status', 'DONE', 'old_fence', CAST(GREATEST("
      "COALESCE(CAST(JSON_VALUE(e.detail, '$.old_fence') AS SIGNED), 0), "
      "COALESCE((SELECT MAX(r.fence) FROM job_run r FORCE INDEX (job_run_period) WHERE r.job_name "
      "= x.job AND "
      "r.period = x.period), 0)) AS CHAR), 'lease_until', NULL) "
      "FROM ? LEFT JOIN job_event e FORCE INDEX (PRIMARY) ON e.id = (SELECT v.id FROM job_event v "
      "FORCE INDEX (job_event_reopened) WHERE "
      "v.kind = 'reopened' AND v.job = x.job AND v.period = x.period ORDER BY v.id DESC LIMIT 1)",
      {now, JsonTable(json, "job name, period name, who text, why text")});
}

// A period whose row was deleted comes back in the generation that its newest `reopened` event
// opened: after the old lease, above the old fence (I6, I7). The row that exists stays as it is.
Statement InsertRows(const std::string& json, absl::Time now) {
  return Sql(
      absl::StrCat(
          "INSERT INTO job_watermark (job_name, period, biz_date, status, finished_at, generation, "
          "op, op_at, due_at, window_start, window_end, nominal, not_before, start_by, look_at, "
          "version, backfill, manual, params, reason, by_whom, priority, lock_key, planned_at, "
          "fence, wait_until, held_by, held_until, dispatched_at, tenant, limit_key, "
          "start_tag) "
          "SELECT x.job, x.period, x.day, IF(x.skip = '', 'PLANNED', 'SKIPPED'), "
          "IF(x.skip = '', NULL, ?), COALESCE(e.generation, 1), IF(x.skip = '', 'plan', 'skip'), "
          "?, x.due, x.ws, x.we, x.nominal, x.not_before, x.start_by, x.not_before, x.version, "
          "x.backfill, x.manual, NULLIF(x.params, ''), NULLIF(x.skip, ''), x.`by`, x.priority, "
          "NULLIF(x.lock_key, ''), ?, COALESCE(JSON_VALUE(e.detail, '$.old_fence'), 0), "
          "TIMESTAMP'1970-01-01 00:00:00' + INTERVAL CAST(JSON_VALUE(e.detail, '$.lease_until') AS "
          "SIGNED) "
          "MICROSECOND, NULLIF(x.node, ''), IF(x.node = '', NULL, "
          "GREATEST(x.not_before, ?) + INTERVAL ? MICROSECOND), IF(x.node = '', NULL, ?), "
          "x.tenant, x.limit_key, COALESCE(x.tag, 0) "
          "FROM ? LEFT JOIN job_event e FORCE INDEX (PRIMARY) ON e.id = (SELECT v.id FROM "
          "job_event v FORCE INDEX (job_event_reopened) WHERE "
          "v.kind = 'reopened' AND v.job = x.job AND v.period = x.period ORDER BY v.id DESC "
          "LIMIT 1) ON DUPLICATE KEY UPDATE ",
          // Without the key's protection a second plan begins the period anew.
          IsMutant(Mutant::kNoUniqueKey)
              ? "status = 'PLANNED', finished_at = NULL, reason = NULL, ver = job_watermark.ver + "
                "1, op = 'plan', op_at = VALUES(op_at), look_at = VALUES(look_at)"
              : "job_name = job_watermark.job_name"),
      {now, now, now, now, kHoldFor, now, JsonTable(json, kInsertColumns)});
}

// The rows may be another's between the plan's clock and here: locked first, then dated.
std::vector<Statement> UpdateRows(const std::string& json) {
  const Statement lock =
      Sql("SELECT 1 FROM ? @ROWS FOR UPDATE", {JsonTable(json, "job name, period name")});
  const Statement update = Sql(
      "UPDATE ? @ROWS SET "
      "r.reason = CASE x.kind WHEN 'skip' THEN x.skip WHEN 'again' THEN NULL ELSE r.reason END, "
      "r.by_whom = IF(x.kind = 'skip', x.`by`, r.by_whom), "
      "r.finished_at = CASE x.kind WHEN 'skip' THEN CAST(@matins_now AS DATETIME(6)) "
      "WHEN 'again' THEN NULL ELSE r.finished_at END, "
      "r.attempts = IF(x.kind = 'again', 0, r.attempts), "
      "r.start_tag = IF(x.kind = 'again', COALESCE(x.tag, 0), r.start_tag), "
      "r.look_at = IF(x.kind = 'again', x.not_before, COALESCE(r.not_before, r.look_at)), "
      "r.not_before = IF(x.kind = 'again', x.not_before, r.not_before), "
      "r.start_by = IF(x.kind = 'skip', r.start_by, x.start_by), "
      "r.backfill = IF(x.kind = 'skip', r.backfill, x.backfill), "
      "r.held_by = NULL, r.held_until = NULL, r.waits_for = NULL, r.ver = r.ver + 1, "
      "r.op = IF(x.kind = 'skip', 'skip', 'dispatch'), "
      "r.op_at = CAST(@matins_now AS DATETIME(6)), "
      "r.status = CASE x.kind WHEN 'skip' THEN 'SKIPPED' WHEN 'again' THEN 'PLANNED' ELSE "
      "r.status END "
      "WHERE (x.kind = 'skip' AND (r.status = 'PLANNED' OR r.status = 'FAILED' AND NOT r.held)) OR "
      "(x.kind = 'again' AND r.status = 'FAILED' AND NOT r.held) OR "
      "(x.kind = 'judge' AND r.status = 'PLANNED')",
      {JsonTable(json,
                 "job name, period name, kind name, not_before time, start_by time, "
                 "backfill bool, skip text, by text, tag int")});
  return {lock, Sql("SET @matins_now = @NOW"), update};
}

Statement UpdateJobs(const std::string& json) {
  return Sql(
      "UPDATE ? @JOBS SET j.revision = j.revision + 1, "
      "j.`cursor` = GREATEST(COALESCE(j.`cursor`, x.`cursor`), COALESCE(x.`cursor`, j.`cursor`)), "
      "j.next_look = x.next_look, j.gap_from = IF(x.filled, x.next_gap, j.gap_from), "
      "j.pending = IF(x.triggered, NULL, j.pending)",
      {JsonTable(json,
                 "job name, cursor time, next_look time, filled bool, triggered bool, "
                 "next_gap time")});
}

Statement InsertSpans(const std::string& json) {
  return Sql(
      "INSERT INTO job_span (job, kind, from_at, to_at, first_period, last_period, count, reason, "
      "by_whom) SELECT x.job, 'skipped', x.from_at, x.to_at, x.first_period, x.last_period, "
      "x.count, x.reason, x.`by` FROM ?",
      {JsonTable(json,
                 "job name, from_at time, to_at time, first_period name, last_period name, "
                 "count int, reason text, by text")});
}

Statement InsertActs(const std::string& json, absl::Time now) {
  return Sql(
      "INSERT INTO job_event (at, kind, job, period, who, why, detail) SELECT ?, x.kind, x.job, "
      "x.period, x.who, x.why, CONCAT('{\"periods\":', x.n, '}') FROM ?",
      {now, JsonTable(json, "kind name, job name, period name, who text, why text, n int")});
}

// Of the rows that should be held at once those that are: another program may have been first.
Statement HeldRows(const PlanBatch& batch, const PlanRequest& request) {
  return Sql(
      "SELECT r.job_name, r.period, r.not_before, r.priority FROM ? @ROWS WHERE r.status = "
      "'PLANNED' AND "
      "r.held_by = ? ORDER BY r.not_before, r.job_name, r.period",
      {KeyTable(KeysInOrder(batch.held)), request.hold_by.name});
}

}  // namespace

std::vector<Statement> LockForPlan(const PlanRequest& request) {
  std::map<std::string, int64_t> revisions;  // of two plans for one job the first is written
  std::vector<PeriodKey> keys;
  for (const PlanWrite& write : request.writes) {
    revisions.emplace(write.job, write.expected_revision);
    for (const Intent& intent : write.intents) keys.push_back(intent.key);
  }
  JsonRows jobs;
  for (const auto& [job, revision] : revisions) jobs.Row().Add("job", job).AddInt("rev", revision);
  return {
      Sql("SELECT j.name, JSON_CONTAINS(?, j.labels) AND j.suspended_at IS NULL, j.floor FROM ? "
          "@JOBS WHERE NOT j.deleted AND j.revision = x.rev "
          "FOR UPDATE SKIP LOCKED",
          {JsonStrings(request.hold_by.labels), JsonTable(jobs.Take(), "job name, rev int")}),
      ReadClock(),
      Sql("SELECT r.job_name, r.period, r.lock_key, r.biz_date FROM ? @ROWS",
          {KeyTable(KeysInOrder(std::move(keys)))}),
      ReadWaiting()};
}

// The greatest tag of each tenant's rows that wait, and the least of those that are served next.
Statement ReadTurns() {
  return Sql(
      "SELECT COALESCE(r.tenant, ''), MAX(r.start_tag), MIN(IF((r.waits_for IS NULL AND "
      "r.look_at <= @NOW + INTERVAL 5 SECOND) OR r.waits_for >= 'with/', r.start_tag, NULL)) FROM "
      "job_watermark r FORCE INDEX "
      "(job_watermark_turn) WHERE "
      "r.turn > 0 GROUP BY COALESCE(r.tenant, '')");
}

Turns TurnsOf(const Rows& turns, bool any) {
  std::optional<int64_t> next;
  std::map<std::string, int64_t> last;
  for (int i = 0; i < turns.size(); ++i) {
    last[turns.Text(i, 0)] = turns.Int(i, 1);
    if (!turns.IsNull(i, 2)) next = std::min(next.value_or(turns.Int(i, 2)), turns.Int(i, 2));
  }
  return turns.size() > 0 || any ? Turns(next, std::move(last)) : Turns();
}

PlanLocked ReadPlanLocked(const PlanRequest& request, const Rows* answers, const Rows* turns) {
  PlanLocked locked{{}, Wakes(WaitingOf(answers[3]))};
  const Clock clock = ClockOf(answers[1]);
  locked.facts.now = clock.now;
  if (request.hold_by.name.empty() ? clock.stepped : clock.frozen) return locked;
  for (int i = 0; i < answers[0].size(); ++i) {
    const std::string job = answers[0].Text(i, 0);
    locked.facts.usable[job] = answers[0].Bool(i, 1);
    if (!answers[0].IsNull(i, 2)) locked.facts.floors[job] = answers[0].Time(i, 2);
  }
  std::set<PeriodKey> skipped;
  for (const PlanWrite& write : request.writes) {
    for (const Intent& intent : write.intents) {
      if (intent.kind == Intent::Kind::kSkip) skipped.insert(intent.key);
    }
  }
  const Rows& there = answers[2];
  for (int i = 0; i < there.size(); ++i) {
    PeriodKey key{there.Text(i, 0), there.Text(i, 1)};
    if (skipped.contains(key)) locked.wakes.Add(key.job, there.Text(i, 2), there.Day(i, 3));
    locked.facts.there.insert(std::move(key));
  }
  if (turns != nullptr) locked.facts.turns = TurnsOf(*turns, NamesTenant(request));
  return locked;
}

std::vector<Statement> PlanStatements(PlanBatch& batch, const PlanRequest& request,
                                      const Wakes& wakes, absl::Time now, size_t bytes) {
  std::vector<Statement> out;
  for (const std::string& part : batch.reopens.TakeParts(bytes)) {
    out.push_back(ReopenSettled(part, now));
  }
  for (const std::string& part : batch.inserts.TakeParts(bytes)) {
    out.push_back(InsertRows(part, now));
  }
  for (const std::string& part : batch.jobs.TakeParts(bytes)) out.push_back(UpdateJobs(part));
  for (::matins::JsonRows& round : batch.updates) {
    for (const std::string& part : round.TakeParts(bytes)) {
      for (Statement& s : UpdateRows(part)) out.push_back(std::move(s));
    }
  }
  for (const std::string& part : batch.spans.TakeParts(bytes)) out.push_back(InsertSpans(part));
  for (const std::string& part : batch.acts.TakeParts(bytes)) out.push_back(InsertActs(part, now));
  for (Statement& wake : wakes.Statements()) out.push_back(std::move(wake));
  out.push_back(HeldRows(batch, request));
  return out;
}

absl::StatusOr<PlanAnswers> MariadbStore::Plan(const PlanRequest& request) {
  Connection& connection = session_.connection;
  std::vector<Statement> lock = LockForPlan(request);
  const bool turns = start_.in_turn || NamesTenant(request);
  if (turns) lock.push_back(ReadTurns());
  const auto once = [&]() -> absl::StatusOr<PlanAnswers> {
    PlanAnswers answers;
    answers.jobs.resize(request.writes.size());
    ASSIGN_OR_RETURN(const std::vector<Rows> locked, connection.Begin(lock));
    PlanLocked plan = ReadPlanLocked(request, locked.data(), turns ? &locked[4] : nullptr);
    answers.now = plan.facts.now;
    PlanBatch batch(request, std::move(plan.facts), JsonForm::kMariadb);
    // Crash here: nothing is planned, the next look stands.
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     CommitAt(session_, "plan.before_commit",
                              PlanStatements(batch, request, plan.wakes, answers.now,
                                             connection.statement_bytes())));
    MATINS_FAULT_POINT("plan.after_commit");  // crash here: planned; held rows fall free by time
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < request.writes.size(); ++i) {
      answers.jobs[i].written = batch.written[i];
      if (batch.written[i]) index[request.writes[i].job] = i;
    }
    const Rows& held = rows.back();
    for (int i = 0; i < held.size(); ++i) {
      const std::string job = held.Text(i, 0);
      answers.jobs[index[job]].held.push_back(
          {{job, held.Text(i, 1)}, held.Time(i, 2), static_cast<int>(held.Int(i, 3))});
    }
    return answers;
  };
  return session_.Retried(once);
}

}  // namespace matins::mariadb
