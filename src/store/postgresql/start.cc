// Held, then started: START is one transaction of two round trips. The first locks (the store's
// start row where there is a global limit, serialised jobs by name, the rows by key) and reads, in
// later statements, the clock and all that decides; the second writes what was granted.
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/store.h"
#include "store/rules.h"
#include "store/start_rules.h"

namespace matins::postgresql {
namespace {

// Rows that may be held, the most urgent of those that the index gives first.
constexpr char kHoldRows[] = R"(
  with c as materialized (select @NOW as now),
  d as materialized (
    select r.job_name, r.period, r.priority, r.due_at from c cross join lateral (
      select r.job_name, r.period, r.priority, r.due_at from @.job_watermark r
      where r.status = 'PLANNED' and r.look_at <= c.now + $2::interval
        and (r.held_by is null or r.held_until <= c.now)
      order by r.look_at limit 4 * $3::bigint + 200) r
    join @.job b on b.name = r.job_name and not b.deleted and b.suspended_at is null
      and b.labels <@ $4::jsonb
    where not @FROZEN),
  l as materialized (
    select r.job_name, r.period from d join @.job_watermark r
      on r.job_name = d.job_name and r.period = d.period
    where r.status = 'PLANNED'
    order by d.priority desc, d.due_at, r.job_name, r.period limit $3::bigint
    for update of r skip locked),
  n as materialized (select @NOW as now, count(*) from l),
  u as (update @.job_watermark r set held_by = $1, dispatched_at = n.now,
      held_until = greatest(r.not_before, n.now) + interval '2 seconds',
      ver = r.ver + 1, op = 'dispatch', op_at = n.now
    from l cross join n where r.job_name = l.job_name and r.period = l.period
      and r.status = 'PLANNED' and (r.held_by is null or r.held_until <= n.now)
    returning r.job_name, r.period, r.not_before, r.priority, r.due_at)
  select job_name, period, not_before, priority from u
  order by priority desc, due_at, job_name, period)";

constexpr char kNextStart[] = R"(
  with c as materialized (select @NOW as now)
  select c.now, (select r.look_at from @.job_watermark r where r.status = 'PLANNED'
    and r.look_at > c.now + $1::interval order by r.look_at limit 1) from c)";

// What `also_due` would take: named before anything is locked, so that START locks in one order.
constexpr char kAlsoDue[] = R"(
  with c as materialized (select @NOW as now)
  select r.job_name, r.period from c cross join lateral (
    select r.job_name, r.period, r.priority, r.due_at from @.job_watermark r
    where r.status = 'PLANNED' and r.look_at <= c.now and r.not_before <= c.now
      and (r.held_by is null or r.held_until <= c.now)
    order by r.look_at limit 8 * $1::bigint + 200) r
  join @.job b on b.name = r.job_name and not b.deleted and b.suspended_at is null
    and b.labels <@ $2::jsonb
  order by r.priority desc, r.due_at, r.job_name, r.period limit 4 * $1::bigint + 16)";

constexpr char kLockStart[] =
    "select value from @.matins_meta where key = 'start' for no key update";

constexpr char kLockSerialised[] = R"(
  select j.name from @.job j where j.name in (select x.job from json_to_recordset($1::json) as
    x(job text)) and (j.strict or j.job_limit is not null or j.max_parallel is not null
    or j.lock_scope <> 'period' or j.overlap <> 'allow')
  order by j.name for no key update)";

std::string LockRows() {
  return absl::StrCat("select ", kRowColumns,
                      ", r.lock_key from json_to_recordset($1::json) as x(job text, period text) "
                      "join @.job_watermark r on r.job_name = x.job and r.period = x.period "
                      "order by r.job_name, r.period for update of r skip locked");
}

constexpr char kClock[] = R"(
  select @NOW, @FROZEN,
    case when $1::bigint > 0 then (select count(*) from @.job_watermark where status = 'RUNNING')
      else 0 end)";

constexpr char kJobFacts[] = R"(
  select j.name, j.strict, j.job_limit, j.max_parallel, j.labels <@ $2::jsonb,
    j.suspended_at is not null, j.gap_from, j.cursor,
    (select count(*) from @.job_watermark r where r.job_name = j.name and r.status = 'RUNNING'),
    case when j.max_parallel is null then 0 else (select count(*) from @.job_watermark r
      where r.job_name = j.name and r.status = 'RUNNING' and r.backfill) end,
    coalesce(j.pending = 'person', false)
  from @.job j where not j.deleted and j.name in (select x.job from
    json_to_recordset($1::json) as x(job text)))";

