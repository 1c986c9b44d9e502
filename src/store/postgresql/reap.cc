// When a lease is lost, or taken: stale runs, overlap: replace, and locks that outlast their row.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/finish.h"
#include "store/postgresql/store.h"
#include "store/postgresql/ticket.h"
#include "store/server_rows.h"

namespace matins::postgresql {

// A row without a lease is another program's; its age is counted from when it was seen running.
const char kDeadSince[] =
    "case when r.lease_until is not null then r.lease_until when b.stale_after is not null then "
    "r.claimed_at + b.stale_after end";

absl::StatusOr<std::vector<StaleRun>> PostgresStore::ReadStale(int limit) {
  const std::string text = absl::StrCat(
      "with c as materialized (select @NOW as now, @FROZEN as frozen) select ", kPeriodColumns,
      ", (extract(epoch from c.now - ", kDeadSince,
      ") * 1000000)::bigint, r.lease_until is null from @.job_watermark r cross join c "
      "left join @.job b on b.name = r.job_name and not b.deleted where r.status = 'RUNNING' and "
      "not c.frozen and ",
      kDeadSince, " <= c.now order by ", kDeadSince, ", r.job_name, r.period limit $1::bigint");
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(text, {absl::StrCat(limit)})}));
  std::vector<StaleRun> stale;
  for (int i = 0; i < rows[0].size(); ++i) {
    stale.push_back({ReadRow(rows[0], i), absl::Microseconds(rows[0].Int(i, kPeriodColumnCount)),
                     rows[0].Bool(i, kPeriodColumnCount + 1)});
  }
  return stale;
}

namespace {

std::string ReapText(Locking locking) {
  // The condition under which the run was found stale, asked again under the lock (I1, I2).
  const std::string still_dead =
      IsMutant(Mutant::kBlindReap)
          ? "true"
          : absl::StrCat(
                "r.status = 'RUNNING' and r.fence = x.fence and r.generation = x.gen and "
                "coalesce(r.nonce, 0) = x.nonce and coalesce(",
                kDeadSince, " <= c.now, false) and not @FROZEN");
  const std::string fence = IsMutant(Mutant::kNoFenceBump) ? "r.fence" : "@FENCE";
  return absl::StrCat(
      LockedRows("kind text, reason text, node text", locking),
      ", j as materialized (select x.n, x.job, x.period, x.kind, x.reason, x.node, ", still_dead,
      " as taken from x join l r on r.n = x.n cross join c left join @.job b on "
      "b.name = r.job_name and not b.deleted), "
      "u as (update @.job_watermark r set status = case j.kind when 'returned' then ",
      kAgainStatus,
      " else 'FAILED' end, held = j.kind = 'held', reason = case when j.kind = "
      "'returned' and r.cancel_by is not null then 'cancelled' else nullif(j.reason, '') end, "
      "fence = ",
      fence,
      ", nonce = null, losses = r.losses + 1, "
      "attempts = case j.kind when 'returned' then greatest(r.attempts - 1, 0) else r.attempts "
      "end, lease_until = null, run_until = null, "
      "finished_at = case when j.kind = 'returned' and r.cancel_by is null then null else c.now "
      "end, "
      "not_before = coalesce(r.not_before, r.due_at, c.now), "
      "look_at = coalesce(r.not_before, r.due_at, c.now), waits_for = null, "
      "held_by = null, held_until = null, cancel_by = null, cancel_why = null, "
      "ver = r.ver + 1, op = 'reclaim', op_at = c.now from j cross join c "
      "where r.job_name = j.job and r.period = j.period and j.taken), "
      "a as (insert into @.job_run (",
      kRunColumns, ", status, reason, message) select ", kRunValues,
      ", 'LOST', nullif(j.reason, ''), 'the lease ended; taken back by ' || j.node "
      "from j join l on l.n = j.n cross join c where j.taken and l.fence > 0 ",
      IsMutant(Mutant::kNoRunRow) ? "and false " : "",

      "on conflict (fence) do nothing) "
      "select x.n, case when j.n is null then ",
      kUnlockedWhy, " when j.taken then '' else 'no' end from x left join j on j.n = x.n");
}

}  // namespace

absl::StatusOr<std::vector<bool>> PostgresStore::Reap(absl::Span<const ReapRequest> requests) {
  std::vector<std::string> why(requests.size());
  std::vector<PeriodKey> keys;
  bool any = false;
  for (const ReapRequest& r : requests) keys.push_back(r.ticket.key);
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    JsonRows json;
    for (const size_t i : part) {
      const ReapRequest& r = requests[i];
      json.Row().AddInt("n", static_cast<int64_t>(i)).AddTicket(r.ticket);
      json.Add("kind", r.to == Outcome::Kind::kReturned ? "returned"
                       : r.to == Outcome::Kind::kHeld   ? "held"
                                                        : "failed");
      json.Add("reason", r.reason).Add("node", r.node);
    }
    const std::string rows_json = json.Take();
    const std::vector<Statement> statements = {session_.Of(ReapText(locking), {rows_json}),
                                               session_.Of(WakeWaiting(), {rows_json})};
    MATINS_FAULT_POINT("reap.before_commit");  // crash here: it is still stale, the next takes it
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
      return session_.Write(statements, locking == Locking::kWait, "reap.before_lock");
    }));
    MATINS_FAULT_POINT("reap.after_commit");  // crash here: it is PLANNED, any node starts it
    for (int k = 0; k < rows[0].size(); ++k) {
      why[static_cast<size_t>(rows[0].Int(k, 0))] = rows[0].Text(k, 1);
      any |= rows[0].Text(k, 1).empty();
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(why[i]); },
      [&](size_t i, std::string text) { why[i] = std::move(text); }, kBatchErrors));
  if (any) session_.Notify();
  std::vector<bool> taken;
  for (const std::string& w : why) taken.push_back(w.empty());
  return taken;
}

