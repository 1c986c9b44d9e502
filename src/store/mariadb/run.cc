// While it runs: heartbeats, checkpoints, live output.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/store.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"

namespace matins::mariadb {
namespace {

template <typename Request>
std::vector<Ticket> TicketsOf(absl::Span<const Request> requests, const std::vector<size_t>& part) {
  std::vector<Ticket> tickets;
  for (const size_t i : part) tickets.push_back(requests[i].ticket);
  return tickets;
}

std::vector<PeriodKey> KeysOf(const std::vector<Ticket>& tickets) {
  std::vector<PeriodKey> keys;
  for (const Ticket& ticket : tickets) keys.push_back(ticket.key);
  return keys;
}

template <typename Request>
std::vector<size_t> AllOf(absl::Span<const Request> requests) {
  std::vector<size_t> all(requests.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

ExtendAnswer Extended(const AttemptRow& row, const ExtendRequest& request, absl::Time now) {
  ExtendAnswer answer;
  // Never shorter than before, never past run_until (I5).
  const absl::Time asked = now + request.ttl;
  const absl::Time until =
      IsMutant(Mutant::kBeatPastTimeOut) ? asked : std::min(asked, row.run_until);
  answer.lease_until = IsMutant(Mutant::kBeatShortens) ? until : std::max(row.lease_until, until);
  answer.cancel_asked = row.cancel_asked;
  answer.cancel_why = row.cancel_why;
  return answer;
}

}  // namespace

absl::StatusOr<std::vector<ExtendAnswer>> MariadbStore::Extend(
    absl::Span<const ExtendRequest> requests) {
  std::vector<ExtendAnswer> answers(requests.size());
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    const std::vector<Ticket> tickets = TicketsOf(requests, part);
    const auto once = [&]() -> absl::StatusOr<std::vector<ExtendAnswer>> {
      ASSIGN_OR_RETURN(const LockedRows locked,
                       LockTickets(session_, KeysOf(tickets), locking, "extend.before_lock"));
      ASSIGN_OR_RETURN(std::vector<std::string> why,
                       Refusals(session_, locked, tickets, Asked::kExtend));
      JsonRows rows;
      std::vector<ExtendAnswer> given;
      for (size_t k = 0; k < part.size(); ++k) {
        ExtendAnswer answer;
        answer.lease_until = absl::InfinitePast();
        if (why[k].empty()) {
          answer = Extended(*locked.Find(tickets[k].key), requests[part[k]], locked.clock.now);
          rows.Row().AddKey(tickets[k].key).AddTime("lease", answer.lease_until);
        }
        answer.now = locked.clock.now;
        answer.refusal.why = std::move(why[k]);
        given.push_back(std::move(answer));
      }
      std::vector<Statement> writes;
      if (!rows.empty()) {
        const absl::string_view journaled =
            IsMutant(Mutant::kSilentBeat) ? "" : "r.ver = r.ver + 1, ";
        writes.push_back(
            Sql(absl::StrCat("UPDATE ? @ROWS SET r.lease_until = x.lease, "
                             "r.renewals = COALESCE(r.renewals, 0) + 1, ",
                             journaled, "r.op = 'hb', r.op_at = ?"),
                {JsonTable(rows.Take(), "job name, period name, lease time"), locked.clock.now}));
      }
      // Crash here: the lease ends as it stood.
      RETURN_IF_ERROR(CommitAt(session_, "extend.before_commit", writes).status());
      return given;
    };
    ASSIGN_OR_RETURN(std::vector<ExtendAnswer> given, session_.Retried(once, 1));
    MATINS_FAULT_POINT("extend.after_commit");  // crash here: it lives a beat longer
    for (size_t k = 0; k < part.size(); ++k) answers[part[k]] = std::move(given[k]);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      KeysOf(TicketsOf(requests, AllOf(requests))), batch,
      [&](size_t i) { return absl::string_view(answers[i].refusal.why); },
      [&](size_t i, std::string why) { answers[i].refusal.why = std::move(why); }, kBatchErrors));
  return answers;
}

absl::StatusOr<std::vector<Refusal>> MariadbStore::Checkpoint(
    absl::Span<const CheckpointRequest> requests) {
  for (const CheckpointRequest& r : requests) {
    if (r.data.size() <= kCheckpointBytes && r.number > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "checkpoint ", r.number, " of ", r.data.size(), " bytes: number from 1, at most ",
        kCheckpointBytes, " bytes; keep more elsewhere"));
  }
  std::vector<Refusal> answers(requests.size());
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    const std::vector<Ticket> tickets = TicketsOf(requests, part);
    const auto once = [&]() -> absl::StatusOr<std::vector<std::string>> {
      ASSIGN_OR_RETURN(const LockedRows locked,
                       LockTickets(session_, KeysOf(tickets), locking, "checkpoint.before_lock"));
      ASSIGN_OR_RETURN(std::vector<std::string> why,
                       Refusals(session_, locked, tickets, Asked::kCheckpoint));
      JsonRows rows;
      Tuples data;
      for (size_t k = 0; k < part.size(); ++k) {
        const CheckpointRequest& r = requests[part[k]];
        const PeriodKey& key = r.ticket.key;
        const bool back = why[k].empty() && r.number <= locked.Find(key)->checkpoint;
        if (back && !IsMutant(Mutant::kCheckpointBack)) why[k] = "checkpoint";
        if (!why[k].empty()) continue;
        rows.Row().AddKey(key).AddInt("number", r.number);
        data.Add({key.job, key.period, r.ticket.generation, r.number, Value::Bytes(r.data),
                  locked.clock.now});
      }
      std::vector<Statement> writes;
      if (!rows.empty()) {
        writes.push_back(
            Sql("UPDATE ? @ROWS SET r.checkpoint = x.number, r.checkpointed_at = ?, "
                "r.ver = r.ver + 1, r.op = 'ckpt', r.op_at = ?",
                {JsonTable(rows.Take(), "job name, period name, number int"), locked.clock.now,
                 locked.clock.now}));
        writes.push_back(
            Sql("INSERT INTO job_checkpoint (job_name, period, generation, number, data, at) "
                "VALUES ? ON DUPLICATE KEY UPDATE number = VALUES(number), data = VALUES(data), "
                "at = VALUES(at)",
                {data.Take()}));
      }
      // Crash here: the last accepted one stands.
      RETURN_IF_ERROR(CommitAt(session_, "checkpoint.before_commit", writes).status());
      return why;
    };
    ASSIGN_OR_RETURN(std::vector<std::string> why, session_.Retried(once, 1));
    MATINS_FAULT_POINT("checkpoint.after_commit");  // crash here: the next owner is offered it
    for (size_t k = 0; k < part.size(); ++k) answers[part[k]].why = std::move(why[k]);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      KeysOf(TicketsOf(requests, AllOf(requests))), batch,
      [&](size_t i) { return absl::string_view(answers[i].why); },
      [&](size_t i, std::string why) { answers[i].why = std::move(why); }, kBatchErrors));
  return answers;
}

absl::Status MariadbStore::PutOutput(const Ticket& ticket, absl::string_view head,
                                     absl::string_view tail, int64_t bytes) {
  // No lock on the run's row: output decides nothing, and must not delay a heartbeat.
  return session_.connection
      .Write({Sql("INSERT INTO job_output (fence, head, tail, bytes, at) SELECT r.fence, ?, ?, ?, "
                  "@NOW FROM job_watermark r WHERE r.job_name = ? AND r.period = ? AND "
                  "r.status = 'RUNNING' AND r.fence = ? AND r.nonce = ? AND r.generation = ? "
                  "ON DUPLICATE KEY UPDATE head = VALUES(head), tail = VALUES(tail), "
                  "bytes = VALUES(bytes), at = VALUES(at)",
                  {Value::Bytes(head), Value::Bytes(tail), bytes, ticket.key.job, ticket.key.period,
                   ticket.fence, ticket.nonce, ticket.generation})})
      .status();
}

}  // namespace matins::mariadb
