// When a lease is lost, or taken: stale runs, overlap: replace, and locks that outlast their row.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/store.h"

namespace matins::mariadb {

absl::StatusOr<std::vector<StaleRun>> MariadbStore::ReadStale(int limit) {
  // Two queries, not one with OR. A row without a lease is another program's; its age is counted
  // from when it was seen running.
  const std::string text = absl::StrCat(
      "SELECT q.*, TIMESTAMPDIFF(MICROSECOND, q.dead_since, CAST(@matins_now AS DATETIME(6))), "
      "q.lease_until IS NULL FROM ((SELECT ",
      RowColumns(),
      ", r.lease_until AS dead_since FROM job_watermark r FORCE INDEX (job_watermark_due) WHERE "
      "r.status = 'RUNNING' AND "
      "r.lease_until <= CAST(@matins_now AS DATETIME(6)) ORDER BY r.lease_until LIMIT ?) UNION ALL "
      "(SELECT ",
      RowColumns(),
      ", r.claimed_at + INTERVAL b.stale_after MICROSECOND AS dead_since FROM job_watermark r "
      "FORCE INDEX (job_watermark_due) "
      "STRAIGHT_JOIN job b FORCE INDEX (PRIMARY) ON b.name = r.job_name AND NOT b.deleted WHERE "
      "r.status = 'RUNNING' AND "
      "r.lease_until IS NULL AND r.claimed_at + INTERVAL b.stale_after MICROSECOND <= "
      "CAST(@matins_now AS DATETIME(6)) LIMIT ?)) q ORDER BY q.dead_since, q.job_name, q.period "
      "LIMIT ?");
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({Sql("SET @matins_now = @NOW"), ReadClock(),
                                             Sql(text, {limit, limit, limit})}));
  std::vector<StaleRun> stale;
  if (ClockOf(rows[1]).frozen) return stale;
  const Rows& r = rows[2];
  for (int i = 0; i < r.size(); ++i) {
    stale.push_back({ReadRow(r, i), absl::Microseconds(r.Int(i, kRowColumnCount + 1)),
                     r.Bool(i, kRowColumnCount + 2)});
  }
  return stale;
}

absl::StatusOr<std::vector<bool>> MariadbStore::Reap(absl::Span<const ReapRequest> requests) {
  std::vector<std::string> why(requests.size());
  std::vector<PeriodKey> keys;
  for (const ReapRequest& r : requests) keys.push_back(r.ticket.key);
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    std::vector<PeriodKey> wanted;
    for (const size_t i : part) wanted.push_back(keys[i]);
    const std::vector<Statement> also = {ReadWaiting(), ReadLossRules(KeysInOrder(wanted))};
    const auto once = [&]() -> absl::StatusOr<std::vector<std::string>> {
      ASSIGN_OR_RETURN(const LockedRows locked,
                       LockTickets(session_, wanted, locking, "reap.before_lock", also));
      const LossRules rules = LossRulesOf(locked.more[1]);
      Ends ends(locked.clock, WaitingOf(locked.more[0]));
      std::vector<std::string> words;
      for (const size_t i : part) {
        const ReapRequest& r = requests[i];
        const AttemptRow* row = locked.Find(r.ticket.key);
        const bool taken =
            row != nullptr && !locked.clock.frozen &&
            MayReap(*row, r.ticket, rules.StaleAfter(row->key.job), locked.clock.now);
        if (taken) ends.Add(*row, ReapedBy(r));
        words.push_back(taken ? "" : locked.busy.contains(r.ticket.key) ? kBusy : "no");
      }
      // Crash here: it is still stale, the next takes it.
      RETURN_IF_ERROR(CommitAt(session_, "reap.before_commit", ends.Statements()).status());
      return words;
    };
    ASSIGN_OR_RETURN(const std::vector<std::string> words, session_.Retried(once, 1));
    MATINS_FAULT_POINT("reap.after_commit");  // crash here: it is PLANNED, any node starts it
    for (size_t k = 0; k < part.size(); ++k) why[part[k]] = words[k];
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(why[i]); },
      [&](size_t i, std::string text) { why[i] = std::move(text); }, kBatchErrors));
  std::vector<bool> taken;
  for (const std::string& w : why) taken.push_back(w.empty());
  return taken;
}

namespace {

// Running rows that a due newcomer of a replacing job is to take the place of.
Statement Replaced(absl::Span<const PeriodKey> newcomers) {
  return Sql(
      "SELECT r.job_name, r.period, MAX(w.period) FROM ? STRAIGHT_JOIN job_watermark w FORCE INDEX "
      "(PRIMARY) ON "
      "w.job_name = x.job AND w.period = x.period STRAIGHT_JOIN job b FORCE INDEX (PRIMARY) ON "
      "b.name = x.job "
      "STRAIGHT_JOIN job_watermark r FORCE INDEX (job_watermark_open) ON r.job_name = w.job_name "
      "AND r.status = 'RUNNING' "
      "WHERE r.fence > 0 AND r.due_at < w.due_at AND w.status = 'PLANNED' AND "
      "w.not_before <= CAST(@matins_now AS DATETIME(6)) AND b.overlap = 'replace' AND "
      "NOT b.deleted AND b.suspended_at IS NULL GROUP BY r.job_name, r.period",
      {KeyTable(KeysInOrder({newcomers.begin(), newcomers.end()}))});
}

// The lock outlives the row until the old tree is reported dead, or its lease and grace have ended.
Statement KeepLocks(JsonRows& locks) {
  return Sql(
      "INSERT INTO job_lock (lock_key, job_name, period, fence, until) SELECT x.lock_key, x.job, "
      "x.period, x.fence, x.until + INTERVAL COALESCE(b.grace, 10000000) MICROSECOND FROM ? "
      "LEFT JOIN job b FORCE INDEX (PRIMARY) ON b.name = x.job ON DUPLICATE KEY UPDATE "
      "until = GREATEST(job_lock.until, VALUES(until)), fence = VALUES(fence), "
      "job_name = VALUES(job_name), period = VALUES(period)",
      {JsonTable(locks.Take(), "lock_key key, job name, period name, fence int, until time")});
}

}  // namespace

