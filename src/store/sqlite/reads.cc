#include <sqlite3.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/rules.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

RunRow EndedRow(const Statement& q) {
  RunRow run;
  int i = 0;
  run.key.job = q.Text(i++);
  run.key.period = q.Text(i++);
  run.generation = static_cast<int>(q.Int(i++));
  run.fence = q.Int(i++);
  run.attempt = static_cast<int>(q.Int(i++));
  run.node = q.Text(i++);
  run.status = q.Text(i++);
  run.reason = q.Text(i++);
  run.message = q.Text(i++);
  run.result = q.Text(i++);
  run.exit_code = q.OptionalInt(i++);
  run.signal = q.OptionalInt(i++);
  for (absl::Time* t : {&run.due, &run.planned_at, &run.dispatched_at, &run.claimed_at,
                        &run.started_at, &run.checkpointed_at, &run.finished_at}) {
    *t = q.Time(i++, kPast);
  }
  run.backfill = q.Bool(i++);
  run.manual = q.Bool(i++);
  run.output_bytes = q.Int(i++);
  return run;
}

int64_t Count(Connection& db, absl::string_view sql) {
  Statement row = db.Sql(sql);
  return row.Next() ? row.Int(0) : 0;
}

std::string TextOf(Connection& db, absl::string_view sql) {
  Statement row = db.Sql(sql);
  return row.Next() ? row.Text(0) : std::string();
}

}  // namespace

absl::StatusOr<std::vector<JobRow>> SqliteActs::ReadJobs(absl::string_view name) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<JobRow> jobs;
  Statement q = db_->Sql(
      "SELECT name, version, definition, source, first_sight, floor, cursor, next_look, gap_from, "
      "suspended_at, suspended_by, suspended_why, revision, last_success, last_result, "
      "worst_duration FROM job WHERE NOT deleted AND (?1 = '' OR name = ?1) ORDER BY name",
      name);
  while (q.Next()) {
    JobRow job;
    job.name = q.Text(0);
    job.version = static_cast<int>(q.Int(1));
    job.definition = q.Text(2);
    job.source = q.Text(3);
    job.first_sight = q.Time(4, kPast);
    job.floor = q.Time(5, kPast);
    job.cursor = q.Time(6, kPast);
    job.next_look = q.Time(7, absl::InfiniteFuture());
    if (!q.Null(8)) job.gap_from = q.Time(8, kPast);
    if (!q.Null(9)) {
      job.suspension = Suspension{q.Time(9, kPast), absl::InfiniteFuture(), q.Text(10), q.Text(11)};
    }
    job.revision = q.Int(12);
    job.last_success = q.Time(13, kPast);
    job.last_result = q.Text(14);
    job.worst_duration = q.Micros(15);
    jobs.push_back(std::move(job));
  }
  RETURN_IF_ERROR(db_->status());
  return jobs;
}

absl::StatusOr<std::vector<JobDefinition>> SqliteActs::ReadDefinitionsAfter(absl::string_view after,
                                                                            int limit) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<JobDefinition> jobs;
  Statement q = db_->Sql(
      "SELECT name, version, definition FROM job WHERE NOT deleted AND name > ? ORDER BY name "
      "LIMIT ?",
      after, int64_t{limit});
  while (q.Next()) jobs.push_back({q.Text(0), static_cast<int>(q.Int(1)), q.Text(2)});
  RETURN_IF_ERROR(db_->status());
  return jobs;
}

absl::StatusOr<std::vector<PeriodRow>> SqliteActs::ReadRows(const RowFilter& filter) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<PeriodRow> rows;
  std::string sql = absl::StrCat("SELECT ", kRowColumns, " FROM job_watermark WHERE 1");
  std::vector<std::string> values;
  const auto add = [&](const char* condition, std::string value) {
    absl::StrAppend(&sql, " AND ", condition);
    values.push_back(std::move(value));
  };
  if (!filter.job.empty()) add("job_name = ?", filter.job);
  if (filter.period) add("period = ?", *filter.period);
  if (filter.from) add("biz_date >= ?", FormatDay(*filter.from));
  if (filter.to) add("biz_date <= ?", FormatDay(*filter.to));
  if (filter.status) add("status = ?", std::string(Word(*filter.status)));
  const char* way = filter.newest_first ? " DESC" : "";
  absl::StrAppend(&sql, " ORDER BY biz_date", way, ", due_at", way, ", job_name", way, ", period",
                  way, " LIMIT ?");
  Statement q = db_->Sql(sql);
  for (const std::string& value : values) q.Bind(value);
  q.Bind(filter.limit);
  while (q.Next()) rows.push_back(ReadRow(q));
  RETURN_IF_ERROR(db_->status());
  return rows;
}

