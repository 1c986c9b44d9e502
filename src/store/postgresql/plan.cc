// Planning's two halves: what it reads, and the compare-and-set on each job's revision.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/finish.h"
#include "store/postgresql/plan_statements.h"
#include "store/postgresql/store.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {
namespace {

std::optional<Trigger> PendingOf(absl::string_view text) {
  if (text == "return") return Trigger::kReturn;
  if (text == "person") return Trigger::kPerson;
  return std::nullopt;
}

// The instant is a subquery of its own: joined, it would be compared with each job's.
constexpr char kDueJobs[] = R"(
  with c as materialized (select @NOW as now)
  select j.name, j.revision, j.first_sight, j.floor, j.cursor, j.gap_from, j.pending,
    j.suspended_at is not null, (select c.now from c)
  from @.job j where not j.deleted and j.next_look <= (select c.now + $1::interval from c)
  order by j.next_look, j.name limit $2::bigint)";
// Of more than are wanted: those that came due last before $1.
constexpr char kNewestDueJobs[] = R"(
  select j.name, j.revision, j.first_sight, j.floor, j.cursor, j.gap_from, j.pending,
    j.suspended_at is not null
  from @.job j where not j.deleted and j.next_look <= $1::timestamptz
  order by j.next_look desc, j.name desc limit $2::bigint)";

// What follows is asked of each name by itself, behind an OFFSET: left to itself the server reads
// all jobs or all rows and looks for theirs among the names, as long as it takes the tables to be
// as small as when it last analysed them.

// By names: a query of its own, because an OR would use neither index.
constexpr char kNamedJobs[] = R"(
  with c as materialized (select @NOW as now)
  select j.name, j.revision, j.first_sight, j.floor, j.cursor, j.gap_from, j.pending,
    j.suspended_at is not null, c.now, j.strict,
    exists (select from @.job_after a where a.job = j.name)
  from (select json_array_elements_text($1::json) as name) n cross join c
  cross join lateral (select * from @.job j where j.name = n.name and not j.deleted offset 0) j
  order by j.name)";

// From before the cursor, where the clock has been set back before it. What waits is judged by the
// version that was in force when it was due.
constexpr char kVersions[] = R"(
  select v.job, v.version, v.from_at, v.definition
  from (select json_array_elements_text($1::json) as name) n
  cross join lateral (select j.name, j.cursor, j.gap_from from @.job j where j.name = n.name
    offset 0) j
  cross join lateral (select v.*, lead(v.from_at) over (order by v.version) as until
    from @.job_version v where v.job = n.name offset 0) v
  where v.until is null or j.cursor is null or v.until > least(j.cursor, j.gap_from, $2::timestamptz)
    or v.version >= (select min(r.version) from @.job_watermark r where r.job_name = j.name and
      r.status in ('PLANNED', 'FAILED') and not r.held and r.version > 0)
  order by v.job, v.version)";

constexpr char kSpans[] = R"(
  select s.job, s.from_at, s.to_at, s.first_period, s.last_period, s.count, s.reason, s.by_whom
  from (select json_array_elements_text($1::json) as name) n
  cross join lateral (select s.* from @.job_span s, @.job j where s.job = n.name and
    s.kind = 'skipped' and j.name = n.name and
    (j.cursor is null or s.to_at > least(j.cursor, j.gap_from, $2::timestamptz)) offset 0) s
  order by s.job, s.from_at)";

// Queries of their own, not one with OR: each has its index. `gaps`: some of the jobs look again at
// what is settled.
std::string OpenRows(bool gaps) {
  const auto rows = [](absl::string_view condition) {
    return absl::StrCat("cross join lateral (select ", kPeriodColumns,
                        " from @.job_watermark r where r.job_name = n.name and ", condition,
                        " offset 0) r ");
  };
  constexpr char kNames[] =
      "select r.* from (select json_array_elements_text($1::json) as name) n ";
  return absl::StrCat(
      "select * from (", kNames,
      rows("r.status in ('PLANNED', 'FAILED') and not (r.status = 'FAILED' and r.held)"),
      "union all ", kNames, rows("r.status = 'RUNNING'"),
      gaps ? absl::StrCat("union all ", kNames,
                          "cross join lateral (select j.gap_from from @.job j where j.name = "
                          "n.name and j.gap_from is not null offset 0) j ",
                          rows("(r.due_at >= j.gap_from or r.due_at is null) and (r.status in "
                               "('DONE', 'SKIPPED') or r.held)"))
           : "",
      ") q order by job_name, due_at nulls first, period");
}

}  // namespace