absl::StatusOr<std::vector<Ticket>> MariadbStore::Replace(absl::Span<const PeriodKey> newcomers) {
  Connection& connection = session_.connection;
  const auto once = [&]() -> absl::StatusOr<std::vector<Ticket>> {
    std::vector<Ticket> burnt;
    ASSIGN_OR_RETURN(const std::vector<Rows> look,
                     connection.Begin({Sql("SET @matins_now = @NOW"), Replaced(newcomers)}));
    std::map<PeriodKey, std::string> by;
    std::vector<PeriodKey> keys;
    for (int i = 0; i < look[1].size(); ++i) {
      keys.push_back({look[1].Text(i, 0), look[1].Text(i, 1)});
      by[keys.back()] = look[1].Text(i, 2);
    }
    if (keys.empty()) {
      connection.Rollback();
      return burnt;
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> locked,
                     connection.More({LockRows(session_, KeysInOrder(keys), Locking::kWait),
                                      ReadClock(), ReadWaiting()}));
    const Clock clock = ClockOf(locked[1]);
    Ends ends(clock, WaitingOf(locked[2]));
    JsonRows locks;
    for (int i = 0; i < locked[0].size() && !clock.frozen; ++i) {
      const AttemptRow row = ReadRow(locked[0], i);
      if (row.status != PeriodStatus::kRunning || row.fence == 0) continue;
      burnt.push_back({row.key, row.generation, row.fence, row.nonce});
      ends.Add(row, ReplacedBy(by[row.key]));
      ends.LeaveSlot(row, std::max(row.lease_until, clock.now), true);
      if (row.lock_key.empty()) continue;
      locks.Row().Add("lock_key", row.lock_key).AddKey(row.key).AddInt("fence", row.fence);
      locks.AddTime("until", std::max(row.lease_until, clock.now));
    }
    std::vector<Statement> writes = ends.Statements();
    if (!locks.empty()) writes.push_back(KeepLocks(locks));
    // Crash here: the old run goes on.
    RETURN_IF_ERROR(CommitAt(session_, "replace.before_commit", writes).status());
    return burnt;
  };
  ASSIGN_OR_RETURN(std::vector<Ticket> burnt, session_.Retried(once));
  MATINS_FAULT_POINT("replace.after_commit");  // crash here: its next beat is refused
  return burnt;
}

absl::Status MariadbStore::ReportDead(absl::Span<const Ticket> tickets) {
  if (tickets.empty()) return absl::OkStatus();
  JsonRows json;
  for (const Ticket& t : tickets) json.Row().AddTicket(t);
  const Value table = JsonTable(json.Take(), "job name, period name, fence int");
  const auto once = [&]() -> absl::StatusOr<std::vector<Rows>> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {Sql("SELECT k.lock_key, x.job FROM ? STRAIGHT_JOIN job_lock k FORCE INDEX "
                 "(job_lock_fence) ON k.fence = x.fence "
                 "AND k.job_name = x.job AND k.period = x.period FOR UPDATE",
                 {table}),
             ReadWaiting(),
             Sql("SELECT s.fence, s.job_name, s.tenant, s.limit_key, s.backfill FROM ? "
                 "STRAIGHT_JOIN job_slot s FORCE INDEX (PRIMARY) ON s.fence = x.fence AND "
                 "s.job_name = x.job AND "
                 "s.period = x.period FOR UPDATE",
                 {table})}));
    JsonRows locks, slots;
    Wakes wakes(WaitingOf(rows[1]));
    for (int i = 0; i < rows[2].size(); ++i) {
      slots.Row().AddInt("fence", rows[2].Int(i, 0));
      wakes.Add(rows[2].Text(i, 1), "", absl::CivilDay());
      wakes.AddSlot({rows[2].Text(i, 2), rows[2].Text(i, 3), rows[2].Bool(i, 4)});
    }
    for (int i = 0; i < rows[0].size(); ++i) {
      locks.Row().Add("lock_key", rows[0].Text(i, 0));
      wakes.Add(rows[0].Text(i, 1), rows[0].Text(i, 0), absl::CivilDay());
    }
    if (locks.empty() && slots.empty()) {
      session_.connection.Rollback();
      return rows;
    }
    std::vector<Statement> writes = {
        Sql("DELETE k FROM ? STRAIGHT_JOIN job_lock k FORCE INDEX (PRIMARY) ON k.lock_key = "
            "x.lock_key",
            {JsonTable(locks.Take(), "lock_key key")}),
        Sql("DELETE s FROM ? STRAIGHT_JOIN job_slot s FORCE INDEX (PRIMARY) ON s.fence = x.fence",
            {JsonTable(slots.Take(), "fence int")})};
    for (Statement& wake : wakes.Statements()) writes.push_back(std::move(wake));
    return session_.connection.Commit(writes);
  };
  return session_.Retried(once).status();
}

}  // namespace matins::mariadb
