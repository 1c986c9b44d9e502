// What the audit reads of a MariaDB store, and its own rows.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/sql.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::mariadb {

absl::StatusOr<AuditFacts> MariadbActs::ReadAuditFacts(absl::string_view job) {
  std::vector<Value> values;
  if (!job.empty()) values.push_back(job);
  const auto of = [&](absl::string_view column) {
    return job.empty() ? std::string() : absl::StrCat(" AND ", column, " = ?");
  };
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql("SELECT @NOW, (SELECT MAX(id) FROM job_event)"),
           Sql(absl::StrCat("SELECT v.job, v.version, v.from_at, v.definition FROM job_version v "
                            "JOIN job j ON j.name = v.job WHERE NOT j.deleted",
                            of("v.job"), " ORDER BY v.job, v.version"),
               values),
           Sql(absl::StrCat("SELECT job, from_at, to_at, by_whom, why FROM job_span WHERE kind = "
                            "'suspended'",
                            of("job"), " ORDER BY job, from_at, id"),
               values),
           Sql(absl::StrCat("SELECT job, from_at, to_at, first_period, last_period, count, reason, "
                            "by_whom FROM job_span WHERE kind = 'skipped'",
                            of("job"), " ORDER BY job, from_at, id"),
               values),
           Sql(absl::StrCat("SELECT lock_key, job_name, period, fence, until FROM job_lock WHERE "
                            "TRUE",
                            of("job_name"), " ORDER BY lock_key"),
               values),
           Sql(absl::StrCat("SELECT job_name, period, generation, COUNT(*) FROM job_run WHERE "
                            "status = 'DONE'",
                            of("job_name"),
                            " GROUP BY job_name, period, generation HAVING COUNT(*) > 1 ORDER BY "
                            "job_name, period, generation"),
               values)}));
  return ReadFacts(rows);
}

absl::StatusOr<int64_t> MariadbActs::BeginAudit(absl::string_view beat, absl::Time due,
                                                absl::string_view by) {
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {Sql("INSERT INTO job_audit (beat, due_at, by_whom, started_at) VALUES (?, ?, '', "
                 "TIMESTAMP'1970-01-01 00:00:00') ON DUPLICATE KEY UPDATE beat = VALUES(beat)",
                 {beat, due}),
             Sql("SELECT id, finished_at IS NULL, started_at FROM job_audit WHERE beat = ? AND "
                 "due_at = ? FOR UPDATE",
                 {beat, due}),
             Sql("SELECT @NOW")}));
    const absl::Time now = rows[2].Time(0, 0);
    if (rows[1].size() == 0 || !rows[1].Bool(0, 1) || now - rows[1].Time(0, 2) < kAuditGone) {
      session_.connection.Rollback();
      return 0;
    }
    RETURN_IF_ERROR(
        session_.connection
            .Commit({Sql("UPDATE job_audit SET by_whom = ?, started_at = ? WHERE id = ?",
                         {by, now, rows[1].Int(0, 0)})})
            .status());
    return rows[1].Int(0, 0);
  };
  return session_.Retried(once);
}

absl::Status MariadbActs::EndAudit(const AuditRow& row) {
  const auto once = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin({Sql("SELECT id FROM job_audit WHERE id = ? AND by_whom = ? AND "
                                       "finished_at IS NULL FOR UPDATE",
                                       {row.id, row.by}),
                                   Sql("SELECT @NOW")}));
    if (rows[0].size() == 0) {
      session_.connection.Rollback();
      return false;
    }
    const absl::Time now = rows[1].Time(0, 0);
    RETURN_IF_ERROR(
        session_.connection
            .Commit({Sql("UPDATE job_audit SET finished_at = ?, expected = ?, done = ?, findings "
                         "= ?, alarms = ?, canary = ?, detail = ? WHERE id = ?",
                         {now, row.expected, row.done, row.findings, row.alarms, row.canary,
                          row.detail, row.id}),
                     Sql("DELETE FROM job_audit WHERE due_at < ?", {now - kAuditKept})})
            .status());
    return true;
  };
  ASSIGN_OR_RETURN(const bool written, session_.Retried(once));
  if (written) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("audit ", row.id, " was taken over by another; its result is not written"));
}

absl::StatusOr<std::vector<AuditRow>> MariadbActs::ReadAudits(absl::string_view beat, int limit) {
  std::vector<Value> values;
  if (!beat.empty()) values.push_back(beat);
  values.push_back(limit);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql(absl::StrCat(
                   "SELECT id, beat, due_at, by_whom, started_at, finished_at, expected, done, "
                   "findings, alarms, canary, detail FROM job_audit",
                   beat.empty() ? "" : " WHERE beat = ?", " ORDER BY due_at DESC, id DESC LIMIT ?"),
               values)}));
  return ReadAuditRows(rows[0]);
}

}  // namespace matins::mariadb
