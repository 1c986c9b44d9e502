// How attempts end: by their node's word, and when the answer to it did not come.
#include "store/postgresql/finish.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/attempt.h"
#include "store/postgresql/columns.h"
#include "store/postgresql/store.h"
#include "store/postgresql/ticket.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {

// As many of those that wait for a lock, an older period or a slot as were freed, those first that
// some living node may run, and of these the oldest; all that wait for a day of another job.
std::string WakeWaiting(absl::string_view rows) {
  return absl::StrCat("with f as materialized (", rows, R"(
    ), x as materialized (select f.job, f.period, r.lock_key, r.biz_date, r.tenant, r.limit_key,
      r.backfill
    from f left join @.job_watermark r on r.job_name = f.job and r.period = f.period
    where (select exists (select from @.job_watermark r where r.status = 'PLANNED' and
      r.waits_for is not null and r.waits_for < 'with/'))),
  k as materialized (
    select 'after/' || x.job as key, x.biz_date as day from x group by 1, 2),
  s as materialized (
    select 'job/' || x.job as key, count(*) as n from x group by 1
    union all select 'lock/' || x.lock_key, count(*) from x where x.lock_key is not null group by 1
    union all select 'tenant/' || x.tenant, count(*) from x where x.tenant is not null group by 1
    union all select 'key/' || x.limit_key, count(*) from x where x.limit_key is not null
    group by 1
    union all select 'backfill_share', count(*) from x where x.backfill having count(*) > 0
    union all select 'global', count(*) from x having count(*) > 0),
  c as materialized (select @NOW as now),
  a as materialized (
    select s.key, a.job_name, a.period from s cross join lateral (
      select r.job_name, r.period from (
        select h.job_name, h.period, h.due_at from @.job_watermark h
        where h.waits_for = s.key and h.status = 'PLANNED' and h.waits_for is not null
        order by h.due_at limit )",
                      kWakeLook, R"() h
      join @.job_watermark r on r.job_name = h.job_name and r.period = h.period
      where r.waits_for = s.key and r.status = 'PLANNED' and exists (
        select from @.job b join @.job_node n on not n."left" and b.labels <@ n.labels
          and n.seen_at > (select c.now from c) - interval ')",
                      absl::ToInt64Seconds(kNodeGone), R"( seconds'
        where b.name = h.job_name and not b.deleted and b.suspended_at is null)
      order by h.due_at limit s.n for update of r skip locked) a),
  o as materialized (
    select s.key, s.n - count(a.key) as n from s left join a on a.key = s.key group by s.key, s.n),
  w as materialized (
    select a.job_name, a.period from a union all
    select w.job_name, w.period from k cross join lateral (
      select r.job_name, r.period from @.job_watermark r
      where r.waits_for = k.key and r.status = 'PLANNED' and r.waits_for is not null
        and r.biz_date = k.day
      order by r.due_at limit 1000 for update of r skip locked) w union all
    select w.job_name, w.period from o cross join lateral (
      select r.job_name, r.period from @.job_watermark r
      where r.waits_for = o.key and r.status = 'PLANNED' and r.waits_for is not null
        and not exists (select from a where a.job_name = r.job_name and a.period = r.period)
      order by r.due_at limit o.n for update of r skip locked) w where o.n > 0)
  update @.job_watermark r set look_at = r.not_before, waits_for = null
  from (select distinct job_name, period from w order by job_name, period) w
  where r.job_name = w.job_name and r.period = w.period)");
}

const char kLossVerdict[] =
    "case when b.recovery = 'hold' or (b.recovery = 'resume' and l.checkpoint = 0) then 'HELD' "
    "when l.losses + 1 >= coalesce(b.max_lost, 5) then 'FAILED' else 'PLANNED' end";

const char kAgainStatus[] = "case when r.cancel_by is null then 'PLANNED' else 'FAILED' end";
const char kBurntReason[] =
    "case when j.verdict = 'HELD' then 'held' when j.verdict = 'PLANNED' and r.cancel_by is not "
    "null then 'cancelled' else 'lost' end";

const char kRunColumns[] =
    "fence, job_name, period, biz_date, generation, attempt, attempts_total, node, due_at, "
    "planned_at, dispatched_at, claimed_at, checkpointed_at, backfill, manual, version, "
    "finished_at";
