// What people read of a store. Each is one snapshot, and never in doubt.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/schema.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::mariadb {

absl::StatusOr<std::vector<JobRow>> MariadbActs::ReadJobs(absl::string_view name) {
  // A finish writes nothing to the job's row; what the newest attempts say is read from them, what
  // older ones said was folded into the job when they went.
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({Sql(
          absl::StrCat(
              "SELECT j.name, j.version, j.definition, j.source, j.first_sight, j.floor, "
              "j.`cursor`, j.next_look, j.gap_from, j.suspended_at, j.suspended_by, "
              "j.suspended_why, j.revision, j.last_success, j.last_result, j.worst_duration, "
              "(SELECT MAX(r.finished_at) FROM job_run r WHERE r.job_name = j.name AND "
              "r.status = 'DONE'), "
              "(SELECT MAX(TIMESTAMPDIFF(MICROSECOND, r.claimed_at, r.finished_at)) FROM job_run r "
              "WHERE r.job_name = j.name AND r.status = 'DONE'), "
              "(SELECT CONCAT(r.status, IF(COALESCE(r.reason, '') = '', '', CONCAT('(', r.reason, "
              "')'))) FROM job_run r WHERE r.job_name = j.name ORDER BY r.finished_at DESC, "
              "r.fence DESC LIMIT 1) FROM job j WHERE NOT j.deleted",
              name.empty() ? "" : " AND j.name = ?", " ORDER BY j.name"),
          {name})}));
  const Rows& r = rows[0];
  std::vector<JobRow> jobs;
  for (int i = 0; i < r.size(); ++i) {
    JobRow job = ReadJobRow(r, i);
    job.last_success = std::max(r.Time(i, 13), r.Time(i, 16));
    job.last_result = r.IsNull(i, 18) ? r.Text(i, 14) : r.Text(i, 18);
    job.worst_duration = absl::Microseconds(std::max(r.Int(i, 15), r.Int(i, 17)));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<JobDefinition>> MariadbActs::ReadDefinitionsAfter(
    absl::string_view after, int limit) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({Sql(
                       "SELECT j.name, j.version, j.definition FROM job j WHERE NOT j.deleted AND "
                       "j.name > ? ORDER BY j.name LIMIT ?",
                       {std::string(after), int64_t{limit}})}));
  return ReadJobDefinitions(rows[0]);
}

absl::StatusOr<std::vector<PeriodRow>> MariadbActs::ReadRows(const RowFilter& filter) {
  std::vector<std::string> where = {"TRUE"};
  std::vector<Value> values;
  const auto add = [&](const char* condition, const Value& value) {
    where.push_back(condition);
    values.push_back(value);
  };
  if (!filter.job.empty()) add("r.job_name = ?", filter.job);
  if (filter.from) add("r.biz_date >= ?", Value::Day(*filter.from));
  if (filter.to) add("r.biz_date <= ?", Value::Day(*filter.to));
  if (filter.period) add("r.period = ?", *filter.period);
  if (filter.status) add("r.status = ?", Word(*filter.status));
  values.push_back(filter.limit);
  const absl::string_view way = filter.newest_first ? " DESC" : "";
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({Sql(
          // Rows of other programs, which have no due_at, come last of their day, or first.
          absl::StrCat("SELECT ", RowColumns(), " FROM job_watermark r WHERE ",
                       absl::StrJoin(where, " AND "), " ORDER BY r.biz_date", way,
                       ", r.due_at IS NULL", way, ", r.due_at", way, ", r.job_name", way,
                       ", r.period", way, " LIMIT ?"),
          values)}));
  std::vector<PeriodRow> out;
  for (int i = 0; i < rows[0].size(); ++i) out.push_back(ReadRow(rows[0], i));
  return out;
}