absl::StatusOr<DueJobs> PostgresStore::ReadDue(const ReadDueRequest& request) {
  Connection& connection = session_.connection;
  DueJobs due;
  // One snapshot for both round trips: rows as they were at the revision that the plan is for.
  const Statement jobs =
      request.jobs.empty()
          ? session_.Of(kDueJobs, {IntervalText(request.ahead), absl::StrCat(request.limit)})
          : session_.Of(kNamedJobs, {JsonStrings(request.jobs)});
  ASSIGN_OR_RETURN(
      const std::vector<Rows> first,
      connection.BeginSnapshot(
          {session_.Of(request.by_node ? "select @NOW, @FROZEN" : "select @NOW, @STEPPED"), jobs}));
  due.now = first[0].Time(0, 0);
  due.frozen = first[0].Bool(0, 1);
  std::map<std::string, size_t> index;
  std::vector<std::string> names;
  bool gaps = false;
  const auto add = [&](const Rows& r, int i) {
    if (index.contains(r.Text(i, 0))) return;
    JobState job;
    job.job = r.Text(i, 0);
    job.revision = r.Int(i, 1);
    job.first_sight = r.Time(i, 2);
    job.floor = r.Time(i, 3);
    job.cursor = r.Time(i, 4);
    if (!r.IsNull(i, 5)) job.gap_from = r.Time(i, 5);
    gaps |= job.gap_from.has_value();
    // Who asks for a job by its name starts it next, on this very connection.
    if (!request.jobs.empty()) asks_.Add({.older = r.Bool(i, 9), .after = r.Bool(i, 10)});
    job.pending = PendingOf(r.Text(i, 6));
    job.suspended = r.Bool(i, 7);
    index[job.job] = due.jobs.size();
    names.push_back(job.job);
    due.jobs.push_back(std::move(job));
  };
  const bool many = request.jobs.empty() && first[1].size() == request.limit;
  const int newest = many ? request.limit / 2 : 0;
  for (int i = 0; i < first[1].size() - newest; ++i) add(first[1], i);
  if (newest > 0) {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> last,
        connection.More({session_.Of(kNewestDueJobs,
                                     {TimeParam(due.now + request.ahead), absl::StrCat(newest)})}));
    for (int i = last[0].size() - 1; i >= 0; --i) add(last[0], i);
  }
  const std::string list = JsonStrings(names);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rest,
      connection.Commit({session_.Of(kVersions, {list, TimeParam(due.now)}),
                         session_.Of(OpenRows(gaps), {list}),
                         session_.Of(kSpans, {list, TimeParam(due.now)}),
                         session_.Of("select min(j.next_look) from @.job j where not j.deleted and "
                                     "j.name not in (select json_array_elements_text($1::json))",
                                     {list})}));
  for (int i = 0; i < rest[0].size(); ++i) {
    due.jobs[index[rest[0].Text(i, 0)]].versions.push_back(
        {static_cast<int>(rest[0].Int(i, 1)), rest[0].Time(i, 2), rest[0].Text(i, 3)});
  }
  for (int i = 0; i < rest[1].size(); ++i) {
    PeriodRow row = ReadRow(rest[1], i);
    due.jobs[index[row.key.job]].rows.push_back(std::move(row));
  }
  for (int i = 0; i < rest[2].size(); ++i) {
    due.jobs[index[rest[2].Text(i, 0)]].spans.push_back(ReadSpan(rest[2], i, 1));
  }
  due.next_look = rest[3].Time(0, 0, absl::InfiniteFuture());
  return due;
}

absl::StatusOr<std::vector<JobDefinition>> PostgresStore::ReadDefinitions(
    const std::vector<std::string>& jobs) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          "select j.name, j.version, j.definition from (select json_array_elements_text($1::json) "
          "as name) n cross join lateral (select * from @.job j where j.name = n.name and not "
          "j.deleted offset 0) j",
          {JsonStrings(jobs)})}));
  return ReadJobDefinitions(rows[0]);
}

