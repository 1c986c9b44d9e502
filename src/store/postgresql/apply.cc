// Definitions: applied by digest, in one transaction. A version is in force from its moment on.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/status.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/postgresql/acts.h"
#include "store/rules.h"
#include "store/server_rows.h"
#include "store/set_aside.h"

namespace matins::postgresql {
namespace {

std::optional<std::string> OptionalInt(const std::optional<int>& value) {
  if (!value) return std::nullopt;
  return absl::StrCat(*value);
}

// A job that comes back after its deletion is a new one: its first sight is now.
constexpr char kUpsertJob[] = R"(
  insert into @.job as j (name, id, version, source, digest, definition, first_sight, next_look,
    strict, overlap, lock_scope, lock_ttl, timeout, grace, job_limit, max_parallel, labels,
    priority, recovery, max_lost, stale_after, commit_by, history_succeeded, history_failed,
    keep_for)
  values ($1, $2, $3::int, $4, $5, $6, @NOW, timestamptz 'epoch', $7::boolean, $8, $9, $10::interval,
    $11::interval, $12::interval, $13::int, $14::int, $15::jsonb, $16::int, $17, $18::int,
    $19::interval, $20, $21::int, $22::int, $23::interval)
  on conflict (name) do update set version = excluded.version, source = excluded.source,
    digest = excluded.digest, definition = excluded.definition, strict = excluded.strict,
    overlap = excluded.overlap, lock_scope = excluded.lock_scope, lock_ttl = excluded.lock_ttl,
    timeout = excluded.timeout, grace = excluded.grace, job_limit = excluded.job_limit,
    max_parallel = excluded.max_parallel, labels = excluded.labels, priority = excluded.priority,
    recovery = excluded.recovery, max_lost = excluded.max_lost, stale_after = excluded.stale_after,
    commit_by = excluded.commit_by, history_succeeded = excluded.history_succeeded,
    history_failed = excluded.history_failed, keep_for = excluded.keep_for,
    next_look = excluded.next_look, revision = j.revision + 1, deleted = false,
    id = case when j.deleted then excluded.id else j.id end,
    first_sight = case when j.deleted then excluded.first_sight else j.first_sight end,
    cursor = case when j.deleted then null else j.cursor end,
    gap_from = case when j.deleted then null else j.gap_from end,
    floor = case when j.deleted then null else j.floor end,
    suspended_at = case when j.deleted then null else j.suspended_at end,
    suspended_by = case when j.deleted then null else j.suspended_by end,
    suspended_why = case when j.deleted then null else j.suspended_why end)";

// Nothing: rows stay for ever.
std::optional<std::string> KeepParam(const Job& job) {
  const absl::Duration keep = KeepFor(job);
  if (keep == absl::InfiniteDuration()) return std::nullopt;
  return IntervalText(keep);
}

Statement UpsertJob(const Session& session, const ApplyRequest& request, const ApplyStep& step) {
  const Definition& d = *step.definition;
  const Job& job = d.job;
  SystemRandom random;
  return session.Of(kUpsertJob, {UsableText(job.name),
                                 random.Hex128(),
                                 absl::StrCat(step.version),
                                 UsableText(request.source),
                                 UsableText(request.digest),
                                 UsableText(d.json),
                                 job.backfill.order == Order::kStrict ? "true" : "false",
                                 std::string(Word(job.overlap)),
                                 std::string(Word(job.lock.scope)),
                                 IntervalText(job.lock.ttl),
                                 IntervalText(job.timeout),
                                 IntervalText(job.grace),
                                 OptionalInt(job.limit),
                                 OptionalInt(job.backfill.max_parallel),
                                 JsonStrings(job.nodes),
                                 absl::StrCat(job.priority),
                                 std::string(Word(job.recovery)),
                                 absl::StrCat(job.max_lost),
                                 IntervalText(job.stale_after),
                                 std::string(Word(job.commit)),
                                 absl::StrCat(job.history_succeeded),
                                 absl::StrCat(job.history_failed),
                                 KeepParam(job)});
}

class Applied {
 public:
  Applied(const Session& session, const ApplyRequest& request)
      : session_(session), request_(request) {}

  void Add(const ApplyStep& step) {
    switch (step.kind) {
      case ApplyStep::Kind::kKeep:
        writes.push_back(session_.Of(
            "update @.job set source = $2, digest = $3 where name = $1 and (source <> $2 or "
            "digest is distinct from $3)",
            {UsableText(step.job), UsableText(request_.source), UsableText(request_.digest)}));
        return;
      case ApplyStep::Kind::kPrune:
        Append(writes, DeleteJob(session_, step.job, request_.act));
        return;
      case ApplyStep::Kind::kChange:
        Append(writes, WithdrawRows(session_, step.job));
        break;
      case ApplyStep::Kind::kAdd:
        break;
    }
    if (step.comes_back) {
      // What ran on when its job was deleted, and waits since.
      writes.push_back(session_.Of(absl::StrCat(SkipForDeletedText(), "select count(*) from s"),
                                   {UsableText(step.job), UsableText(request_.act.who)}));
    }
    writes.push_back(UpsertJob(session_, request_, step));
    AddVersion(step);
    if (step.suspend) {
      Append(writes, SuspendJob(session_, step.job,
                                {kByFile, absl::StrCat("suspend: true in ", request_.source)}));
    } else if (step.resume) {
      Append(writes, ResumeJob(session_, step.job, true,
                               {kByFile, absl::StrCat("suspend: false in ", request_.source)}));
    }
    writes.push_back(EventOf(session_, "applied", step.job, "", request_.act,
                             absl::StrCat("{\"version\":", step.version,
                                          ",\"source\":", JsonString(request_.source), "}")));
  }

