// Floors rise over what is settled, and history goes, in small batches: what may go is read first,
// and asked again behind its lock.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/store.h"
#include "store/rules.h"

namespace matins::mariadb {
namespace {

// The floor is the last due instant, old enough, below which all is DONE or SKIPPED; a row that was
// deleted (gap_from) is not settled.
constexpr absl::string_view kFloors =
    "SELECT f.name, f.bound FROM (SELECT j.name, j.floor, LEAST(j.`cursor`, "
    "CAST(@matins_now AS DATETIME(6)) - INTERVAL j.keep_for MICROSECOND, "
    "COALESCE((SELECT MIN(o.due_at) - INTERVAL 1 MICROSECOND FROM job_watermark o FORCE INDEX "
    "(job_watermark_open) WHERE "
    "o.job_name = j.name AND o.status IN ('PLANNED', 'RUNNING', 'FAILED')), j.`cursor`), "
    "COALESCE(j.gap_from - INTERVAL 1 MICROSECOND, j.`cursor`)) AS bound FROM job j WHERE "
    "j.`cursor` IS NOT NULL AND j.keep_for IS NOT NULL AND NOT j.deleted) f "
    "WHERE f.floor IS NULL OR f.bound > f.floor ORDER BY f.name";

constexpr absl::string_view kMoveFloors =
    "UPDATE ? @JOBS SET j.floor = x.bound WHERE "
    "NOT EXISTS (SELECT 1 FROM job_watermark o FORCE INDEX (job_watermark_open) WHERE o.job_name = "
    "j.name AND "
    "o.due_at <= x.bound AND o.status IN ('PLANNED', 'RUNNING', 'FAILED')) AND "
    "(j.gap_from IS NULL OR j.gap_from > x.bound) AND "
    "EXISTS (SELECT 1 FROM job_watermark o FORCE INDEX (job_watermark_open) WHERE o.job_name = "
    "j.name AND o.due_at <= x.bound)";

// Beyond `history:` of its kind, attempts of open periods aside.
constexpr absl::string_view kOldRuns =
    "SELECT q.fence, q.job_name, q.status, q.reason, q.claimed_at, q.finished_at FROM ("
    "SELECT r.fence, r.job_name, r.status, r.reason, r.claimed_at, r.finished_at, "
    "ROW_NUMBER() OVER (PARTITION BY r.job_name, r.status = 'DONE' ORDER BY r.finished_at DESC, "
    "r.fence DESC) AS nth, IF(r.status = 'DONE', j.history_succeeded, j.history_failed) AS keep "
    "FROM job_run r JOIN job j ON j.name = r.job_name WHERE NOT EXISTS (SELECT 1 FROM "
    "job_watermark w WHERE w.job_name = r.job_name AND w.period = r.period AND w.status IN "
    "('PLANNED', 'RUNNING', 'FAILED'))) q WHERE q.nth > GREATEST(q.keep, 0) "
    "ORDER BY q.job_name, q.fence LIMIT ?";

constexpr absl::string_view kOldCheckpoints =
    "SELECT k.job_name, k.period, k.generation FROM job_checkpoint k LEFT JOIN job_watermark r ON "
    "r.job_name = k.job_name AND r.period = k.period AND r.generation = k.generation WHERE "
    "r.job_name IS NULL OR r.status IN ('DONE', 'SKIPPED') LIMIT ?";

absl::Status MoveFloors(Session& session) {
  const auto once = [&]() -> absl::StatusOr<bool> {
    Connection& c = session.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> look,
                     c.Begin({Sql("SET @matins_now = @NOW"), Sql(kFloors)}));
    JsonRows jobs;
    std::map<std::string, absl::Time> bounds;
    for (int i = 0; i < look[1].size(); ++i) {
      bounds[look[1].Text(i, 0)] = look[1].Time(i, 1);
      jobs.Row().Add("job", look[1].Text(i, 0));
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> locked,
                     c.More({Sql("SELECT j.name FROM ? @JOBS FOR "
                                 "UPDATE SKIP LOCKED",
                                 {JsonTable(jobs.Take(), "job name")})}));
    JsonRows moved;
    for (int i = 0; i < locked[0].size(); ++i) {
      const std::string job = locked[0].Text(i, 0);
      moved.Row().Add("job", job).AddTime("bound", bounds[job]);
    }
    RETURN_IF_ERROR(
        c.Commit({Sql(kMoveFloors, {JsonTable(moved.Take(), "job name, bound time")})}).status());
    return true;
  };
  return session.Retried(once).status();
}

// The trigger lets rows at or below the floor go without opening them again.
absl::StatusOr<int64_t> DropRows(Session& session, int limit) {
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    Connection& c = session.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> look,
                     c.Begin({Sql("SELECT r.job_name, r.period FROM job j STRAIGHT_JOIN "
                                  "job_watermark r FORCE INDEX (job_watermark_open) ON "
                                  "r.job_name = j.name AND r.status IN ('DONE', 'SKIPPED') AND "
                                  "r.due_at <= j.floor WHERE j.floor IS NOT NULL LIMIT ?",
                                  {limit})}));
    std::vector<PeriodKey> keys;
    for (int i = 0; i < look[0].size(); ++i)
      keys.push_back({look[0].Text(i, 0), look[0].Text(i, 1)});
    ASSIGN_OR_RETURN(const std::vector<Rows> locked,
                     c.More({LockRows(session, KeysInOrder(keys), Locking::kSkip)}));
    JsonRows gone;
    for (int i = 0; i < locked[0].size(); ++i) {
      const AttemptRow row = ReadRow(locked[0], i);
      if (row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped) {
        gone.Row().AddKey(row.key);
      }
    }
    const Value table = KeyTable(gone.Take());
    std::vector<Statement> writes;
    for (const char* name : {"job_checkpoint", "job_journal", "job_watermark"}) {
      writes.push_back(Sql(absl::StrCat("DELETE k FROM ? STRAIGHT_JOIN ", name,
                                        " k ON k.job_name = x.job AND k.period = x.period"),
                           {table}));
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> done, c.Commit(writes));
    return done[2].affected();
  };
  return session.Retried(once);
}

