// What the audit reads of a SQLite store, and its own rows.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

void ReadVersions(Connection& db, absl::string_view job, AuditFacts& facts) {
  Statement q = db.Sql(
      "SELECT v.job, v.version, v.from_at, v.definition FROM job_version v JOIN job j ON j.name = "
      "v.job WHERE NOT j.deleted AND (?1 = '' OR v.job = ?1) ORDER BY v.job, v.version",
      job);
  while (q.Next()) {
    facts.versions[q.Text(0)].push_back({static_cast<int>(q.Int(1)), q.Time(2, kPast), q.Text(3)});
  }
}

void ReadSpansOf(Connection& db, absl::string_view job, AuditFacts& facts) {
  Statement q = db.Sql(
      "SELECT job, kind, from_at, to_at, first_period, last_period, count, reason, by_whom, why "
      "FROM job_span WHERE ?1 = '' OR job = ?1 ORDER BY job, from_at, id",
      job);
  while (q.Next()) {
    if (q.Text(1) == "suspended") {
      facts.suspended[q.Text(0)].push_back(
          {q.Time(2, kPast), q.Time(3, absl::InfiniteFuture()), q.Text(8), q.Text(9)});
    } else {
      facts.spans[q.Text(0)].push_back({q.Time(2, kPast), q.Time(3, kPast), q.Text(4), q.Text(5),
                                        q.Int(6), q.Text(7), q.Text(8)});
    }
  }
}

void ReadLocksAndDoubles(Connection& db, absl::string_view job, AuditFacts& facts) {
  {
    Statement q = db.Sql(
        "SELECT lock_key, job_name, period, fence, until FROM job_lock WHERE ?1 = '' OR job_name = "
        "?1 ORDER BY lock_key",
        job);
    while (q.Next()) {
      facts.locks.push_back({q.Text(0), {q.Text(1), q.Text(2)}, q.Int(3), q.Time(4, kPast)});
    }
  }
  Statement q = db.Sql(
      "SELECT job_name, period, generation, count(*) FROM job_run WHERE status = 'DONE' AND (?1 = "
      "'' OR job_name = ?1) GROUP BY job_name, period, generation HAVING count(*) > 1 ORDER BY 1, "
      "2, 3",
      job);
  while (q.Next()) {
    facts.doubles.push_back(
        {{q.Text(0), q.Text(1)}, static_cast<int>(q.Int(2)), static_cast<int>(q.Int(3))});
  }
}

}  // namespace

absl::StatusOr<AuditFacts> SqliteActs::ReadAuditFacts(absl::string_view job) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  AuditFacts facts;
  facts.now = snapshot.now();
  {
    Statement newest = db_->Sql("SELECT max(id) FROM job_event");
    if (newest.Next()) facts.last_event = newest.Int(0);
  }
  ReadVersions(*db_, job, facts);
  ReadSpansOf(*db_, job, facts);
  ReadLocksAndDoubles(*db_, job, facts);
  RETURN_IF_ERROR(db_->status());
  return facts;
}

absl::StatusOr<int64_t> SqliteActs::BeginAudit(absl::string_view beat, absl::Time due,
                                               absl::string_view by) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "begin_audit"));
  const absl::Time now = transaction.now();
  db_->Sql(
         "INSERT INTO job_audit (beat, due_at, by_whom, started_at) VALUES (?, ?, '', 0) ON "
         "CONFLICT (beat, due_at) DO NOTHING",
         beat, due)
      .Run();
  int64_t id = 0;
  {
    Statement row = db_->Sql(
        "SELECT id FROM job_audit WHERE beat = ? AND due_at = ? AND finished_at IS NULL AND "
        "started_at <= ?",
        beat, due, now - kAuditGone);
    if (row.Next()) id = row.Int(0);
  }
  if (id != 0) {
    db_->Sql("UPDATE job_audit SET by_whom = ?, started_at = ? WHERE id = ?", by, now, id).Run();
  }
  RETURN_IF_ERROR(transaction.Commit());
  return id;
}

absl::Status SqliteActs::EndAudit(const AuditRow& row) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "end_audit"));
  const int written =
      db_->Sql(
             "UPDATE job_audit SET finished_at = ?, expected = ?, done = ?, findings = ?, alarms = "
             "?, canary = ?, detail = ? WHERE id = ? AND by_whom = ? AND finished_at IS NULL",
             transaction.now(), row.expected, row.done, row.findings, row.alarms, row.canary,
             row.detail, row.id, row.by)
          .Run();
  RETURN_IF_ERROR(db_->status());
  if (written == 0) {
    return absl::NotFoundError(
        absl::StrCat("audit ", row.id, " was taken over by another; its result is not written"));
  }
  db_->Sql("DELETE FROM job_audit WHERE due_at < ?", transaction.now() - kAuditKept).Run();
  return transaction.Commit();
}

absl::StatusOr<std::vector<AuditRow>> SqliteActs::ReadAudits(absl::string_view beat, int limit) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<AuditRow> audits;
  Statement q = db_->Sql(
      "SELECT id, beat, due_at, by_whom, started_at, finished_at, expected, done, findings, "
      "alarms, canary, detail FROM job_audit WHERE ?1 = '' OR beat = ?1 ORDER BY due_at DESC, id "
      "DESC LIMIT ?2",
      beat, limit);
  while (q.Next()) {
    audits.push_back({q.Int(0), q.Text(1), q.Time(2, kPast), q.Text(3), q.Time(4, kPast),
                      q.Time(5, kPast), q.Int(6), q.Int(7), q.Int(8), q.Int(9), q.Bool(10),
                      q.Text(11)});
  }
  RETURN_IF_ERROR(db_->status());
  return audits;
}

}  // namespace matins::sqlite