  std::vector<Statement> writes;

 private:
  // A job's first version judges all that was due before.
  void AddVersion(const ApplyStep& step) {
    const Definition& d = *step.definition;
    const bool first = step.kind == ApplyStep::Kind::kAdd;
    const std::string name = UsableText(d.job.name);
    if (first) {
      writes.push_back(session_.Of("delete from @.job_version where job = $1", {name}));
      writes.push_back(
          session_.Of("update @.job_watermark set look_at = not_before, waits_for = null where "
                      "job_name = $1 and status = 'PLANNED'",
                      {name}));
    } else {
      // Other labels may do now.
      writes.push_back(
          session_.Of(absl::StrCat("update @.job_watermark set look_at = not_before, waits_for = "
                                   "null where job_name = $1 and status = 'PLANNED' and waits_for "
                                   ">= '",
                                   kAside, "'"),
                      {name}));
    }
    writes.push_back(session_.Of(
        absl::StrCat("insert into @.job_version (job, version, from_at, definition, digest, "
                     "applied_by, source) values ($1, $2::int, ",
                     first ? "null" : "@NOW", ", $3, $4, $5, $6)"),
        {name, absl::StrCat(step.version), UsableText(d.json), UsableText(request_.digest),
         UsableText(request_.act.who), UsableText(request_.source)}));
    writes.push_back(session_.Of("delete from @.job_after where job = $1", {name}));
    for (const After& after : d.job.after) {
      writes.push_back(session_.Of(
          "insert into @.job_after (job, after_job) values ($1, $2) on conflict do nothing",
          {name, UsableText(after.job)}));
    }
  }

  const Session& session_;
  const ApplyRequest& request_;
};

}  // namespace

absl::StatusOr<ApplyAnswer> PostgresActs::Apply(const ApplyRequest& request) {
  std::vector<std::string> names;
  for (const Definition& d : request.jobs) names.push_back(d.job.name);
  const std::vector<Statement> locks = {
      session_.Of("select value from @.matins_meta where key = 'apply' for update"),
      session_.Of("select current from @.job_source where source = $1 and digest = $2",
                  {UsableText(request.source), UsableText(request.digest)}),
      session_.Of("select name, version, definition, source, deleted, suspended_at is not null, "
                  "suspended_by from @.job where source = $1 or name in (select "
                  "json_array_elements_text($2::json)) order by name for no key update",
                  {UsableText(request.source), JsonStrings(names)})};
  const auto once = [&]() -> absl::StatusOr<ApplyAnswer> {
    Connection& connection = session_.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.Begin(locks));
    const bool superseded = rows[1].size() > 0 && !rows[1].Bool(0, 0) && !request.digest.empty();
    if (superseded && !request.force) {
      connection.Rollback();
      return RefuseSupersededFile(request.source);
    }
    const std::map<std::string, KnownJob> known = ReadKnownJobs(rows[2]);
    if (absl::Status others = RefuseJobsOfOthers(request.source, JobsOfOthers(request, known));
        !others.ok()) {
      connection.Rollback();
      return others;
    }
    ApplyAnswer answer;
    Applied applied(session_, request);
    for (const ApplyStep& step : StepsOf(request, known, answer)) {
      applied.Add(step);
    }
    if (!request.digest.empty()) {
      applied.writes.push_back(
          session_.Of("update @.job_source set current = false where source = $1",
                      {UsableText(request.source)}));
      applied.writes.push_back(session_.Of(
          "insert into @.job_source (source, digest, applied_at, current) values ($1, $2, @NOW, "
          "true) on conflict (source, digest) do update set applied_at = excluded.applied_at, "
          "current = true",
          {UsableText(request.source), UsableText(request.digest)}));
    }
    if (absl::Status fault = Reach("apply.before_commit"); !fault.ok()) {
      connection.Rollback();
      return fault;
    }
    RETURN_IF_ERROR(connection.Commit(applied.writes).status());
    MATINS_FAULT_POINT("apply.after_commit");  // crash here: applied; again it changes nothing
    return answer;
  };
  auto answer = session_.Retried(once);
  if (answer.ok()) session_.Notify();
  return answer;
}

}  // namespace matins::postgresql
