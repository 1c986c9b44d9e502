// Definitions: applied by digest, in one transaction. A version is in force from its moment on.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/status.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"
#include "store/server_rows.h"
#include "store/set_aside.h"

namespace matins::mariadb {
namespace {

// A job that comes back after its deletion is a new one: its first sight is now. Columns are
// assigned from left to right, so `deleted` goes last.
constexpr absl::string_view kUpsertJob =
    "INSERT INTO job (name, id, version, source, digest, definition, first_sight, next_look, "
    "strict, overlap, lock_scope, lock_ttl, timeout, grace, job_limit, max_parallel, labels, "
    "priority, recovery, max_lost, stale_after, commit_by, history_succeeded, history_failed, "
    "keep_for) VALUES ? ON DUPLICATE KEY UPDATE version = VALUES(version), "
    "source = VALUES(source), digest = VALUES(digest), definition = VALUES(definition), "
    "strict = VALUES(strict), overlap = VALUES(overlap), lock_scope = VALUES(lock_scope), "
    "lock_ttl = VALUES(lock_ttl), timeout = VALUES(timeout), grace = VALUES(grace), "
    "job_limit = VALUES(job_limit), max_parallel = VALUES(max_parallel), "
    "labels = VALUES(labels), priority = VALUES(priority), recovery = VALUES(recovery), "
    "max_lost = VALUES(max_lost), stale_after = VALUES(stale_after), "
    "commit_by = VALUES(commit_by), history_succeeded = VALUES(history_succeeded), "
    "history_failed = VALUES(history_failed), keep_for = VALUES(keep_for), "
    "next_look = VALUES(next_look), revision = revision + 1, "
    "id = IF(deleted, VALUES(id), id), "
    "first_sight = IF(deleted, VALUES(first_sight), first_sight), "
    "`cursor` = IF(deleted, NULL, `cursor`), gap_from = IF(deleted, NULL, gap_from), "
    "floor = IF(deleted, NULL, floor), suspended_at = IF(deleted, NULL, suspended_at), "
    "suspended_by = IF(deleted, NULL, suspended_by), "
    "suspended_why = IF(deleted, NULL, suspended_why), deleted = FALSE";

Statement UpsertJob(const ApplyRequest& request, const ApplyStep& step, absl::Time now) {
  const Job& job = step.definition->job;
  SystemRandom random;
  Tuples row;
  row.Add({job.name,
           random.Hex128(),
           step.version,
           request.source,
           request.digest,
           step.definition->json,
           now,
           absl::UnixEpoch(),
           job.backfill.order == Order::kStrict,
           Word(job.overlap),
           Word(job.lock.scope),
           job.lock.ttl,
           job.timeout,
           job.grace,
           job.limit,
           job.backfill.max_parallel,
           JsonStrings(job.nodes),
           job.priority,
           Word(job.recovery),
           job.max_lost,
           job.stale_after,
           Word(job.commit),
           job.history_succeeded,
           job.history_failed,
           KeepFor(job)});
  return Sql(kUpsertJob, {row.Take()});
}

class Applied {
 public:
  Applied(const ApplyRequest& request, absl::Time now) : request_(request), now_(now) {}

  void Add(const ApplyStep& step) {
    switch (step.kind) {
      case ApplyStep::Kind::kKeep:
        writes.push_back(
            Sql("UPDATE job SET source = ?, digest = ? WHERE name = ? AND (source <> ? OR "
                "NOT digest <=> ?)",
                {request_.source, request_.digest, step.job, request_.source, request_.digest}));
        return;
      case ApplyStep::Kind::kPrune:
        Append(writes, DeleteJob(step.job, request_.act, now_));
        return;
      case ApplyStep::Kind::kChange:
        Append(writes, WithdrawRows(step.job, now_));
        break;
      case ApplyStep::Kind::kAdd:
        break;
    }
    // What ran on when its job was deleted, and waits since.
    if (step.comes_back) Append(writes, SkipForDeleted(step.job, request_.act));
    writes.push_back(UpsertJob(request_, step, now_));
    AddVersion(step);
    if (step.suspend) {
      Append(writes,
             SuspendJob(step.job, {kByFile, absl::StrCat("suspend: true in ", request_.source)},
                        now_));
    } else if (step.resume) {
      Append(writes,
             ResumeJob(step.job, true,
                       {kByFile, absl::StrCat("suspend: false in ", request_.source)}, now_));
    }
    writes.push_back(EventOf("applied", step.job, "", request_.act, now_,
                             absl::StrCat("{\"version\":", step.version,
                                          ",\"source\":", JsonString(request_.source), "}")));
  }

