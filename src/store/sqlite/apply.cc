#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/rules.h"
#include "store/set_aside.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

std::optional<KnownJob> FindJob(Connection& db, const std::string& name) {
  Statement row = db.Sql(
      "SELECT version, definition, source, deleted, suspended_at IS NOT NULL, suspended_by FROM "
      "job WHERE name = ?",
      name);
  if (!row.Next()) return std::nullopt;
  return KnownJob{static_cast<int>(row.Int(0)),
                  row.Text(1),
                  row.Text(2),
                  row.Bool(3),
                  row.Bool(4),
                  row.Text(5)};
}

absl::Status RefuseSuperseded(Connection& db, const ApplyRequest& request) {
  if (request.force || request.digest.empty()) return absl::OkStatus();
  Statement row = db.Sql("SELECT 1 FROM job_source WHERE source = ? AND digest = ? AND NOT current",
                         request.source, request.digest);
  if (!row.Next()) return absl::OkStatus();
  return RefuseSupersededFile(request.source);
}

void RememberSource(Connection& db, absl::Time now, const ApplyRequest& request) {
  if (request.digest.empty()) return;
  db.Sql("UPDATE job_source SET current = 0 WHERE source = ?", request.source).Run();
  db.Sql(
        "INSERT OR REPLACE INTO job_source (source, digest, applied_at, current) VALUES (?, ?, ?, "
        "1)",
        request.source, request.digest, now)
      .Run();
}

// What START and Purge need of a definition, as columns.
void WriteColumns(Connection& db, const Job& job) {
  db.Sql(
        "UPDATE job SET strict = ?, overlap = ?, lock_scope = ?, lock_ttl = ?, timeout = ?, "
        "grace = ?, job_limit = ?, max_parallel = ?, labels = ?, priority = ?, recovery = ?, "
        "max_lost = ?, stale_after = ?, commit_by = ?, history_succeeded = ?, history_failed = ?, "
        "keep_for = ? WHERE name = ?",
        job.backfill.order == Order::kStrict, Word(job.overlap), Word(job.lock.scope), job.lock.ttl,
        job.timeout, job.grace, job.limit, job.backfill.max_parallel, JsonArray(job.nodes),
        job.priority, Word(job.recovery), job.max_lost, job.stale_after, Word(job.commit),
        job.history_succeeded, job.history_failed, KeepFor(job), job.name)
      .Run();
  db.Sql("DELETE FROM job_after WHERE job = ?", job.name).Run();
  for (const After& after : job.after) {
    db.Sql("INSERT OR IGNORE INTO job_after (job, after_job) VALUES (?, ?)", job.name, after.job)
        .Run();
  }
}

void WriteVersion(Connection& db, const Definition& definition, int number, absl::Time from,
                  const ApplyRequest& request) {
  db.Sql(
        "INSERT OR REPLACE INTO job_version (job, version, from_at, definition, digest, "
        "applied_by, source) VALUES (?, ?, ?, ?, ?, ?, ?)",
        definition.job.name, number, from, definition.json, request.digest, request.act.who,
        request.source)
      .Run();
}

// A name's first definition, or one that was deleted and comes back: a new identity with its own
// first sight. Its first version judges all that was due before.
void AddJob(Connection& db, absl::Time now, const Definition& definition, int number,
            const ApplyRequest& request) {
  const std::string& name = definition.job.name;
  SystemRandom random;
  // Above the old one's, so that no plan that was made for that is taken for this.
  int64_t revision = 0;
  {
    Statement before = db.Sql("SELECT revision FROM job WHERE name = ?", name);
    if (before.Next()) revision = before.Int(0);
  }
  // What ran on when its job was deleted, and waits since.
  if (revision > 0) SkipForDeleted(db, now, name, request.act.who);
  db.Sql("DELETE FROM job WHERE name = ?", name).Run();
  db.Sql("DELETE FROM job_version WHERE job = ?", name).Run();
  db.Sql(
        "INSERT INTO job (name, id, version, source, digest, definition, first_sight, next_look, "
        "overlap, lock_scope, lock_ttl, timeout, grace, recovery, max_lost, stale_after, "
        "commit_by, history_succeeded, history_failed, revision) VALUES (?, ?, ?, ?, ?, ?, ?, 0, "
        "'', "
        "'', 0, 0, 0, '', 0, 0, '', 0, 0, ?)",
        name, random.Hex128(), number, request.source, request.digest, definition.json, now,
        revision + 1)
      .Run();
  WriteColumns(db, definition.job);
  WriteVersion(db, definition, number, absl::InfinitePast(), request);
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? AND "
        "status = 'PLANNED'",
        name)
      .Run();
}