// An older period in the way; a job in `after` that is not DONE for the day; the lock's holder.
constexpr char kRowFacts[] = R"(
  select r.job_name, r.period,
    case when j.strict then (select o.period from @.job_watermark o
      where o.job_name = r.job_name and o.due_at < r.due_at
        and o.status in ('PLANNED', 'RUNNING', 'FAILED') order by o.due_at limit 1) end,
    case when j.strict then (select o.period from @.job_watermark o
      where o.job_name = r.job_name and o.due_at is null and o.biz_date < r.biz_date
        and o.status in ('PLANNED', 'RUNNING', 'FAILED') limit 1) end,
    (select a.after_job from @.job_after a where a.job = r.job_name and (
      not exists (select from @.job_watermark d where d.job_name = a.after_job
        and d.biz_date = r.biz_date and d.status = 'DONE') or
      exists (select from @.job_watermark d where d.job_name = a.after_job
        and d.biz_date = r.biz_date and d.status <> 'DONE'))
      order by a.after_job limit 1),
    (select o.job_name || ' ' || o.period from @.job_watermark o where r.lock_key is not null
      and o.lock_key = r.lock_key and o.status = 'RUNNING' limit 1),
    (select k.job_name || ' ' || k.period from @.job_lock k where k.lock_key = r.lock_key
      and k.until > @NOW)
  from json_to_recordset($1::json) as x(job text, period text)
  join @.job_watermark r on r.job_name = x.job and r.period = x.period
  join @.job j on j.name = r.job_name)";

StartFacts ReadFacts(const Rows& rows, const Rows& clock, const Rows& jobs, const Rows& facts) {
  StartFacts read;
  read.now = clock.Time(0, 0);
  read.frozen = clock.Bool(0, 1);
  read.alive = clock.Int(0, 2);
  for (int i = 0; i < rows.size(); ++i) {
    StartFacts::Row row;
    row.row = ReadRow(rows, i);
    row.lock_key = rows.Text(i, kRowColumnCount);
    read.rows[row.row.key] = std::move(row);
  }
  for (int i = 0; i < jobs.size(); ++i) {
    StartFacts::Job& job = read.jobs[jobs.Text(i, 0)];
    job.strict = jobs.Bool(i, 1);
    if (!jobs.IsNull(i, 2)) job.limit = jobs.Int(i, 2);
    if (!jobs.IsNull(i, 3)) job.max_parallel = jobs.Int(i, 3);
    job.labels = jobs.Bool(i, 4);
    job.suspended = jobs.Bool(i, 5);
    if (!jobs.IsNull(i, 6)) job.gap_from = jobs.Time(i, 6);
    job.cursor = jobs.Time(i, 7);
    job.running = jobs.Int(i, 8);
    job.backfills = jobs.Int(i, 9);
    job.asked = jobs.Bool(i, 10);
  }
  for (int i = 0; i < facts.size(); ++i) {
    const auto row = read.rows.find({facts.Text(i, 0), facts.Text(i, 1)});
    if (row == read.rows.end()) continue;
    row->second.older = facts.IsNull(i, 2) ? facts.Text(i, 3) : facts.Text(i, 2);
    row->second.after = facts.Text(i, 4);
    row->second.holder = facts.Text(i, 5);
    row->second.leftover = facts.Text(i, 6);
  }
  return read;
}