const char kRunValues[] =
    "l.fence, l.job_name, l.period, l.biz_date, l.generation, l.attempts, l.attempts_total, "
    "l.node, l.due_at, l.planned_at, l.dispatched_at, l.claimed_at, l.checkpointed_at, "
    "l.backfill, l.manual, l.version, c.now";

namespace {

absl::string_view KindWord(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kDone:
      return "done";
    case Outcome::Kind::kDoneByJob:
      return "done_by_job";
    case Outcome::Kind::kRetry:
      return "retry";
    case Outcome::Kind::kFailed:
      return "failed";
    case Outcome::Kind::kHeld:
      return "held";
    case Outcome::Kind::kReturned:
      return "returned";
  }
  return "failed";
}

// What of an attempt's end is not in every batch.
struct Extras {
  bool output = false;
  bool figures = false;
};

// `requests` as of LockedRowsOf; `figures` a query of n, name and value.
std::string FinishText(absl::string_view requests, absl::string_view figures, Locking locking,
                       Extras extras) {
  return absl::StrCat(
      LockedRowsOf(requests,
                   "r.biz_date, r.attempts, r.attempts_total, r.node, r.due_at, r.planned_at, "
                   "r.dispatched_at, r.claimed_at, r.checkpointed_at, r.backfill, r.manual, "
                   "r.version",
                   locking),
      ", v as materialized (select x.n, x.kind, l.status as was, ", TicketWhy(Asked::kFinish),
      " as ticket_why, ",
      // The job itself wrote DONE under this fence; its node completes the attempt's row.
      "x.kind = 'done_by_job' and l.status = 'DONE' and l.fence = x.fence and l.nonce = x.nonce "
      "and l.generation = x.gen as noted from x join l on l.n = x.n cross join c), "
      "j as materialized (select v.n, v.noted, case when v.noted then '' when "
      "v.kind = 'done_by_job' and v.ticket_why <> 'fence' then 'no_commit' else v.ticket_why end "
      "as why from v), "
      "u as (update @.job_watermark r set "
      "status = case when x.kind = 'done' then 'DONE' when x.kind in ('retry', 'returned') then ",
      kAgainStatus,
      " else 'FAILED' end, held = x.kind = 'held', reason = case when x.kind in "
      "('retry', 'returned') and r.cancel_by is not null then 'cancelled' else "
      "nullif(x.reason, '') end, "
      // Who gives a run back gives its fence back too.
      "fence = case when x.kind = 'returned' then ",
      IsMutant(Mutant::kNoFenceBump) ? "r.fence" : "@FENCE",
      " else r.fence end, nonce = case when x.kind = 'returned' then null else r.nonce end, "
      "finished_at = case when x.kind in ('retry', 'returned') and r.cancel_by is null then null "
      "else c.now end, "
      "attempts = case x.kind when 'returned' then greatest(r.attempts - 1, 0) else r.attempts "
      "end, losses = r.losses + case x.word when 'LOST' then 1 else 0 end, "
      "not_before = case x.kind when 'retry' then c.now + x.backoff else r.not_before end, "
      "look_at = case x.kind when 'retry' then c.now + x.backoff else r.not_before end, "
      "waits_for = null, held_by = null, held_until = null, lease_until = null, run_until = null, "
      "cancel_by = null, cancel_why = null, ver = r.ver + 1, "
      "op = case x.kind when 'done' then 'commit' when 'returned' then 'burn' else 'fail' end, "
      "op_at = c.now "
      "from x join j on j.n = x.n join l on l.n = x.n cross join c "
      // Where it was when it was locked. One that moved after the statement began is not found: it
      // counts as locked by another, and is taken alone.
      "where r.ctid = l.tid and j.why = '' and not j.noted returning x.n), "
      "w as (select j.n from j where j.noted union all select n from u), "
      "a as (insert into @.job_run (",
      kRunColumns, ", status, reason, message, exit_code, signal, result, started_at) select ",
      kRunValues,
      ", case when j.noted then 'DONE' else x.word end, nullif(x.reason, ''), "
      "nullif(x.message, ''), x.exit_code, x.signal, nullif(x.result, ''), "
      "least(greatest(x.started_at, case when x.started_at is not null then l.claimed_at end), "
      "case when x.started_at is not null then c.now end) "
      "from x join j on j.n = x.n join l on l.n = x.n cross join c "
      "where x.n in (select n from w) on conflict (fence) do update set status = excluded.status, "
      "reason = excluded.reason, "
      "message = excluded.message, exit_code = excluded.exit_code, signal = excluded.signal, "
      "result = excluded.result, started_at = excluded.started_at, "
      "finished_at = excluded.finished_at) ",
      extras.output
          ? ", o as (insert into @.job_output as o (fence, head, tail, bytes, at) select x.fence, "
            "x.head, x.tail, x.bytes, c.now from x cross join c "
            "where x.n in (select n from w) and x.bytes > 0 on conflict (fence) do update set "
            "head = excluded.head, tail = excluded.tail, bytes = excluded.bytes, at = excluded.at) "
          : "",
      extras.figures
          ? absl::StrCat(
                ", f as (insert into @.job_figure (job_name, period, generation, fence, name, "
                "value, at) select x.job, x.period, x.gen, x.fence, g.name, g.value, c.now from (",
                figures,
                ") g join x on x.n = g.n cross join c where x.n in (select n from w) "
                "on conflict (fence, name) do nothing) ")
          : "",
      "select x.n, case when j.why = '' and w.n is null then 'busy' else coalesce(j.why, ",
      kUnlockedWhy, ") end from x left join j on j.n = x.n left join w on w.n = x.n");
}