namespace {

std::string LockJobs(bool by_node) {
  return absl::StrCat(R"(
  select j.name, j.labels <@ $2::jsonb and j.suspended_at is null, j.floor
  from json_to_recordset($1::json) as x(job text, rev bigint)
  cross join lateral (select j.* from @.job j where j.name = x.job and not j.deleted and
    j.revision = x.rev and not (select )",
                      by_node ? "@FROZEN" : "@STEPPED", R"() for no key update skip locked) j)");
}

// The clock, and the row that is served next where tenants are served in turn.
constexpr char kPlanClock[] = R"(
  with c as materialized (select @NOW as now)
  select c.now, (select r.start_tag from @.job_watermark r where r.status = 'PLANNED' and
    r.start_tag > 0 and (r.look_at <= c.now + interval '5 seconds' and r.waits_for is null
      or r.waits_for >= 'with/')
    order by r.start_tag limit 1) from c)";

constexpr char kExisting[] = R"(
  select r.job_name, r.period from json_to_recordset($1::json) as x(job text, period text)
  cross join lateral (select r.job_name, r.period from @.job_watermark r
    where r.job_name = x.job and r.period = x.period offset 0) r)";

// A settled period whose row is gone is opened by an event, as a deletion would have done. A
// generation above the first has its own, and events stay; the others say what came before them.
constexpr char kReopenSettled[] = R"(
  with x as materialized (select * from json_to_recordset($1::json) as x(job text, period text,
    who text, why text))
  insert into @.job_event (at, kind, job, period, generation, who, why, detail)
  select @NOW, 'reopened', x.job, x.period,
    greatest(coalesce(e.generation, 1), coalesce(n.generation, 1), coalesce(f.generation, 1)) + 1,
    x.who, x.why, json_build_object('old_status', 'DONE', 'old_fence',
      greatest(coalesce((e.detail::json ->> 'old_fence')::bigint, 0), coalesce(n.fence, 0))::text,
      'lease_until', null)::text
  from x
  left join lateral (select v.generation, v.detail from @.job_event v where v.kind = 'reopened'
    and v.job = x.job and v.period = x.period order by v.id desc limit 1) e on true
  cross join lateral (select max(r.generation) as generation, max(r.fence) as fence
    from @.job_run r where r.job_name = x.job and r.period = x.period) n
  cross join lateral (select max(r.generation) as generation
    from @.job_figure r where r.job_name = x.job and r.period = x.period) f)";

// A period whose row was deleted comes back in the generation that its newest `reopened` event
// opened: after the old lease, above the old fence (I6, I7).
std::string InsertRows() {
  return absl::StrCat(
      R"(with x as materialized (select * from json_to_recordset($1::json) as x(job text,
    period text, day date, ws timestamptz, we timestamptz, due timestamptz, nominal text,
    not_before timestamptz, start_by timestamptz, version int, backfill boolean, manual boolean,
    params text, lock_key text, priority int, skip text, by text, node text, tenant text,
    limit_key text, tag bigint)),
  c as materialized (select @NOW as now),
  i as (insert into @.job_watermark as w (job_name, period, biz_date, status, finished_at,
      generation, op, op_at, due_at, window_start, window_end, nominal, not_before, start_by,
      look_at, version, backfill, manual, params, reason, by_whom, priority, lock_key, planned_at,
      fence, wait_until, held_by, held_until, dispatched_at, tenant, limit_key,
      start_tag)
    select x.job, x.period, x.day, case when x.skip = '' then 'PLANNED' else 'SKIPPED' end,
      case when x.skip = '' then null else c.now end, coalesce(e.generation, 1),
      case when x.skip = '' then 'plan' else 'skip' end, c.now, x.due, x.ws, x.we, x.nominal,
      x.not_before, x.start_by, x.not_before, x.version, x.backfill, x.manual,
      nullif(x.params, ''), nullif(x.skip, ''), x.by, x.priority, nullif(x.lock_key, ''), c.now,
      coalesce((e.detail::json ->> 'old_fence')::bigint, 0),
      timestamptz 'epoch' + (e.detail::json ->> 'lease_until')::bigint * interval '1 microsecond',
      nullif(x.node, ''), case when x.node = '' then null else
        greatest(x.not_before, c.now) + interval '2 seconds' end,
      case when x.node = '' then null else c.now end, nullif(x.tenant, ''),
      nullif(x.limit_key, ''), coalesce(x.tag, 0)
    from x cross join c left join lateral (select v.generation, v.detail from @.job_event v
      where v.kind = 'reopened' and v.job = x.job and v.period = x.period
      order by v.id desc limit 1) e on true
    order by x.job, x.period
    on conflict (job_name, period) do )",
      // Without the key's protection a second plan begins the period anew.
      IsMutant(Mutant::kNoUniqueKey)
          ? "update set status = 'PLANNED', finished_at = null, reason = null, ver = w.ver + 1, "
            "op = 'plan', op_at = excluded.op_at, look_at = excluded.look_at"
          : "nothing",
      R"( returning w.job_name, w.period, w.not_before, w.priority, w.held_by)
  select * from i where held_by is not null order by not_before, job_name, period)");
}