absl::StatusOr<std::vector<SkipSpan>> MariadbActs::ReadSpans(absl::string_view job) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql("SELECT from_at, to_at, first_period, last_period, count, reason, by_whom FROM "
               "job_span WHERE job = ? AND kind = 'skipped' ORDER BY from_at, id",
               {job})}));
  const Rows& r = rows[0];
  std::vector<SkipSpan> spans;
  for (int i = 0; i < r.size(); ++i) spans.push_back(ReadSpan(r, i));
  return spans;
}

namespace {

// Those that ended, and those that are running: two queries, each with its index.
Statement RunsOf(const RunFilter& filter) {
  const auto where = [&](absl::string_view table, std::vector<Value>& values) {
    std::string text = "TRUE";
    if (!filter.job.empty()) {
      absl::StrAppend(&text, " AND ", table, ".job_name = ?");
      values.push_back(filter.job);
    }
    if (filter.period) {
      absl::StrAppend(&text, " AND ", table, ".period = ?");
      values.push_back(*filter.period);
    }
    if (filter.fence) {
      absl::StrAppend(&text, " AND ", table, ".fence = ?");
      values.push_back(*filter.fence);
    }
    values.push_back(filter.limit);
    return text;
  };
  std::vector<Value> values;
  const std::string ended = where("r", values);
  const std::string running = where("w", values);
  values.push_back(filter.limit);
  return Sql(
      absl::StrCat(
          "SELECT q.*, COALESCE(o.bytes, 0) FROM ("
          "(SELECT r.job_name, r.period, r.generation, r.fence, r.attempt, r.node, r.status, "
          "r.reason, r.message, r.result, r.exit_code, r.`signal`, r.due_at, r.planned_at, "
          "r.dispatched_at, r.claimed_at, r.started_at, r.checkpointed_at, r.finished_at, "
          "r.backfill, r.manual FROM job_run r WHERE ",
          ended,
          " ORDER BY r.fence DESC LIMIT ?) UNION ALL "
          "(SELECT w.job_name, w.period, w.generation, w.fence, w.attempts, w.node, 'RUNNING', "
          "NULL, NULL, NULL, NULL, NULL, w.due_at, w.planned_at, w.dispatched_at, w.claimed_at, "
          "NULL, w.checkpointed_at, NULL, w.backfill, w.manual FROM job_watermark w WHERE "
          "w.status = 'RUNNING' AND w.fence > 0 AND ",
          running,
          " ORDER BY w.fence DESC LIMIT ?)) q LEFT JOIN job_output o ON o.fence = q.fence "
          "ORDER BY q.fence DESC LIMIT ?"),
      values);
}

}  // namespace

absl::StatusOr<std::vector<RunRow>> MariadbActs::ReadRuns(const RunFilter& filter) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Read({RunsOf(filter)}));
  return ReadRunRows(rows[0]);
}

absl::StatusOr<std::vector<EventRow>> MariadbActs::ReadEvents(absl::string_view job, int limit) {
  std::vector<Value> values;
  if (!job.empty()) values.push_back(job);
  values.push_back(limit);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql(absl::StrCat("SELECT id, at, kind, job, period, generation, who, why, detail FROM "
                            "job_event",
                            job.empty() ? "" : " WHERE job = ?", " ORDER BY id DESC LIMIT ?"),
               values)}));
  return ReadEventRows(rows[0]);
}

