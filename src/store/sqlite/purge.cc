#include <algorithm>

#include "base/status.h"
#include "store/purged.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

struct Keep {
  std::string job;
  int succeeded = 0;
  int failed = 0;
};

// All that is due at or below the floor is settled: it moves over DONE and SKIPPED alone, not past
// what is planned, and never nearer than the job's keep_for.
void MoveFloors(Connection& db, absl::Time now) {
  db.Sql(
        "UPDATE job SET floor = new_floor FROM (SELECT name AS of_job, min(?1 - keep_for, cursor, "
        "coalesce(gap_from - 1, 9223372036854775807), coalesce((SELECT min(due_at) - 1 FROM "
        "job_watermark WHERE job_name = job.name AND status IN ('PLANNED', 'FAILED')), "
        "9223372036854775807), coalesce((SELECT min(due_at) - 1 FROM job_watermark WHERE "
        "job_name = job.name AND status = 'RUNNING'), 9223372036854775807)) AS new_floor FROM job "
        "WHERE NOT deleted AND keep_for IS NOT NULL "
        "AND cursor IS NOT NULL) WHERE name = of_job AND new_floor > coalesce(floor, "
        "-9223372036854775807) AND EXISTS (SELECT 1 FROM job_watermark WHERE job_name = of_job "
        "AND status IN ('DONE', 'SKIPPED') AND due_at <= new_floor)",
        now)
      .Run();
}

int64_t DropRows(Connection& db, const std::string& job, int64_t limit) {
  for (const char* sql :
       {"DELETE FROM job_checkpoint WHERE job_name = ?1 AND period IN (SELECT period FROM "
        "job_watermark WHERE job_name = ?1 AND status IN ('DONE', 'SKIPPED') AND due_at <= (SELECT "
        "floor FROM job WHERE name = ?1) "
        "ORDER BY due_at LIMIT ?2)",
        "DELETE FROM job_journal WHERE job_name = ?1 AND period IN (SELECT period FROM "
        "job_watermark WHERE job_name = ?1 AND status IN ('DONE', 'SKIPPED') AND due_at <= (SELECT "
        "floor FROM job WHERE name = ?1) "
        "ORDER BY due_at LIMIT ?2)"}) {
    db.Sql(sql, job, limit).Run();
  }
  return db
      .Sql(
          "DELETE FROM job_watermark WHERE rowid IN (SELECT rowid FROM job_watermark WHERE "
          "job_name = ?1 AND status IN ('DONE', 'SKIPPED') AND due_at <= (SELECT floor FROM job "
          "WHERE name = ?1) ORDER BY due_at "
          "LIMIT ?2)",
          job, limit)
      .Run();
}

// Attempts of periods that are still open stay, whatever `history:` says. From the newest on, so
// that what is looked at is what a job keeps and what goes, however much there is behind it.
int64_t DropRuns(Connection& db, const Keep& keep, int64_t limit) {
  std::vector<int64_t> fences;
  int64_t succeeded = 0, failed = 0;
  {
    Statement rows = db.Sql(
        "SELECT fence, status = 'DONE' FROM job_run r WHERE job_name = ?1 AND NOT "
        "EXISTS (SELECT 1 FROM job_watermark w WHERE w.job_name = r.job_name AND w.period = "
        "r.period AND w.status IN ('PLANNED', 'RUNNING', 'FAILED')) ORDER BY finished_at DESC, "
        "fence DESC",
        keep.job);
    while (static_cast<int64_t>(fences.size()) < limit && rows.Next()) {
      const bool kept = rows.Bool(1) ? ++succeeded <= keep.succeeded : ++failed <= keep.failed;
      if (!kept) fences.push_back(rows.Int(0));
    }
  }
  for (int64_t fence : fences) {
    db.Sql("DELETE FROM job_run WHERE fence = ?", fence).Run();
    db.Sql("DELETE FROM job_output WHERE fence = ?", fence).Run();
  }
  return static_cast<int64_t>(fences.size());
}