void ChangeJob(Connection& db, absl::Time now, const Definition& definition, int number,
               const ApplyRequest& request) {
  const std::string& name = definition.job.name;
  Withdraw(db, now, name);
  TakeBackHeld(db, name);
  db.Sql(
        "UPDATE job SET version = ?1, source = ?2, digest = ?3, definition = ?4, next_look = 0, "
        "cursor = min(cursor, ?5), revision = revision + 1 WHERE name = ?6",
        number, request.source, request.digest, definition.json, JustBefore(now), name)
      .Run();
  WriteColumns(db, definition.job);
  WriteVersion(db, definition, number, now, request);
  // Other labels may do now.
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? AND "
        "status = 'PLANNED' AND waits_for >= ?",
        name, kAside)
      .Run();
}

void FollowSuspend(Connection& db, absl::Time now, const Job& job,
                   const std::optional<KnownJob>& was, const ApplyRequest& request) {
  const bool suspended = was && !was->deleted && was->suspended;
  if (job.suspend && !suspended) {
    SuspendJob(db, now, job.name, {kByFile, absl::StrCat("suspend: true in ", request.source)});
  }
  if (!job.suspend && suspended && was->suspended_by == kByFile) {
    ResumeJob(db, now, job.name, true,
              {kByFile, absl::StrCat("suspend: false in ", request.source)});
  }
}

std::map<std::string, std::string> OthersJobs(Connection& db, const ApplyRequest& request) {
  std::map<std::string, KnownJob> known;
  if (request.take_over) return {};
  for (const Definition& d : request.jobs) {
    if (std::optional<KnownJob> job = FindJob(db, d.job.name)) known[d.job.name] = *std::move(job);
  }
  return JobsOfOthers(request, known);
}

void ApplyOne(Connection& db, absl::Time now, const Definition& definition,
              const ApplyRequest& request, ApplyAnswer* answer) {
  const std::string& name = definition.job.name;
  const std::optional<KnownJob> known = FindJob(db, name);
  const bool added = !known || known->deleted;
  const int number = known ? known->version + 1 : 1;
  if (added) {
    AddJob(db, now, definition, number, request);
    answer->added.push_back(name);
  } else if (known->definition != definition.json) {
    ChangeJob(db, now, definition, number, request);
    answer->changed.push_back(name);
  } else {
    db.Sql("UPDATE job SET source = ?, digest = ? WHERE name = ?", request.source, request.digest,
           name)
        .Run();
    answer->unchanged.push_back(name);
    return;
  }
  FollowSuspend(db, now, definition.job, known, request);
  WriteEvent(db, now,
             {.kind = "applied",
              .job = name,
              .who = request.act.who,
              .why = request.act.why,
              .detail = absl::StrCat("{\"version\":", number,
                                     ",\"source\":", JsonString(request.source), "}")});
}

}  // namespace

absl::StatusOr<ApplyAnswer> SqliteActs::Apply(const ApplyRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "apply"));
  const absl::Time now = transaction.now();
  RETURN_IF_ERROR(RefuseSuperseded(*db_, request));
  RETURN_IF_ERROR(RefuseJobsOfOthers(request.source, OthersJobs(*db_, request)));
  ApplyAnswer answer;
  std::set<std::string> named;
  for (const Definition& definition : request.jobs) {
    named.insert(definition.job.name);
    ApplyOne(*db_, now, definition, request, &answer);
  }
  std::vector<std::string> gone;
  {
    Statement rows = db_->Sql("SELECT name FROM job WHERE source = ? AND NOT deleted ORDER BY name",
                              request.source);
    while (rows.Next()) {
      if (!named.contains(rows.Text(0))) gone.push_back(rows.Text(0));
    }
  }
  if (request.prune) {
    for (const std::string& name : gone) {
      RETURN_IF_ERROR(DeleteJob(*db_, now, name, /*force=*/true, request.act));
    }
    answer.pruned = std::move(gone);
  } else {
    answer.missing = std::move(gone);
  }
  RememberSource(*db_, now, request);
  RETURN_IF_ERROR(transaction.Commit());
  return answer;
}

}  // namespace matins::sqlite