// What a job's history says for ever is folded into the job before its attempts go.
std::vector<Statement> FoldRuns(const Rows& runs) {
  struct Folded {
    absl::Time success = absl::InfinitePast(), newest = absl::InfinitePast();
    absl::Duration worst;
    std::string result;
  };
  std::map<std::string, Folded> jobs;
  for (int i = 0; i < runs.size(); ++i) {
    Folded& job = jobs[runs.Text(i, 1)];
    const absl::Time finished = runs.Time(i, 5);
    if (runs.Text(i, 2) == "DONE") {
      job.success = std::max(job.success, finished);
      job.worst = std::max(job.worst, finished - runs.Time(i, 4, finished));
    }
    if (finished >= job.newest) {
      job.newest = finished;
      job.result = ResultText(runs.Text(i, 2), runs.Text(i, 3));
    }
  }
  std::vector<Statement> out;
  for (const auto& [name, job] : jobs) {
    out.push_back(
        Sql("UPDATE job j SET j.last_success = GREATEST(COALESCE(j.last_success, ?), "
            "COALESCE(?, j.last_success)), j.worst_duration = GREATEST(COALESCE("
            "j.worst_duration, 0), ?), j.last_result = IF(EXISTS (SELECT 1 FROM job_run n WHERE "
            "n.job_name = j.name AND n.finished_at > ?), j.last_result, ?) WHERE j.name = ?",
            {job.success, job.success, job.worst, job.newest, job.result, name}));
  }
  return out;
}