absl::StatusOr<std::vector<NodeRow>> MariadbActs::ReadNodes() {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql("SELECT n.name, n.started_at, n.seen_at, n.clock_offset, n.`left`, "
               "(SELECT COUNT(*) FROM job_watermark w WHERE w.status = 'RUNNING' AND "
               "w.node = n.name) FROM job_node n ORDER BY n.name"),
           Sql("SELECT n.name, l.label FROM job_node n, JSON_TABLE(n.labels, '$[*]' COLUMNS (nth "
               "FOR ORDINALITY, label VARCHAR(255) PATH '$')) AS l ORDER BY n.name, l.nth")}));
  const Rows& r = rows[0];
  std::vector<NodeRow> nodes;
  for (int i = 0; i < r.size(); ++i) {
    NodeRow node;
    node.name = r.Text(i, 0);
    node.started_at = r.Time(i, 1);
    node.seen_at = r.Time(i, 2);
    node.clock_offset = absl::Microseconds(r.Int(i, 3));
    node.left = r.Bool(i, 4);
    node.running = static_cast<int>(r.Int(i, 5));
    for (int k = 0; k < rows[1].size(); ++k) {
      if (rows[1].Text(k, 0) == node.name) node.labels.push_back(rows[1].Text(k, 1));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

absl::StatusOr<std::vector<LockRow>> MariadbActs::ReadLocks() {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({Sql(
          "SELECT COALESCE(lock_key, CONCAT('period/', job_name, '/', period)) AS k, job_name, "
          "period, fence, node, claimed_at, lease_until, 0 AS leftover, renewals FROM "
          "job_watermark "
          "WHERE status = 'RUNNING' AND lease_until > @NOW UNION ALL SELECT lock_key, "
          "job_name, period, fence, '', NULL, until, 1, NULL FROM job_lock WHERE until > @NOW "
          "ORDER BY k, leftover")}));
  return ReadLockRows(rows[0]);
}

absl::StatusOr<OutputRow> MariadbActs::ReadOutput(int64_t fence) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql("SELECT head, tail, bytes FROM job_output WHERE fence = ?", {fence}),
           Sql("SELECT EXISTS (SELECT 1 FROM job_watermark WHERE status = 'RUNNING' AND "
               "fence = ?), EXISTS (SELECT 1 FROM job_run WHERE fence = ?)",
               {fence, fence})}));
  const bool kept = rows[0].size() > 0, running = rows[1].Bool(0, 0);
  if (!kept && !running && !rows[1].Bool(0, 1)) {
    return absl::NotFoundError(absl::StrCat("no run ", fence,
                                            ", or its history is gone; `matins runs` shows what is "
                                            "there"));
  }
  if (!kept) return OutputRow{"", "", 0, running};
  return OutputRow{rows[0].Text(0, 0), rows[0].Text(0, 1), rows[0].Int(0, 2), running};
}

absl::StatusOr<StoreStatus> MariadbActs::ReadStatus() {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql("SELECT VERSION(), @NOW"), Sql("SELECT name, value FROM matins_meta"),
           Sql("SELECT (SELECT COUNT(*) FROM job WHERE NOT deleted), "
               "(SELECT COUNT(*) FROM job_watermark WHERE status = 'PLANNED'), "
               "(SELECT COUNT(*) FROM job_watermark WHERE status = 'RUNNING'), "
               "(SELECT COUNT(*) FROM job_watermark WHERE status = 'FAILED' AND NOT held), "
               "(SELECT COUNT(*) FROM job_watermark WHERE status = 'FAILED' AND held)")}));
  StoreStatus status;
  status.kind = "mariadb";
  status.version = rows[0].Text(0, 0);
  status.now = rows[0].Time(0, 1);
  for (int i = 0; i < rows[1].size(); ++i) {
    const std::string name = rows[1].Text(i, 0);
    if (name == "schema") status.schema = static_cast<int>(rows[1].Int(i, 1));
    if (name == "epoch") status.epoch = rows[1].Int(i, 1);
    if (name == "clock_frozen_why") status.frozen_why = rows[1].Text(i, 1);
    if (name == "journal") status.journal = rows[1].Text(i, 1);
  }
  status.frozen = !status.frozen_why.empty();
  const Rows& r = rows[2];
  status.jobs = r.Int(0, 0);
  status.planned = r.Int(0, 1);
  status.running = r.Int(0, 2);
  status.failed = r.Int(0, 3);
  status.held = r.Int(0, 4);
  ASSIGN_OR_RETURN(status.warnings, ServerWarnings(session_));
  return status;
}

}  // namespace matins::mariadb