int64_t OutputBytes(const Outcome& o) {
  return std::max<int64_t>(o.output_bytes,
                           static_cast<int64_t>(o.output_head.size() + o.output_tail.size()));
}

void AddOutcome(ColumnRows& rows, const FinishRequest& r, Extras extras) {
  const Outcome& o = r.outcome;
  rows.Add("kind", KindWord(o.kind)).Add("reason", o.reason).Add("message", o.message);
  rows.AddSpan("backoff", o.backoff).Add("result", o.result).Add("node", r.node);
  rows.Add("word", RunWord(o)).AddTime("started_at", o.started_at);
  rows.AddInt("exit_code", o.exit_code).AddInt("signal", o.signal);
  if (!extras.output) return;
  rows.AddBytes("head", o.output_head).AddBytes("tail", o.output_tail);
  rows.AddInt("bytes", OutputBytes(o));
}

constexpr char kAnyWait[] =
    "select exists (select from @.job_watermark r where r.status = 'PLANNED' and r.waits_for is "
    "not null and r.waits_for < 'with/')";

Statement Freed(const Session& session, absl::Span<const FinishRequest> requests,
                const std::vector<size_t>& part) {
  ColumnRows keys;
  for (const size_t i : part) keys.Row().AddKey(requests[i].ticket.key);
  std::vector<Parameter> params;
  const std::string freed = WakeWaiting(keys.Take(params));
  return session.Of(freed, std::move(params));
}

// The ends, and behind them those that waited for what they free; or, without `wake`, whether
// anybody waits at all.
std::vector<Statement> FinishStatements(const Session& session,
                                        absl::Span<const FinishRequest> requests,
                                        const std::vector<size_t>& part, Locking locking,
                                        bool wake) {
  Extras extras;
  for (const size_t i : part) {
    extras.output |= OutputBytes(requests[i].outcome) > 0;
    extras.figures |= !requests[i].outcome.figures.empty();
  }
  ColumnRows rows, figures;
  for (const size_t i : part) {
    const FinishRequest& r = requests[i];
    rows.Row().AddInt("n", static_cast<int64_t>(i)).AddTicket(r.ticket);
    AddOutcome(rows, r, extras);
    for (const auto& [name, value] : r.outcome.figures) {
      figures.Row().AddInt("n", static_cast<int64_t>(i)).Add("name", name);
      figures.AddNumber("value", value);
    }
  }
  std::vector<Parameter> params;
  const std::string select = rows.Take(params);
  const std::string figures_select = extras.figures ? figures.Take(params) : "";
  return {session.Of(FinishText(select, figures_select, locking, extras), std::move(params)),
          wake ? Freed(session, requests, part) : session.Of(kAnyWait)};
}

// Plans that serve any values are made once.
constexpr char kOnePlan[] = "set local plan_cache_mode = force_generic_plan";

}  // namespace