constexpr char kUpdateRows[] = R"(
  with x as materialized (select * from json_to_recordset($1::json) as x(job text, period text,
    kind text, not_before timestamptz, start_by timestamptz, backfill boolean, skip text,
    by text, tag bigint)),
  l as materialized (select r.job_name, r.period, r.status, r.held, x.kind, x.not_before,
      x.start_by, x.backfill, x.skip, x.by, x.tag
    from x join @.job_watermark r on r.job_name = x.job and r.period = x.period
    order by r.job_name, r.period for update of r),
  c as materialized (select @NOW as now, count(*) from l)
  update @.job_watermark r set
    status = case l.kind when 'skip' then 'SKIPPED' when 'again' then 'PLANNED' else r.status end,
    reason = case l.kind when 'skip' then l.skip when 'again' then null else r.reason end,
    by_whom = case l.kind when 'skip' then l.by else r.by_whom end,
    finished_at = case l.kind when 'skip' then c.now when 'again' then null else r.finished_at end,
    attempts = case l.kind when 'again' then 0 else r.attempts end,
    start_tag = case l.kind when 'again' then coalesce(l.tag, 0) else r.start_tag end,
    not_before = case l.kind when 'again' then l.not_before else r.not_before end,
    look_at = case l.kind when 'again' then l.not_before else coalesce(r.not_before, r.look_at)
      end,
    start_by = case l.kind when 'skip' then r.start_by else l.start_by end,
    backfill = case l.kind when 'skip' then r.backfill else l.backfill end,
    held_by = null, held_until = null, waits_for = null, ver = r.ver + 1,
    op = case l.kind when 'skip' then 'skip' else 'dispatch' end,
    op_at = c.now
  from l cross join c where r.job_name = l.job_name and r.period = l.period and
    (l.kind = 'skip' and (l.status = 'PLANNED' or l.status = 'FAILED' and not l.held) or
     l.kind = 'again' and l.status = 'FAILED' and not l.held or
     l.kind = 'judge' and l.status = 'PLANNED'))";

// The jobs are locked, so that each stays where it is.
constexpr char kUpdateJobs[] = R"(
  update @.job j set revision = j.revision + 1, cursor = greatest(j.cursor, x.cursor),
    next_look = x.next_look, gap_from = case when x.filled then x.next_gap else j.gap_from end,
    pending = case when x.triggered then null else j.pending end
  from json_to_recordset($1::json) as x(job text, cursor timestamptz, next_look timestamptz,
    filled boolean, triggered boolean, next_gap timestamptz)
  cross join lateral (select k.ctid as tid from @.job k where k.name = x.job offset 0) k
  where j.ctid = k.tid)";

constexpr char kInsertSpans[] = R"(
  insert into @.job_span (job, kind, from_at, to_at, first_period, last_period, count, reason,
    by_whom)
  select x.job, 'skipped', x.from_at, x.to_at, x.first_period, x.last_period, x.count, x.reason,
    x.by from json_to_recordset($1::json) as x(job text, from_at timestamptz, to_at timestamptz,
    first_period text, last_period text, count bigint, reason text, by text))";

constexpr char kInsertActs[] = R"(
  insert into @.job_event (at, kind, job, period, who, why, detail)
  select @NOW, x.kind, x.job, x.period, x.who, x.why, '{"periods":' || x.n || '}'
  from json_to_recordset($1::json) as x(kind text, job text, period text, who text, why text,
    n bigint))";

}  // namespace

std::vector<Statement> PlanStatements(const Session& session, PlanBatch& batch) {
  std::vector<Statement> out;
  if (!batch.reopens.empty()) out.push_back(session.Of(kReopenSettled, {batch.reopens.Take()}));
  out.push_back(session.Of(InsertRows(), {batch.inserts.Take()}));
  out.push_back(session.Of(kUpdateJobs, {batch.jobs.Take()}));
  for (auto& updates : batch.updates) {
    out.push_back(session.Of(kUpdateRows, {updates.Take()}));
  }
  if (!batch.skipped.empty()) out.push_back(session.Of(WakeWaiting(), {batch.skipped.Take()}));
  if (!batch.spans.empty()) out.push_back(session.Of(kInsertSpans, {batch.spans.Take()}));
  if (!batch.acts.empty()) out.push_back(session.Of(kInsertActs, {batch.acts.Take()}));
  return out;
}