std::string GrantText() {
  // A claim's fence is taken while the row is locked, from the one source that only rises (I6).
  const std::string fence = IsMutant(Mutant::kNoFenceBump)
                                ? "case when r.fence > 0 then r.fence else @FENCE end"
                                : "@FENCE";
  return absl::StrCat(
      R"(with x as materialized (select * from json_to_recordset($1::json) as x(job text,
    period text)),
  c as materialized (select @NOW as now),
  k as (delete from @.job_lock k using x join @.job_watermark w on w.job_name = x.job and
    w.period = x.period where k.lock_key = w.lock_key),
  u as (update @.job_watermark r set status = 'RUNNING', fence = )",
      fence, R"(, nonce = $2::bigint, node = $3, attempts = r.attempts + 1,
      attempts_total = r.attempts_total + 1, claimed_at = c.now, op_at = c.now, op = 'claim',
      run_until = c.now + j.timeout + j.grace,
      lease_until = least(c.now + j.lock_ttl, c.now + j.timeout + j.grace),
      held_by = null, held_until = null, wait_until = null, waits_for = null, reason = null,
      start_by = null, checkpointed_at = null, cancel_by = null, cancel_why = null, finished_at = null, ver = r.ver + 1,
      look_at = null
    from x join @.job j on j.name = x.job cross join c
    where r.job_name = x.job and r.period = x.period and r.status = 'PLANNED'
    returning r.job_name, r.period, r.fence, r.attempts, r.attempts_total, r.losses, r.version,
      j.version as current_version, r.claimed_at, r.lease_until, r.run_until, r.generation,
      r.checkpoint)
  select u.*, k.data from u left join @.job_checkpoint k on k.job_name = u.job_name and
    k.period = u.period and k.generation = u.generation)");
}

constexpr char kPutOff[] = R"(
  update @.job_watermark r set waits_for = x.waits_for, held_by = null, held_until = null,
    look_at = greatest(coalesce(x.look_at, @NOW + $2::interval), r.not_before)
  from json_to_recordset($1::json) as x(job text, period text, waits_for text,
    look_at timestamptz)
  where r.job_name = x.job and r.period = x.period and r.status = 'PLANNED')";

std::vector<Statement> Grants(const Session& session, const StartRequest& request,
                              const std::vector<Judged>& judged) {
  JsonRows granted, put_off;
  for (const Judged& j : judged) {
    if (j.answer.result == StartResult::kStarted) {
      granted.Row().AddKey(j.answer.key);
    } else if (j.put_off) {
      put_off.Row().AddKey(j.answer.key).AddTime("look_at", j.look_at);
      if (!j.waits_for.empty()) put_off.Add("waits_for", j.waits_for);
    }
  }
  std::vector<Statement> out = {
      session.Of(GrantText(), {granted.Take(), absl::StrCat(request.nonce), request.node.name})};
  if (!put_off.empty()) {
    out.push_back(session.Of(kPutOff, {put_off.Take(), IntervalText(request.put_off)}));
  }
  return out;
}

Claim ReadClaim(const Rows& r, int i, const PeriodRow& row, int64_t nonce) {
  Claim claim;
  claim.key = row.key;
  claim.generation = row.generation;
  claim.fence = r.Int(i, 2);
  claim.nonce = nonce;
  claim.attempt = static_cast<int>(r.Int(i, 3));
  claim.attempt_total = static_cast<int>(r.Int(i, 4));
  claim.losses = static_cast<int>(r.Int(i, 5));
  claim.version = static_cast<int>(r.Int(i, 6));
  claim.current_version = static_cast<int>(r.Int(i, 7));
  claim.biz_date = row.biz_date;
  claim.window_start = row.window_start;
  claim.window_end = row.window_end;
  claim.due = row.due;
  claim.nominal = row.nominal;
  claim.backfill = row.backfill;
  claim.manual = row.manual;
  claim.params = row.params;
  claim.claimed_at = r.Time(i, 8);
  claim.lease_until = r.Time(i, 9);
  claim.run_until = r.Time(i, 10);
  if (IsMutant(Mutant::kNoCheckpointOffer)) return claim;
  claim.checkpoint = r.Int(i, 12);
  claim.checkpoint_data = r.Text(i, 13);
  return claim;
}

}  // namespace

absl::StatusOr<HoldAnswer> PostgresStore::Hold(const HoldRequest& request) {
  const Statement hold =
      session_.Of(kHoldRows, {request.node.name, IntervalText(request.ahead),
                              absl::StrCat(request.limit), JsonStrings(request.node.labels)});
  MATINS_FAULT_POINT("hold.before_commit");  // crash here: the rows are free
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
    return session_.connection.Write(
        {hold, session_.Of(kNextStart, {IntervalText(request.ahead)})});
  }));
  MATINS_FAULT_POINT("hold.after_commit");  // crash here: held_until frees them
  HoldAnswer answer;
  answer.now = rows[1].Time(0, 0);
  answer.next_start = rows[1].Time(0, 1, absl::InfiniteFuture());
  for (int i = 0; i < rows[0].size(); ++i) {
    answer.rows.push_back({{rows[0].Text(i, 0), rows[0].Text(i, 1)},
                           rows[0].Time(i, 2),
                           static_cast<int>(rows[0].Int(i, 3))});
  }
  return answer;
}