absl::StatusOr<std::vector<SkipSpan>> SqliteActs::ReadSpans(absl::string_view job) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<SkipSpan> spans;
  Statement q = db_->Sql(
      "SELECT from_at, to_at, first_period, last_period, count, reason, by_whom FROM job_span "
      "WHERE job = ? AND kind = 'skipped' ORDER BY from_at, id",
      job);
  while (q.Next()) {
    spans.push_back(
        {q.Time(0, kPast), q.Time(1, kPast), q.Text(2), q.Text(3), q.Int(4), q.Text(5), q.Text(6)});
  }
  RETURN_IF_ERROR(db_->status());
  return spans;
}

absl::StatusOr<std::vector<RunRow>> SqliteActs::ReadRuns(const RunFilter& filter) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  static const std::string kRunning = absl::StrCat(
      "SELECT ", kRowColumns,
      " FROM job_watermark WHERE status = 'RUNNING' AND fence > 0 AND (?1 = '' OR job_name = ?1) "
      "AND (?2 IS NULL OR period = ?2) AND (?3 IS NULL OR fence = ?3)");
  constexpr absl::string_view kEnded =
      "SELECT job_name, period, generation, job_run.fence, attempt, node, status, reason, message, "
      "result, exit_code, signal, due_at, planned_at, dispatched_at, claimed_at, started_at, "
      "checkpointed_at, finished_at, backfill, manual, coalesce(o.bytes, 0) FROM job_run LEFT JOIN "
      "job_output o ON o.fence = job_run.fence WHERE (?1 = '' OR job_name = ?1) AND (?2 IS NULL OR "
      "period = ?2) AND (?3 IS NULL OR job_run.fence = ?3) ORDER BY job_run.fence DESC LIMIT ?4";
  std::vector<RunRow> runs;
  {
    Statement q = db_->Sql(kRunning, filter.job, filter.period, filter.fence);
    while (q.Next()) runs.push_back(RunOf(ReadRow(q)));
  }
  Statement q = db_->Sql(kEnded, filter.job, filter.period, filter.fence, filter.limit);
  while (q.Next()) runs.push_back(EndedRow(q));
  RETURN_IF_ERROR(db_->status());
  std::sort(runs.begin(), runs.end(),
            [](const RunRow& a, const RunRow& b) { return a.fence > b.fence; });
  if (runs.size() > static_cast<size_t>(filter.limit)) runs.resize(filter.limit);
  return runs;
}

absl::StatusOr<std::vector<EventRow>> SqliteActs::ReadEvents(absl::string_view job, int limit) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<EventRow> events;
  Statement q = db_->Sql(
      "SELECT id, at, kind, job, period, generation, who, why, detail FROM job_event WHERE (?1 = "
      "'' OR job = ?1) ORDER BY id DESC LIMIT ?2",
      job, limit);
  while (q.Next()) {
    EventRow event;
    event.id = q.Int(0);
    event.at = q.Time(1, kPast);
    event.kind = q.Text(2);
    event.job = q.Text(3);
    event.period = q.Text(4);
    event.generation = static_cast<int>(q.Int(5));
    event.who = q.Text(6);
    event.why = q.Text(7);
    event.detail = q.Text(8);
    events.push_back(std::move(event));
  }
  RETURN_IF_ERROR(db_->status());
  return events;
}