PlanFacts ReadPlanFacts(const Rows& locked, const Rows& existing, const Rows& clock,
                        const Rows* turns) {
  PlanFacts facts;
  for (int i = 0; i < locked.size(); ++i) {
    facts.usable[locked.Text(i, 0)] = locked.Bool(i, 1);
    if (!locked.IsNull(i, 2)) facts.floors[locked.Text(i, 0)] = locked.Time(i, 2);
  }
  for (int i = 0; i < existing.size(); ++i) {
    facts.there.insert({existing.Text(i, 0), existing.Text(i, 1)});
  }
  facts.now = clock.Time(0, 0);
  std::optional<int64_t> next;
  if (!clock.IsNull(0, 1)) next = clock.Int(0, 1);
  if (!next && turns == nullptr) return facts;
  std::map<std::string, int64_t> last;
  for (int i = 0; turns != nullptr && i < turns->size(); ++i) {
    last[turns->Text(i, 0)] = turns->Int(i, 1);
  }
  facts.turns = Turns(next, std::move(last));
  return facts;
}

std::vector<Statement> LockForPlan(const Session& session, const PlanRequest& request) {
  JsonRows jobs, keys;
  for (const PlanWrite& write : request.writes) {
    jobs.Row().Add("job", write.job).AddInt("rev", write.expected_revision);
    for (const Intent& intent : write.intents) keys.Row().AddKey(intent.key);
  }
  const bool by_node = !request.hold_by.name.empty();
  return {session.Of(LockJobs(by_node), {jobs.Take(), JsonStrings(request.hold_by.labels)}),
          session.Of(kExisting, {keys.Take()}), session.Of(kPlanClock)};
}

Statement ReadTurns(const Session& session, const PlanRequest& request) {
  std::set<std::string> tenants;
  for (const PlanWrite& write : request.writes) {
    for (const Intent& intent : write.intents) tenants.insert(UsableText(intent.tenant));
  }
  return session.Of(R"(
    select x.name, t.start_tag from json_array_elements_text($1::json) as x(name)
    cross join lateral (select r.start_tag from @.job_watermark r where r.status = 'PLANNED' and
      r.start_tag > 0 and r.tenant = x.name order by r.start_tag desc limit 1) t
    union all select '', max(r.start_tag) from @.job_watermark r where r.status = 'PLANNED' and
      r.start_tag > 0 and r.tenant is null having max(r.start_tag) is not null)",
                    {JsonStrings({tenants.begin(), tenants.end()})});
}

absl::StatusOr<PlanAnswers> PostgresStore::Plan(const PlanRequest& request) {
  Connection& connection = session_.connection;
  std::vector<Statement> lock = LockForPlan(session_, request);
  const bool turns = in_turn_ || NamesTenant(request);
  if (turns) lock.push_back(ReadTurns(session_, request));
  bool free_rows = false;
  const auto once = [&]() -> absl::StatusOr<PlanAnswers> {
    PlanAnswers answers;
    answers.jobs.resize(request.writes.size());
    ASSIGN_OR_RETURN(const std::vector<Rows> locked, connection.Begin(lock));
    PlanFacts facts = ReadPlanFacts(locked[0], locked[1], locked[2], turns ? &locked[3] : nullptr);
    in_turn_ = turns || !locked[2].IsNull(0, 1);
    answers.now = facts.now;
    PlanBatch batch(request, std::move(facts), JsonForm::kPostgresql);
    if (absl::Status fault = Reach("plan.before_commit"); !fault.ok()) {
      connection.Rollback();
      return fault;
    }
    const size_t inserts = batch.reopens.empty() ? 0 : 1;
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     connection.Commit(PlanStatements(session_, batch)));
    const Rows& held = rows[inserts];
    MATINS_FAULT_POINT("plan.after_commit");  // crash here: planned; held rows fall free by time
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < request.writes.size(); ++i) {
      answers.jobs[i].written = batch.written[i];
      if (batch.written[i]) index[request.writes[i].job] = i;
      free_rows |= batch.written[i] && !request.writes[i].intents.empty();
    }
    for (int i = 0; i < held.size(); ++i) {
      const std::string job = held.Text(i, 0);
      answers.jobs[index[job]].held.push_back(
          {{job, held.Text(i, 1)}, held.Time(i, 2), static_cast<int>(held.Int(i, 3))});
    }
    return answers;
  };
  auto answers = session_.Retried(once);
  if (answers.ok() && free_rows) session_.Notify();
  return answers;
}

}  // namespace matins::postgresql