absl::StatusOr<std::vector<Ticket>> PostgresStore::Replace(absl::Span<const PeriodKey> newcomers) {
  JsonRows json;
  for (const PeriodKey& key : newcomers) json.Row().AddKey(key);
  const std::string rows_json = json.Take();
  // The lock outlives the row until the old tree is reported dead, or its lease and grace have
  // ended.
  const std::vector<Statement> statements = {
      session_.Of(absl::StrCat(
                      R"(
    with x as materialized (select * from json_to_recordset($1::json) as x(job text, period text)),
    l as materialized (
      select r.* from @.job_watermark r where r.status = 'RUNNING' and r.fence > 0 and exists (
        select from x join @.job_watermark w on w.job_name = x.job and w.period = x.period
          join @.job b on b.name = x.job
        where x.job = r.job_name and r.due_at < w.due_at and w.status = 'PLANNED'
          and b.overlap = 'replace' and not b.deleted and b.suspended_at is null
          and w.not_before <= @NOW)
      order by r.job_name, r.period for update of r),
    c as materialized (select @NOW as now, count(*) from l),
    j as materialized (select l.* from l cross join c where l.status = 'RUNNING'
      and not @FROZEN),
    u as (update @.job_watermark r set status = 'SKIPPED', reason = 'replaced', by_whom = 'policy',
        fence = @FENCE, nonce = null, lease_until = null, run_until = null, finished_at = c.now,
        cancel_by = null, cancel_why = null, waits_for = null, ver = r.ver + 1, op = 'skip',
        op_at = c.now
      from j cross join c where r.job_name = j.job_name and r.period = j.period),
    k as (insert into @.job_lock as o (lock_key, job_name, period, fence, until)
      select j.lock_key, j.job_name, j.period, j.fence,
        greatest(j.lease_until, c.now) + coalesce(b.grace, interval '10 seconds')
      from j cross join c left join @.job b on b.name = j.job_name where j.lock_key is not null
      on conflict (lock_key) do update set until = greatest(o.until, excluded.until),
        fence = excluded.fence, job_name = excluded.job_name, period = excluded.period),
    s as (insert into @.job_slot (fence, job_name, period, tenant, limit_key, backfill, until)
      select j.fence, j.job_name, j.period, j.tenant, j.limit_key, j.backfill,
        greatest(j.lease_until, c.now) + coalesce(b.grace, interval '10 seconds')
      from j cross join c left join @.job b on b.name = j.job_name where )",
                      IsMutant(Mutant::kNoLeftSlot) ? "false" : "true",
                      R"( on conflict (fence) do nothing),
    a as (insert into @.job_run ()",
                      kRunColumns, ", status, reason, message) select ", kRunValues,
                      R"(, 'REPLACED', 'replaced', 'a newer period was due'
      from j l cross join c on conflict (fence) do nothing)
    select job_name, period, generation, fence, nonce from j)"),
                  {rows_json})};
  MATINS_FAULT_POINT("replace.before_commit");  // crash here: the old run goes on
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.Retried([&] { return session_.connection.Write(statements); }));
  MATINS_FAULT_POINT("replace.after_commit");  // crash here: its next beat is refused
  std::vector<Ticket> burnt;
  for (int i = 0; i < rows[0].size(); ++i) {
    burnt.push_back({{rows[0].Text(i, 0), rows[0].Text(i, 1)},
                     static_cast<int>(rows[0].Int(i, 2)),
                     rows[0].Int(i, 3),
                     rows[0].Int(i, 4)});
  }
  return burnt;
}

absl::Status PostgresStore::ReportDead(absl::Span<const Ticket> tickets) {
  if (tickets.empty()) return absl::OkStatus();
  JsonRows json;
  for (const Ticket& t : tickets) json.Row().AddTicket(t);
  const std::string rows_json = json.Take();
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
    return session_.connection.Write(
        {session_.Of("delete from @.job_lock k using json_to_recordset($1::json) as "
                     "x(job text, period text, fence bigint) where k.fence = x.fence and "
                     "k.job_name = x.job and k.period = x.period",
                     {rows_json}),
         session_.Of("delete from @.job_slot s using json_to_recordset($1::json) as "
                     "x(job text, period text, fence bigint) where s.fence = x.fence and "
                     "s.job_name = x.job and s.period = x.period",
                     {rows_json}),
         session_.Of(WakeWaiting(), {rows_json})});
  }));
  if (rows[0].affected() + rows[1].affected() > 0) session_.Notify();
  return absl::OkStatus();
}

}  // namespace matins::postgresql
