// While it runs: heartbeats, checkpoints, live output.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/columns.h"
#include "store/postgresql/store.h"
#include "store/postgresql/ticket.h"
#include "store/rules.h"

namespace matins::postgresql {

absl::StatusOr<std::vector<ExtendAnswer>> PostgresStore::Extend(
    absl::Span<const ExtendRequest> requests) {
  std::vector<ExtendAnswer> answers(requests.size());
  for (ExtendAnswer& a : answers) a.lease_until = absl::InfinitePast();
  std::vector<PeriodKey> keys;
  for (const ExtendRequest& r : requests) keys.push_back(r.ticket.key);
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    ColumnRows rows_asked;
    for (const size_t i : part) {
      rows_asked.Row().AddInt("n", static_cast<int64_t>(i)).AddTicket(requests[i].ticket);
      rows_asked.AddSpan("ttl", requests[i].ttl);
    }
    std::vector<Parameter> params;
    // Never shorter than before, never past run_until (I5).
    const absl::string_view asked =
        IsMutant(Mutant::kBeatPastTimeOut) ? "c.now + x.ttl" : "least(c.now + x.ttl, l.run_until)";
    const std::string until = IsMutant(Mutant::kBeatShortens)
                                  ? std::string(asked)
                                  : absl::StrCat("greatest(l.lease_until, ", asked, ")");
    const std::string text = absl::StrCat(
        LockedRowsOf(rows_asked.Take(params), "r.cancel_by, r.cancel_why", locking),
        ", j as materialized (select x.n, x.job, x.period, ", TicketWhy(Asked::kExtend),
        " as why, ", until,
        " as lease, l.cancel_by, l.cancel_why from x join l on l.n = x.n cross join c), "
        "u as (update @.job_watermark r set lease_until = j.lease, "
        "renewals = coalesce(r.renewals, 0) + 1, ",
        IsMutant(Mutant::kSilentBeat) ? "" : "ver = r.ver + 1, ",
        "op = 'hb', op_at = c.now from j cross join c where r.job_name = j.job and r.period = "
        "j.period and "
        "j.why = '') "
        "select x.n, coalesce(j.why, ",
        kUnlockedWhy,
        "), c.now, j.lease, j.cancel_by is not null, j.cancel_why from x cross join c "
        "left join j on j.n = x.n");
    MATINS_FAULT_POINT("extend.before_commit");  // crash here: the lease ends as it stood
    const Statement statement = session_.Of(text, std::move(params));
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
      return session_.Write({statement}, locking == Locking::kWait, "extend.before_lock");
    }));
    MATINS_FAULT_POINT("extend.after_commit");  // crash here: it lives a beat longer
    for (int k = 0; k < rows[0].size(); ++k) {
      ExtendAnswer& a = answers[static_cast<size_t>(rows[0].Int(k, 0))];
      a.refusal.why = rows[0].Text(k, 1);
      a.now = rows[0].Time(k, 2);
      if (!a.refusal.accepted()) continue;
      a.lease_until = rows[0].Time(k, 3);
      a.cancel_asked = rows[0].Bool(k, 4);
      a.cancel_why = rows[0].Text(k, 5);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(answers[i].refusal.why); },
      [&](size_t i, std::string why) { answers[i].refusal.why = std::move(why); }, kBatchErrors));
  return answers;
}

absl::StatusOr<std::vector<Refusal>> PostgresStore::Checkpoint(
    absl::Span<const CheckpointRequest> requests) {
  for (const CheckpointRequest& r : requests) {
    if (r.data.size() <= kCheckpointBytes && r.number > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint ", r.number, " of ", r.data.size(), " bytes: number from 1, at most ",
        kCheckpointBytes, " bytes; keep more elsewhere"));
  }
  std::vector<Refusal> answers(requests.size());
  std::vector<PeriodKey> keys;
  for (const CheckpointRequest& r : requests) keys.push_back(r.ticket.key);
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    JsonRows json;
    for (const size_t i : part) {
      json.Row().AddInt("n", static_cast<int64_t>(i)).AddTicket(requests[i].ticket);
      json.AddInt("number", requests[i].number).AddBytes("data", requests[i].data);
    }
    const std::string text = absl::StrCat(
        LockedRows("number bigint, data text", locking),
        ", v as materialized (select x.*, l.checkpoint as last, ", TicketWhy(Asked::kCheckpoint),
        " as ticket_why from x join l on l.n = x.n cross join c), "
        "j as materialized (select v.*, case when ticket_why <> '' then ticket_why "
        "when ",
        IsMutant(Mutant::kCheckpointBack) ? "false" : "number <= greatest(last, 0)",
        " then 'checkpoint' else '' end as why from v), "
        "u as (update @.job_watermark r set checkpoint = j.number, checkpointed_at = c.now, "
        "ver = r.ver + 1, op = 'ckpt', op_at = c.now from j cross join c "
        "where r.job_name = j.job and r.period = j.period and j.why = ''), "
        "p as (insert into @.job_checkpoint as k (job_name, period, generation, number, data, at) "
        "select j.job, j.period, j.gen, j.number, decode(j.data, 'hex'), c.now from j cross join c "
        "where j.why = '' on conflict (job_name, period, generation) do update set "
        "number = excluded.number, data = excluded.data, at = excluded.at) "
        "select x.n, coalesce(j.why, ",
        kUnlockedWhy, ") from x left join j on j.n = x.n");
    MATINS_FAULT_POINT("checkpoint.before_commit");  // crash here: the last accepted one stands
    const Statement statement = session_.Of(text, {json.Take()});
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
      return session_.Write({statement}, locking == Locking::kWait, "checkpoint.before_lock");
    }));
    MATINS_FAULT_POINT("checkpoint.after_commit");  // crash here: the next owner is offered it
    for (int k = 0; k < rows[0].size(); ++k) {
      answers[static_cast<size_t>(rows[0].Int(k, 0))].why = rows[0].Text(k, 1);
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(answers[i].why); },
      [&](size_t i, std::string why) { answers[i].why = std::move(why); }, kBatchErrors));
  return answers;
}

absl::Status PostgresStore::PutOutput(const Ticket& ticket, absl::string_view head,
                                      absl::string_view tail, int64_t bytes) {
  JsonRows json;
  json.Row().AddInt("n", 0).AddTicket(ticket);
  json.AddBytes("head", head).AddBytes("tail", tail).AddInt("bytes", bytes);
  // No lock on the run's row: output decides nothing, and must not delay a heartbeat.
  return session_.connection
      .Write({session_.Of(
          "insert into @.job_output as o (fence, head, tail, bytes, at) "
          "select x.fence, decode(x.head, 'hex'), decode(x.tail, 'hex'), x.bytes, @NOW "
          "from json_to_recordset($1::json) as x(job text, period text, gen int, fence bigint, "
          "nonce bigint, head text, tail text, bytes bigint) join @.job_watermark r on "
          "r.job_name = x.job and r.period = x.period and r.status = 'RUNNING' and "
          "r.fence = x.fence and r.nonce = x.nonce and r.generation = x.gen "
          "on conflict (fence) do update set head = excluded.head, tail = excluded.tail, "
          "bytes = excluded.bytes, at = excluded.at",
          {json.Take()})})
      .status();
}

}  // namespace matins::postgresql
