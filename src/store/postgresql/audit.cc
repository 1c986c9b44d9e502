// What the audit reads of a PostgreSQL store, and its own rows.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/postgresql/acts.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {

absl::StatusOr<AuditFacts> PostgresActs::ReadAuditFacts(absl::string_view job) {
  const std::vector<Parameter> params = {UsableText(job)};
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {session_.Of("select @NOW, (select max(id) from @.job_event)"),
           session_.Of("select v.job, v.version, v.from_at, v.definition from @.job_version v join "
                       "@.job j on j.name = v.job where not j.deleted and ($1 = '' or v.job = $1) "
                       "order by v.job, v.version",
                       params),
           session_.Of("select job, from_at, to_at, by_whom, why from @.job_span where kind = "
                       "'suspended' and ($1 = '' or job = $1) order by job, from_at, id",
                       params),
           session_.Of("select job, from_at, to_at, first_period, last_period, count, reason, "
                       "by_whom from @.job_span where kind = 'skipped' and ($1 = '' or job = $1) "
                       "order by job, from_at, id",
                       params),
           session_.Of("select lock_key, job_name, period, fence, until from @.job_lock where "
                       "$1 = '' or job_name = $1 order by lock_key",
                       params),
           session_.Of("select job_name, period, generation, count(*) from @.job_run where status "
                       "= 'DONE' and ($1 = '' or job_name = $1) group by job_name, period, "
                       "generation having count(*) > 1 order by 1, 2, 3",
                       params)}));
  return ReadFacts(rows);
}

absl::StatusOr<int64_t> PostgresActs::BeginAudit(absl::string_view beat, absl::Time due,
                                                 absl::string_view by) {
  const std::vector<Parameter> key = {UsableText(beat), TimeParam(due)};
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {session_.Of("insert into @.job_audit (beat, due_at, by_whom, started_at) values ($1, "
                         "$2::timestamptz, '', timestamptz 'epoch') on conflict (beat, due_at) do "
                         "nothing",
                         key),
             session_.Of("select id, finished_at is null, started_at from @.job_audit where beat = "
                         "$1 and due_at = $2::timestamptz for update",
                         key),
             session_.Of("select @NOW")}));
    const absl::Time now = rows[2].Time(0, 0);
    if (rows[1].size() == 0 || !rows[1].Bool(0, 1) || now - rows[1].Time(0, 2) < kAuditGone) {
      session_.connection.Rollback();
      return 0;
    }
    RETURN_IF_ERROR(session_.connection
                        .Commit({session_.Of(
                            "update @.job_audit set by_whom = $2, started_at = "
                            "$3::timestamptz where id = $1::bigint",
                            {absl::StrCat(rows[1].Int(0, 0)), UsableText(by), TimeParam(now)})})
                        .status());
    return rows[1].Int(0, 0);
  };
  return session_.Retried(once);
}

absl::Status PostgresActs::EndAudit(const AuditRow& row) {
  const auto once = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Write(
            {session_.Of(
                 "update @.job_audit set finished_at = @NOW, expected = $3::bigint, done = "
                 "$4::bigint, findings = $5::bigint, alarms = $6::bigint, canary = "
                 "$7::boolean, detail = $8 where id = $1::bigint and by_whom = $2 and "
                 "finished_at is null returning id",
                 {absl::StrCat(row.id), UsableText(row.by), absl::StrCat(row.expected),
                  absl::StrCat(row.done), absl::StrCat(row.findings), absl::StrCat(row.alarms),
                  row.canary ? "true" : "false", UsableText(row.detail)}),
             session_.Of("delete from @.job_audit where due_at < @NOW - $1::interval",
                         {IntervalText(kAuditKept)})}));
    return rows[0].size() > 0;
  };
  ASSIGN_OR_RETURN(const bool written, session_.Retried(once));
  if (written) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("audit ", row.id, " was taken over by another; its result is not written"));
}

absl::StatusOr<std::vector<AuditRow>> PostgresActs::ReadAudits(absl::string_view beat, int limit) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          "select id, beat, due_at, by_whom, started_at, finished_at, expected, done, findings, "
          "alarms, canary, detail from @.job_audit where $1 = '' or beat = $1 order by due_at "
          "desc, id desc limit $2::bigint",
          {UsableText(beat), absl::StrCat(limit)})}));
  return ReadAuditRows(rows[0]);
}

}  // namespace matins::postgresql