// Jobs of which something may go. Read beside the writers: there may be a hundred thousand.
std::vector<Keep> JobsToPurge(Connection& db) {
  std::vector<Keep> keeps;
  Statement jobs = db.Sql(
      // Few of them are counted: whoever keeps more is looked at when it has many.
      "SELECT name, history_succeeded, history_failed FROM job j WHERE (SELECT count(*) FROM "
      "(SELECT 1 FROM job_run WHERE job_name = j.name LIMIT 64)) > max(0, min(j.history_succeeded, "
      "j.history_failed, 63)) OR EXISTS (SELECT 1 FROM job_watermark WHERE job_name = j.name AND "
      "status IN ('DONE', 'SKIPPED') AND due_at <= j.floor) ORDER BY name");
  while (jobs.Next()) {
    keeps.push_back({jobs.Text(0), static_cast<int>(jobs.Int(1)), static_cast<int>(jobs.Int(2))});
  }
  return keeps;
}

// Spans that the floor has passed.
int64_t DropSpans(Connection& db, int64_t limit) {
  return db
      .Sql(
          "DELETE FROM job_span WHERE id IN (SELECT s.id FROM job_span s JOIN job j ON j.name = "
          "s.job WHERE s.kind = 'skipped' AND s.to_at <= j.floor ORDER BY s.id LIMIT ?)",
          limit)
      .Run();
}

// Checkpoints that no attempt can be handed any more.
int64_t DropCheckpoints(Connection& db, int64_t limit) {
  return db
      .Sql(
          "DELETE FROM job_checkpoint WHERE rowid IN (SELECT k.rowid FROM job_checkpoint k LEFT "
          "JOIN job_watermark r ON r.job_name = k.job_name AND r.period = k.period AND "
          "r.generation = k.generation WHERE r.job_name IS NULL OR r.status IN ('DONE', "
          "'SKIPPED') LIMIT ?)",
          limit)
      .Run();
}

}  // namespace

absl::StatusOr<int64_t> SqliteStore::Purge(int limit) {
  PurgedUpTo here;
  {
    ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
    Statement last = db_->Sql(
        "SELECT (SELECT max(fence) FROM job_run), (SELECT max(id) FROM job_event), (SELECT 1 FROM "
        "job_lock WHERE until <= ?)",
        snapshot.now());
    const bool lock = last.Next() && !last.Null(2);
    here = {last.Int(0), last.Int(1), snapshot.now()};
    RETURN_IF_ERROR(db_->status());
    if (!lock && NothingToPurge(purged_, here)) return 0;
    purged_.reset();
  }
  {
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "purge"));
    MoveFloors(*db_, transaction.now());
    db_->Sql("DELETE FROM job_lock WHERE until <= ?", transaction.now()).Run();
    db_->Sql("DELETE FROM job_slot WHERE until <= ?", transaction.now()).Run();
    // What was planned before there were tenants has the first turn.
    db_->Sql(
           "UPDATE job_watermark SET start_tag = 1 WHERE status = 'PLANNED' AND start_tag = 0 AND "
           "EXISTS (SELECT 1 FROM job_watermark WHERE status = 'PLANNED' AND start_tag > 0)")
        .Run();
    db_->Sql("DELETE FROM job_node WHERE seen_at < ?", transaction.now() - absl::Hours(24 * 7))
        .Run();
    RETURN_IF_ERROR(transaction.Commit());
  }
  std::vector<Keep> keeps;
  {
    ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
    keeps = JobsToPurge(*db_);
    RETURN_IF_ERROR(db_->status());
  }
  int64_t gone = 0;
  for (const Keep& keep : keeps) {
    if (gone >= limit) break;
    // One short transaction a job, so that nobody waits for a purge.
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "purge"));
    int64_t here = DropRows(*db_, keep.job, limit - gone);
    here += DropRuns(*db_, keep, limit - gone - here);
    RETURN_IF_ERROR(transaction.Commit());
    gone += here;
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "purge"));
  gone += DropSpans(*db_, std::max<int64_t>(0, limit - gone));
  gone += DropCheckpoints(*db_, std::max<int64_t>(0, limit - gone));
  RETURN_IF_ERROR(transaction.Commit());
  if (gone < limit) purged_ = here;
  return gone;
}

}  // namespace matins::sqlite