// Of a server process that has not seen them the statements of an end take a good part of its time:
// they are parsed and planned while the run is at work, by ending nothing.
void PostgresStore::GetReadyToFinish(const Claim& claim, const NodeId& node) {
  if (std::exchange(ready_to_finish_, true)) return;
  const FinishRequest likely = {TicketOf(claim), {}, node.name};
  std::vector<Statement> statements =
      FinishStatements(session_, {&likely, 1}, {0}, Locking::kSkip, wakes_);
  for (Statement& statement : statements) statement.comes_again = true;
  statements[0].params[0] = "{}";  // says how many rows there are
  statements.insert(statements.begin(), {kOnePlan});
  session_.connection.WriteAhead(statements);
}

absl::StatusOr<std::vector<Refusal>> PostgresStore::Finish(
    absl::Span<const FinishRequest> requests) {
  std::vector<Refusal> answers(requests.size());
  std::vector<PeriodKey> keys;
  bool woke = false;
  for (const FinishRequest& r : requests) keys.push_back(r.ticket.key);
  // The statement that wakes is a long one, and mostly there is nobody to wake: it goes with the
  // ends once there has been. The first time it follows them; whoever a crash between leaves
  // waiting is looked at again by itself.
  const auto note_waiting = [&](const Rows& said, const std::vector<size_t>& part) {
    if (wakes_) {
      wakes_ = said.affected() > 0;
      woke |= wakes_;
    } else if (said.Bool(0, 0)) {
      const auto woken = session_.Retried(
          [&] { return session_.connection.Write({Freed(session_, requests, part)}); });
      wakes_ = true;
      woke |= woken.ok() && (*woken)[0].affected() > 0;
    }
  };
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    MATINS_FAULT_POINT("finish.before_commit");  // crash here: the lease ends, reap takes it
    ASSIGN_OR_RETURN(std::vector<Rows> rows, session_.Retried([&] {
      std::vector<Statement> statements =
          FinishStatements(session_, requests, part, locking, wakes_);
      if (ready_to_finish_) statements.insert(statements.begin(), {kOnePlan});
      return session_.Write(statements, locking == Locking::kWait, "finish.before_lock");
    }));
    if (ready_to_finish_) rows.erase(rows.begin());
    MATINS_FAULT_POINT("finish.after_commit");  // crash here: it stands, and nobody was told
    note_waiting(rows[1], part);
    for (int k = 0; k < rows[0].size(); ++k) {
      answers[static_cast<size_t>(rows[0].Int(k, 0))].why = rows[0].Text(k, 1);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(answers[i].why); },
      [&](size_t i, std::string why) { answers[i].why = std::move(why); }, kBatchErrors));
  if (woke) session_.Notify();
  return answers;
}