absl::StatusOr<int64_t> DropRuns(Session& session, int limit) {
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    Connection& c = session.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> look, c.Begin({Sql(kOldRuns, {limit})}));
    JsonRows fences;
    for (int i = 0; i < look[0].size(); ++i) fences.Row().AddInt("fence", look[0].Int(i, 0));
    if (fences.empty()) {
      c.Rollback();
      return 0;
    }
    std::vector<Statement> writes = FoldRuns(look[0]);
    const Value table = JsonTable(fences.Take(), "fence int");
    writes.push_back(
        Sql("DELETE k FROM ? STRAIGHT_JOIN job_output k ON k.fence = x.fence", {table}));
    writes.push_back(Sql("DELETE k FROM ? STRAIGHT_JOIN job_run k ON k.fence = x.fence", {table}));
    ASSIGN_OR_RETURN(const std::vector<Rows> done, c.Commit(writes));
    return done.back().affected();
  };
  return session.Retried(once);
}

absl::StatusOr<int64_t> DropCheckpoints(Session& session, int limit) {
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    Connection& c = session.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> look, c.Begin({Sql(kOldCheckpoints, {limit})}));
    JsonRows old;
    for (int i = 0; i < look[0].size(); ++i) {
      old.Row().AddKey({look[0].Text(i, 0), look[0].Text(i, 1)});
      old.AddInt("gen", look[0].Int(i, 2));
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> done,
                     c.Commit({Sql("DELETE k FROM ? STRAIGHT_JOIN job_checkpoint k ON "
                                   "k.job_name = x.job AND k.period = x.period AND "
                                   "k.generation = x.gen",
                                   {JsonTable(old.Take(), "job name, period name, gen int")})}));
    return done[0].affected();
  };
  return session.Retried(once);
}

absl::StatusOr<int64_t> Drop(Session& session, const std::vector<Statement>& statements) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session.Retried([&] { return session.connection.Write(statements); }));
  return rows.back().affected();
}

}  // namespace

absl::StatusOr<int64_t> MariadbStore::Purge(int limit) {
  const int most = std::max(limit, 1);
  // A transaction each: none of them holds its locks for the others' sake.
  RETURN_IF_ERROR(MoveFloors(session_));
  MATINS_FAULT_POINT("purge.after_commit");  // crash here: the next call goes on from there
  ASSIGN_OR_RETURN(const int64_t rows, DropRows(session_, most));
  const Statement spans = Sql(
      "DELETE FROM job_span WHERE kind = 'skipped' AND to_at <= (SELECT j.floor FROM job j WHERE "
      "j.name = job_span.job) LIMIT ?",
      {most});
  ASSIGN_OR_RETURN(const int64_t gone, Drop(session_, {spans}));
  ASSIGN_OR_RETURN(const int64_t runs, DropRuns(session_, most));
  ASSIGN_OR_RETURN(const int64_t checkpoints, DropCheckpoints(session_, most));
  const Statement now = Sql("SET @matins_now = @NOW");
  RETURN_IF_ERROR(Drop(session_, {now, Sql("DELETE FROM job_node WHERE seen_at < CAST(@matins_now "
                                           "AS DATETIME(6)) - INTERVAL 7 DAY")})
                      .status());
  // What was planned before there were tenants has the first turn.
  RETURN_IF_ERROR(Drop(session_, {Sql("SET @matins_turns = EXISTS (SELECT 1 FROM job_watermark "
                                      "WHERE turn > 0)"),
                                  Sql("UPDATE job_watermark SET start_tag = 1 WHERE "
                                      "@matins_turns AND status = 'PLANNED' AND start_tag = 0")})
                      .status());
  RETURN_IF_ERROR(Drop(session_, {now, Sql("DELETE FROM job_slot WHERE until <= CAST(@matins_now "
                                           "AS DATETIME(6))")})
                      .status());
  RETURN_IF_ERROR(Drop(session_, {now, Sql("DELETE FROM job_lock WHERE until <= CAST(@matins_now "
                                           "AS DATETIME(6))")})
                      .status());
  return rows + gone + runs + checkpoints;
}

}  // namespace matins::mariadb