absl::StatusOr<std::vector<NodeRow>> SqliteActs::ReadNodes() {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<NodeRow> nodes;
  std::vector<std::string> labels;
  {
    Statement q = db_->Sql(
        "SELECT name, labels, started_at, seen_at, clock_offset, left, (SELECT count(*) FROM "
        "job_watermark WHERE status = 'RUNNING' AND node = name) FROM job_node ORDER BY name");
    while (q.Next()) {
      NodeRow node;
      node.name = q.Text(0);
      labels.push_back(q.Text(1));
      node.started_at = q.Time(2, kPast);
      node.seen_at = q.Time(3, kPast);
      node.clock_offset = q.Micros(4);
      node.left = q.Bool(5);
      node.running = static_cast<int>(q.Int(6));
      nodes.push_back(std::move(node));
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].labels = ReadLabels(*db_, labels[i]);
  RETURN_IF_ERROR(db_->status());
  return nodes;
}

absl::StatusOr<std::vector<LockRow>> SqliteActs::ReadLocks() {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<LockRow> locks;
  Statement q = db_->Sql(
      "SELECT coalesce(lock_key, 'period/' || job_name || '/' || period), job_name, period, fence, "
      "node, claimed_at, lease_until, 0, renewals FROM job_watermark WHERE status = 'RUNNING' AND "
      "lease_until > ?1 UNION ALL SELECT lock_key, job_name, period, fence, '', NULL, until, 1, "
      "NULL FROM job_lock WHERE until > ?1 ORDER BY 1, 8",
      snapshot.now());
  while (q.Next()) {
    LockRow lock;
    lock.key = q.Text(0);
    lock.run = {q.Text(1), q.Text(2)};
    lock.fence = q.Int(3);
    lock.node = q.Text(4);
    lock.since = q.Time(5, kPast);
    lock.until = q.Time(6, absl::InfiniteFuture());
    lock.leftover = q.Bool(7);
    lock.renewals = q.Int(8);
    locks.push_back(std::move(lock));
  }
  RETURN_IF_ERROR(db_->status());
  return locks;
}

absl::StatusOr<OutputRow> SqliteActs::ReadOutput(int64_t fence) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  OutputRow output;
  output.running =
      db_->Sql("SELECT 1 FROM job_watermark WHERE status = 'RUNNING' AND fence = ?", fence).Next();
  bool found = output.running;
  {
    Statement q = db_->Sql("SELECT head, tail, bytes FROM job_output WHERE fence = ?", fence);
    if (q.Next()) {
      output.head = q.Text(0);
      output.tail = q.Text(1);
      output.bytes = q.Int(2);
      found = true;
    }
  }
  found = found || db_->Sql("SELECT 1 FROM job_run WHERE fence = ?", fence).Next();
  RETURN_IF_ERROR(db_->status());
  if (!found)
    return absl::NotFoundError(absl::StrCat("no run ", fence, "; `matins runs` shows them"));
  return output;
}

absl::StatusOr<StoreStatus> SqliteActs::ReadStatus() {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  StoreStatus status;
  status.kind = "sqlite";
  status.version = sqlite3_libversion();
  status.schema =
      static_cast<int>(Count(*db_, "SELECT value FROM matins_meta WHERE key = 'schema'"));
  status.now = snapshot.now();
  status.epoch = snapshot.epoch();
  status.frozen = snapshot.frozen();
  status.frozen_why = TextOf(*db_, "SELECT value FROM matins_meta WHERE key = 'clock_frozen_why'");
  status.journal = TextOf(*db_, "SELECT value FROM matins_meta WHERE key = 'journal'");
  status.jobs = Count(*db_, "SELECT count(*) FROM job WHERE NOT deleted");
  status.planned = Count(*db_, "SELECT count(*) FROM job_watermark WHERE status = 'PLANNED'");
  status.running = Count(*db_, "SELECT count(*) FROM job_watermark WHERE status = 'RUNNING'");
  status.failed = Count(*db_,
                        "SELECT count(*) FROM job_watermark WHERE status IN ('PLANNED', 'FAILED') "
                        "AND status = 'FAILED' AND NOT held");
  status.held = Count(*db_,
                      "SELECT count(*) FROM job_watermark WHERE status IN ('PLANNED', 'FAILED') "
                      "AND status = 'FAILED' AND held");
  if (status.frozen && status.frozen_why.empty()) {
    status.frozen_why = "the store's clock is behind its high-water mark";
  }
  if (Count(*db_, "PRAGMA synchronous") < 2) {
    status.warnings.push_back(
        "synchronous is not FULL: a power cut may lose what was acknowledged");
  }
  RETURN_IF_ERROR(db_->status());
  return status;
}

}  // namespace matins::sqlite
