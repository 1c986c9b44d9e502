#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/sqlite/limits.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

// How long a RUNNING row may be without a lease, as other programs write it.
std::optional<absl::Duration> StaleAfter(const JobInfo* job) {
  if (job == nullptr) return std::nullopt;
  return job->stale_after;
}

Ending Lost(const ReapRequest& request, const Row& row) {
  Ending ending = ReapedBy(request);
  ending.outcome.message = absl::StrCat("its lease ended at ", FormatInstant(row.lease_until),
                                        "; taken back by ", request.node);
  return ending;
}

}  // namespace

absl::StatusOr<std::vector<StaleRun>> SqliteStore::ReadStale(int limit) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<StaleRun> stale;
  if (snapshot.frozen_to_nodes()) return stale;
  const absl::Time now = snapshot.now();
  static const std::string kEnded =
      absl::StrCat("SELECT ", kRowColumns,
                   " FROM job_watermark WHERE status = 'RUNNING' AND lease_until <= ? ORDER BY "
                   "lease_until LIMIT ?");
  static const std::string kLeaseless =
      absl::StrCat("SELECT ", kRowColumns,
                   " FROM job_watermark WHERE status = 'RUNNING' AND lease_until IS NULL AND "
                   "claimed_at <= ? - (SELECT stale_after FROM job WHERE name = job_name AND NOT "
                   "deleted) ORDER BY claimed_at LIMIT ?");
  Jobs jobs(*db_);
  {
    Statement rows = db_->Sql(kEnded, now, limit);
    while (rows.Next()) {
      Row row = ReadRow(rows);
      const absl::Duration since = now - row.lease_until;
      stale.push_back({std::move(row), since, false});
    }
  }
  Statement rows = db_->Sql(kLeaseless, now, limit - static_cast<int>(stale.size()));
  while (rows.Next()) {
    Row row = ReadRow(rows);
    const auto dead = DeadSince(row, StaleAfter(jobs.Find(row.key.job)));
    stale.push_back({std::move(row), now - dead.value_or(now), true});
  }
  RETURN_IF_ERROR(db_->status());
  return stale;
}

absl::StatusOr<std::vector<bool>> SqliteStore::Reap(absl::Span<const ReapRequest> requests) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "reap"));
  Jobs jobs(*db_);
  std::vector<bool> answers;
  for (const ReapRequest& request : requests) {
    const std::optional<Row> row = FindRow(*db_, request.ticket.key);
    const bool taken = row && !transaction.frozen_to_nodes() &&
                       MayReap(*row, request.ticket, StaleAfter(jobs.Find(request.ticket.key.job)),
                               transaction.now());
    if (taken) {
      EndAttempt(*db_, transaction, *row, Lost(request, *row));
      db_->Sql("UPDATE job SET last_result = ? WHERE name = ?", ResultText("LOST", request.reason),
               row->key.job)
          .Run();
    }
    answers.push_back(taken);
  }
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::StatusOr<std::vector<Ticket>> SqliteStore::Replace(absl::Span<const PeriodKey> newcomers) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "replace"));
  const absl::Time now = transaction.now();
  static const std::string kRunning =
      absl::StrCat("SELECT ", kRowColumns,
                   " FROM job_watermark WHERE job_name = ? AND status = 'RUNNING' AND due_at < ?");
  Jobs jobs(*db_);
  std::vector<Ticket> burnt;
  for (const PeriodKey& key : newcomers) {
    if (transaction.frozen_to_nodes()) break;
    const std::optional<Row> row = FindRow(*db_, key);
    const JobInfo* job = jobs.Find(key.job);
    if (!row || job == nullptr || job->overlap != "replace" || job->suspended ||
        row->status != PeriodStatus::kPlanned || row->not_before > now) {
      continue;
    }
    std::vector<Row> olds;
    {
      Statement rows = db_->Sql(kRunning, key.job, row->due);
      while (rows.Next()) olds.push_back(ReadRow(rows));
    }
    for (const Row& old : olds) {
      burnt.push_back({old.key, old.generation, old.fence, old.nonce});
      EndAttempt(*db_, transaction, old, ReplacedBy(key.period));
      LeaveSlot(*db_, old, std::max(old.lease_until, now) + job->grace);
      if (old.lock_key.empty()) continue;
      db_->Sql(
             "INSERT OR REPLACE INTO job_lock (lock_key, job_name, period, fence, until) VALUES "
             "(?, ?, ?, ?, ?)",
             old.lock_key, old.key.job, old.key.period, old.fence,
             std::max(old.lease_until, now) + job->grace)
          .Run();
    }
  }
  RETURN_IF_ERROR(transaction.Commit());
  return burnt;
}

absl::Status SqliteStore::ReportDead(absl::Span<const Ticket> tickets) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "report_dead"));
  for (const Ticket& ticket : tickets) {
    std::string lock_key;
    {
      Statement lock = db_->Sql(
          "DELETE FROM job_lock WHERE job_name = ? AND period = ? AND fence = ? RETURNING "
          "lock_key",
          ticket.key.job, ticket.key.period, ticket.fence);
      while (lock.Next()) lock_key = lock.Text(0);
    }
    PeriodRow row;
    row.key = ticket.key;
    const bool slot = DropSlot(*db_, transaction.now(), ticket.key, ticket.fence);
    if (slot || !lock_key.empty()) Wake(*db_, transaction.now(), row, lock_key, false);
  }
  return transaction.Commit();
}

}  // namespace matins::sqlite