  void RememberSource() {
    if (request_.digest.empty()) return;
    writes.push_back(
        Sql("UPDATE job_source SET `current` = FALSE WHERE source = ?", {request_.source}));
    writes.push_back(
        Sql("INSERT INTO job_source (source, digest, applied_at, `current`) VALUES (?, ?, ?, TRUE) "
            "ON DUPLICATE KEY UPDATE applied_at = VALUES(applied_at), `current` = TRUE",
            {request_.source, request_.digest, now_}));
  }

  std::vector<Statement> writes;

 private:
  // A job's first version judges all that was due before.
  void AddVersion(const ApplyStep& step) {
    const bool first = step.kind == ApplyStep::Kind::kAdd;
    if (first) {
      writes.push_back(Sql("DELETE FROM job_version WHERE job = ?", {step.job}));
      writes.push_back(
          Sql("UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? "
              "AND status = 'PLANNED'",
              {step.job}));
    } else {
      // Other labels may do now.
      writes.push_back(
          Sql("UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? "
              "AND status = 'PLANNED' AND waits_for >= ?",
              {step.job, kAside}));
    }
    writes.push_back(
        Sql("INSERT INTO job_version (job, version, from_at, definition, digest, applied_by, "
            "source) VALUES (?, ?, ?, ?, ?, ?, ?)",
            {step.job, step.version, first ? absl::InfinitePast() : now_, step.definition->json,
             request_.digest, request_.act.who, request_.source}));
    writes.push_back(Sql("DELETE FROM job_after WHERE job = ?", {step.job}));
    for (const After& after : step.definition->job.after) {
      writes.push_back(
          Sql("INSERT INTO job_after (job, after_job) VALUES (?, ?) ON DUPLICATE KEY "
              "UPDATE job = VALUES(job)",
              {step.job, after.job}));
    }
  }

  const ApplyRequest& request_;
  const absl::Time now_;
};

// The jobs of this source, and all that it names, locked in the order of their names.
std::vector<Statement> LockForApply(const ApplyRequest& request) {
  JsonRows names;
  for (const Definition& d : request.jobs) names.Row().Add("job", d.job.name);
  const Value table = JsonTable(names.Take(), "job name");
  return {Sql("SELECT value FROM matins_meta WHERE name = 'apply' FOR UPDATE"),
          Sql("SELECT `current` FROM job_source WHERE source = ? AND digest = ?",
              {request.source, request.digest}),
          Sql("SELECT j.name, j.version, j.definition, j.source, j.deleted, "
              "j.suspended_at IS NOT NULL, j.suspended_by FROM (SELECT b.name FROM job b WHERE "
              "b.source = ? UNION SELECT x.job FROM ? ORDER BY name) k STRAIGHT_JOIN job j FORCE "
              "INDEX (PRIMARY) ON "
              "j.name = k.name FOR UPDATE",
              {request.source, table}),
          ReadClock()};
}

}  // namespace

absl::StatusOr<ApplyAnswer> MariadbActs::Apply(const ApplyRequest& request) {
  const std::vector<Statement> locks = LockForApply(request);
  const auto once = [&]() -> absl::StatusOr<ApplyAnswer> {
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Begin(locks));
    const bool superseded = rows[1].size() > 0 && !rows[1].Bool(0, 0) && !request.digest.empty();
    if (superseded && !request.force) {
      session_.connection.Rollback();
      return RefuseSupersededFile(request.source);
    }
    const std::map<std::string, KnownJob> known = ReadKnownJobs(rows[2]);
    if (absl::Status others = RefuseJobsOfOthers(request.source, JobsOfOthers(request, known));
        !others.ok()) {
      session_.connection.Rollback();
      return others;
    }
    ApplyAnswer answer;
    Applied applied(request, ClockOf(rows[3]).now);
    for (const ApplyStep& step : StepsOf(request, known, answer)) applied.Add(step);
    applied.RememberSource();
    RETURN_IF_ERROR(CommitAt(session_, "apply.before_commit", applied.writes).status());
    MATINS_FAULT_POINT("apply.after_commit");  // crash here: applied; again it changes nothing
    return answer;
  };
  return session_.Retried(once);
}

}  // namespace matins::mariadb