absl::Status PostgresStore::Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) {
  if (keys.empty()) return absl::OkStatus();
  JsonRows json;
  for (const PeriodKey& key : keys) json.Row().AddKey(key);
  const std::string rows_json = json.Take();
  RETURN_IF_ERROR(session_
                      .Retried([&] {
                        return session_.connection.Write({session_.Of(
                            R"(
    with l as materialized (select r.job_name, r.period from json_to_recordset($1::json) as
        x(job text, period text) join @.job_watermark r on r.job_name = x.job and
        r.period = x.period where r.status = 'PLANNED' and r.held_by = $2
      order by r.job_name, r.period for update of r skip locked)
    update @.job_watermark r set held_by = null, held_until = null
    from l where r.job_name = l.job_name and r.period = l.period and r.held_by = $2)",
                            {rows_json, node.name})});
                      })
                      .status());
  session_.Notify();
  return absl::OkStatus();
}

absl::StatusOr<StartAnswers> PostgresStore::Start(const StartRequest& request) {
  Connection& connection = session_.connection;
  std::vector<PeriodKey> keys = request.keys;
  std::set<PeriodKey> named(keys.begin(), keys.end());
  const std::string labels = JsonStrings(request.node.labels);
  if (request.also_due > 0) {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> due,
        connection.Read({session_.Of(kAlsoDue, {absl::StrCat(request.also_due), labels})}));
    for (int i = 0; i < due[0].size(); ++i) {
      PeriodKey key{due[0].Text(i, 0), due[0].Text(i, 1)};
      if (named.insert(key).second) keys.push_back(std::move(key));
    }
  }
  JsonRows json;
  for (const PeriodKey& key : named) json.Row().AddKey(key);
  const std::string list = json.Take();
  std::vector<Statement> look;
  if (request.global_limit > 0) look.push_back(session_.Of(kLockStart));
  look.push_back(session_.Of(kLockSerialised, {list}));
  look.push_back(session_.Of(LockRows(), {list}));
  look.push_back(session_.Of(kClock, {absl::StrCat(request.global_limit)}));
  look.push_back(session_.Of(kJobFacts, {list, labels}));
  look.push_back(session_.Of(kRowFacts, {list}));
  const auto once = [&]() -> absl::StatusOr<StartAnswers> {
    ASSIGN_OR_RETURN(std::vector<Rows> rows, connection.Begin(look));
    rows.erase(rows.begin(), rows.end() - 4);
    StartRules rules(request, ReadFacts(rows[0], rows[1], rows[2], rows[3]));
    std::vector<Judged> judged = rules.Judge(keys, request.keys.size());
    if (absl::Status fault = Reach("start.before_commit"); !fault.ok()) {  // crash: still PLANNED
      connection.Rollback();
      return fault;
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> granted,
                     connection.Commit(Grants(session_, request, judged)));
    // Crash here: it is RUNNING and nobody knows of it; its lease ends by itself.
    MATINS_FAULT_POINT("start.after_commit");
    std::map<PeriodKey, int> index;
    for (int i = 0; i < granted[0].size(); ++i) {
      index[{granted[0].Text(i, 0), granted[0].Text(i, 1)}] = i;
    }
    StartAnswers answers;
    answers.now = rules.now();
    for (Judged& j : judged) {
      const auto grant = index.find(j.answer.key);
      if (j.answer.result == StartResult::kStarted && grant == index.end()) {
        j.answer.result = StartResult::kTaken;
      } else if (j.answer.result == StartResult::kStarted) {
        j.answer.claim = ReadClaim(granted[0], grant->second, *j.row, request.nonce);
      }
      answers.rows.push_back(std::move(j.answer));
    }
    return answers;
  };
  return session_.Retried(once);
}

}  // namespace matins::postgresql