namespace {

// Looks at the row under its lock, once a COMMIT in flight has ended, and at the attempt's own row.
Statement LookText(const Session& session, const FinishRequest& r) {
  const bool naive = IsMutant(Mutant::kNaiveResolve);
  return session.Of(
      absl::StrCat("with l as materialized (select * from @.job_watermark r where "
                   "r.job_name = $1 and r.period = $2",
                   naive ? "" : " for update",
                   "), c as materialized (select @NOW as now, count(*) from l) "
                   "select l.status, l.fence, l.nonce, l.generation, l.lease_until, c.now from l "
                   "cross join c"),
      {r.ticket.key.job, r.ticket.key.period});
}

ResolveVerdict Judge(const FinishRequest& request, const Rows& found, const Rows& run) {
  std::optional<PeriodRow> row;
  if (found.size() > 0) {
    row.emplace();
    row->key = request.ticket.key;
    row->status = StatusOf(found.Text(0, 0));
    row->fence = found.Int(0, 1);
    row->nonce = found.Int(0, 2);
    row->generation = static_cast<int>(found.Int(0, 3));
    row->lease_until = found.Time(0, 4);
  }
  const absl::Time now = row ? found.Time(0, 5) : absl::InfinitePast();
  std::optional<std::string> ended;
  if (run.size() > 0) ended = run.Text(0, 0);
  return JudgeResolve(request, row ? &*row : nullptr, ended, now);
}

// The fence is burnt, so that a late COMMIT must fail (I9); the period goes where a lost lease
// leads.
Statement BurnText(const Session& session, const FinishRequest& r) {
  JsonRows json;
  json.Row().AddInt("n", 0).AddTicket(r.ticket).Add("node", r.node);
  return session.Of(
      absl::StrCat(
          LockedRows("node text", Locking::kWait), ", j as materialized (select l.*, ",
          kLossVerdict,
          " as verdict from l left join @.job b on b.name = l.job_name), "
          "u as (update @.job_watermark r set status = case j.verdict when 'PLANNED' then ",
          kAgainStatus, " else 'FAILED' end, held = j.verdict = 'HELD', reason = ", kBurntReason,
          ", fence = @FENCE, nonce = null, "
          "losses = r.losses + 1, attempts = case j.verdict when 'PLANNED' then "
          "greatest(r.attempts - 1, 0) else r.attempts end, "
          // A lease that lives is waited for: its owner may still believe in it (I7).
          "wait_until = case when j.lease_until > c.now then j.lease_until end, "
          "lease_until = null, run_until = null, "
          "finished_at = case when j.verdict = 'PLANNED' and r.cancel_by is null then null else "
          "c.now end, "
          "look_at = r.not_before, waits_for = null, cancel_by = null, cancel_why = null, "
          "ver = r.ver + 1, op = case when j.lease_until > c.now then 'burn' else 'reclaim' end, "
          "op_at = c.now "
          "from x cross join j cross join c where r.job_name = j.job_name and "
          "r.period = j.period) ",
          IsMutant(Mutant::kNoLeftSlot)
              ? ""
              : ", s as (insert into @.job_slot (fence, job_name, period, tenant, limit_key, "
                "backfill, until) select l.fence, l.job_name, l.period, l.tenant, l.limit_key, "
                "l.backfill, l.lease_until from l cross join c where l.lease_until > c.now and "
                "l.fence > 0 on conflict (fence) do nothing) ",
          "insert into @.job_run (", kRunColumns, ", status, reason, message) select ", kRunValues,
          ", 'LOST', case l.verdict when 'HELD' then 'held' else 'lost' end, 'its end was not "
          "known, "
          "and it was not committed' from j l cross join c on conflict (fence) do nothing"),
      {json.Take()});
}

}  // namespace

absl::StatusOr<std::vector<ResolveAnswer>> PostgresStore::Resolve(
    absl::Span<const FinishRequest> requests) {
  std::vector<ResolveAnswer> answers(requests.size());
  Connection& connection = session_.connection;
  const auto one = [&](size_t i) -> absl::StatusOr<ResolveAnswer> {
    const FinishRequest& r = requests[i];
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        connection.Begin({LookText(session_, r),
                          session_.Of("select status from @.job_run where fence = $1::bigint",
                                      {absl::StrCat(r.ticket.fence)})}));
    const ResolveVerdict verdict = Judge(r, rows[0], rows[1]);
    std::vector<Statement> writes;
    if (verdict == ResolveVerdict::kComplete) {
      writes = FinishStatements(session_, requests, {i}, Locking::kWait, /*wake=*/true);
    } else if (verdict == ResolveVerdict::kBurn && !IsMutant(Mutant::kResolveBurnsNothing)) {
      writes = {BurnText(session_, r)};
    }
    if (writes.empty()) {
      connection.Rollback();
    } else {
      ASSIGN_OR_RETURN(const std::vector<Rows> written, connection.Commit(writes));
      if (verdict == ResolveVerdict::kComplete && !written[0].Text(0, 1).empty()) {
        // The lease ended between the look and the write: the next look burns the fence.
        return absl::AbortedError("look again");
      }
    }
    MATINS_FAULT_POINT("resolve.after_commit");  // crash here: asked again, it answers the same
    const bool yes = verdict == ResolveVerdict::kYes || verdict == ResolveVerdict::kComplete;
    return ResolveAnswer{yes ? ResolveAnswer::Kind::kCommitted
                             : ResolveAnswer::Kind::kNotCommitted};
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    auto answer = session_.Retried([&] { return one(i); });
    if (absl::IsAborted(answer.status())) answer = session_.Retried([&] { return one(i); });
    if (!answer.ok()) return answer.status();
    answers[i] = *answer;
  }
  return answers;
}

}  // namespace matins::postgresql
