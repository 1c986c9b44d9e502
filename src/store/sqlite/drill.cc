// Drills on SQLite: rows deleted with what they were kept beside, and put back.
#include "store/drill.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "store/act_rules.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

// The columns that can be written, another program's own included: a row comes back whole.
std::vector<std::string> Columns(Connection& db) {
  std::vector<std::string> columns;
  Statement rows = db.Sql("SELECT name FROM pragma_table_info('job_watermark')");
  while (rows.Next()) columns.push_back(rows.Text(0));
  return columns;
}

// The row as a JSON object: of parts, because a function takes no more than a hundred arguments.
// JSON holds no bytes; of a column of another program's that has some they are not kept.
std::string RowAsJson(const std::vector<std::string>& columns) {
  constexpr size_t kPart = 40;
  std::string all = "json_object()";
  for (size_t from = 0; from < columns.size(); from += kPart) {
    std::vector<std::string> args;
    for (size_t i = from; i < std::min(columns.size(), from + kPart); ++i) {
      args.push_back(absl::StrCat("'", columns[i], "', CASE WHEN typeof(\"", columns[i],
                                  "\") <> 'blob' THEN \"", columns[i], "\" END"));
    }
    all = absl::StrCat("json_patch(", all, ", json_object(", absl::StrJoin(args, ", "), "))");
  }
  return all;
}

std::vector<DrillRow> ReadDrillsWhere(Connection& db, absl::string_view where, int64_t id,
                                      absl::string_view job, int limit) {
  std::vector<DrillRow> drills;
  Statement q = db.Sql(
      absl::StrCat("SELECT d.id, d.job, d.by_whom, d.why, d.started_at, d.until, d.finished_at, "
                   "d.result, d.detail, r.period, r.generation, r.fence FROM (SELECT * FROM "
                   "job_drill WHERE ",
                   where,
                   " ORDER BY id DESC LIMIT ?3) d LEFT JOIN job_drill_row r ON r.drill = "
                   "d.id ORDER BY d.id DESC, r.period"),
      id, job, limit);
  while (q.Next()) {
    if (drills.empty() || drills.back().id != q.Int(0)) {
      drills.push_back({q.Int(0),
                        q.Text(1),
                        q.Text(2),
                        q.Text(3),
                        q.Time(4, kPast),
                        q.Time(5, kPast),
                        q.Time(6, kPast),
                        q.Text(7),
                        q.Text(8),
                        {}});
    }
    if (!q.Null(9)) {
      drills.back().periods.push_back({q.Text(9), static_cast<int>(q.Int(10)), q.Int(11)});
    }
  }
  return drills;
}

// In the generation that the deletion opened: putting back is an act of its own (I2).
void Insert(Connection& db, absl::Time now, const DrillRow& drill, const DrillPeriod& period) {
  std::vector<std::string> values;
  const std::vector<std::string> columns = Columns(db);
  for (const std::string& column : columns) {
    if (column == "job_name") {
      values.push_back("?1");
    } else if (column == "generation") {
      values.push_back(
          "max(r.generation + 1, coalesce((SELECT max(e.generation) FROM job_event e WHERE e.kind "
          "= 'reopened' AND e.job = ?1 AND e.period = r.period), 1))");
    } else if (column == "ver") {
      values.push_back("1");
    } else if (column == "op") {
      values.push_back(absl::StrCat("'", kRestoredOp, "'"));
    } else if (column == "op_at") {
      values.push_back("?2");
    } else {
      values.push_back(absl::StrCat("json_extract(r.doc, '$.\"", column, "\"')"));
    }
  }
  db.Sql(absl::StrCat("INSERT INTO job_watermark (\"", absl::StrJoin(columns, "\", \""),
                      "\") SELECT ", absl::StrJoin(values, ", "),
                      " FROM job_drill_row r WHERE r.drill = ?3 AND r.period = ?4"),
         drill.job, now, drill.id, period.period)
      .Run();
}

// The nonce goes: nobody who tried the period meanwhile may take this DONE for his own (I9).
void Change(Connection& db, absl::Time now, const DrillRow& drill, const DrillPeriod& period) {
  db.Sql(
        "UPDATE job_watermark SET status = 'DONE', held = 0, nonce = 0, ver = ver + 1, op = ?1, "
        "op_at = ?2, held_by = '', held_until = NULL, reason = json_extract(r.doc, '$.reason'), "
        "by_whom = json_extract(r.doc, '$.by_whom'), finished_at = json_extract(r.doc, "
        "'$.finished_at') FROM job_drill_row r WHERE r.drill = ?3 AND r.period = ?4 AND "
        "job_watermark.job_name = ?5 AND job_watermark.period = r.period",
        kRestoredOp, now, drill.id, period.period, drill.job)
      .Run();
}

void PutBackRows(Connection& db, absl::Time now, const DrillRow& drill, const Act& act,
                 EndDrillAnswer* answer) {
  for (const DrillPeriod& period : drill.periods) {
    const std::optional<Row> row = FindRow(db, {drill.job, period.period});
    if (!PutsBack(row ? &*row : nullptr, period.period, *answer)) continue;
    (row ? Change : Insert)(db, now, drill, period);
    WriteEvent(db, now,
               {.kind = kRestoredOp,
                .job = drill.job,
                .period = period.period,
                .generation = row ? row->generation : period.generation + 1,
                .who = act.who,
                .why = act.why,
                .detail = RestoredDetail(drill.id)});
  }
  if (answer->put_back.empty()) return;
  db.Sql("UPDATE job SET revision = revision + 1, next_look = 0 WHERE name = ?", drill.job).Run();
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before WHERE job_name = ? AND status = 'PLANNED' "
        "AND look_at > not_before",
        drill.job)
      .Run();
}

}  // namespace

absl::StatusOr<int64_t> SqliteActs::BeginDrill(const BeginDrillRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "begin_drill"));
  const absl::Time now = transaction.now();
  if (!db_->Sql("SELECT 1 FROM job WHERE name = ? AND NOT deleted", request.job).Next()) {
    return db_->ok() ? NoJob(request.job) : db_->status();
  }
  const std::vector<DrillRow> open =
      ReadDrillsWhere(*db_, "?1 = 0 AND job = ?2 AND finished_at IS NULL", 0, request.job, 1);
  if (!open.empty()) return RefuseSecondDrill(request.job, open[0]);
  for (const DrillPeriod& period : request.periods) {
    const std::optional<Row> row = FindRow(*db_, {request.job, period.period});
    RETURN_IF_ERROR(MayDelete(request.job, period, row ? &*row : nullptr));
  }
  db_->Sql("INSERT INTO job_drill (job, by_whom, why, started_at, until) VALUES (?, ?, ?, ?, ?)",
           request.job, request.act.who, request.act.why, now, now + request.lease)
      .Run();
  int64_t id = 0;
  {
    Statement row = db_->Sql("SELECT last_insert_rowid()");
    if (row.Next()) id = row.Int(0);
  }
  WriteEvent(*db_, now,
             {.kind = kDrillEvent,
              .job = request.job,
              .who = request.act.who,
              .why = request.act.why,
              .detail = DrillEventDetail(id, request.periods)});
  const std::string keep = absl::StrCat(
      "INSERT INTO job_drill_row (drill, period, generation, fence, doc) SELECT ?1, period, "
      "generation, fence, ",
      RowAsJson(Columns(*db_)), " FROM job_watermark WHERE job_name = ?2 AND period = ?3");
  for (const DrillPeriod& period : request.periods) {
    db_->Sql(keep, id, request.job, period.period).Run();
    db_->Sql("DELETE FROM job_watermark WHERE job_name = ? AND period = ?", request.job,
             period.period)
        .Run();
  }
  RETURN_IF_ERROR(transaction.Commit());
  return id;
}

absl::Status SqliteActs::ExtendDrill(int64_t id, absl::Duration lease) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "extend_drill"));
  const std::vector<DrillRow> drills = ReadDrillsWhere(*db_, "id = ?1 AND ?2 = ''", id, "", 1);
  if (drills.empty()) return db_->ok() ? NoDrill(id) : db_->status();
  RETURN_IF_ERROR(MayEndDrill(drills[0], true, transaction.now()));
  db_->Sql("UPDATE job_drill SET until = max(until, ?) WHERE id = ?", transaction.now() + lease, id)
      .Run();
  return transaction.Commit();
}

absl::StatusOr<EndDrillAnswer> SqliteActs::EndDrill(const EndDrillRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "end_drill"));
  const absl::Time now = transaction.now();
  const std::vector<DrillRow> drills =
      ReadDrillsWhere(*db_, "id = ?1 AND ?2 = ''", request.id, "", 1);
  if (drills.empty()) return db_->ok() ? NoDrill(request.id) : db_->status();
  RETURN_IF_ERROR(MayEndDrill(drills[0], request.owner, now));
  EndDrillAnswer answer;
  PutBackRows(*db_, now, drills[0], request.act, &answer);
  answer.ended = answer.running.empty();
  db_->Sql(
         "UPDATE job_drill SET until = ?1, finished_at = ?2, result = CASE result WHEN '' THEN ?3 "
         "ELSE result END, detail = CASE detail WHEN '' THEN ?4 ELSE detail END WHERE id = ?5",
         now, answer.ended ? std::optional<absl::Time>(now) : std::nullopt, request.result,
         request.detail, request.id)
      .Run();
  RETURN_IF_ERROR(transaction.Commit());
  return answer;
}

absl::StatusOr<std::vector<DrillRow>> SqliteActs::ReadDrills(absl::string_view job, int limit) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<DrillRow> drills =
      ReadDrillsWhere(*db_, "?1 = 0 AND (?2 = '' OR job = ?2)", 0, job, limit);
  RETURN_IF_ERROR(db_->status());
  return drills;
}

absl::StatusOr<std::vector<FigureRow>> SqliteActs::ReadFigures(const PeriodKey& key) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<FigureRow> figures;
  Statement q = db_->Sql(
      "SELECT generation, fence, name, value FROM job_figure WHERE job_name = ? AND period = ? "
      "ORDER BY fence, name",
      key.job, key.period);
  while (q.Next()) {
    figures.push_back({key, static_cast<int>(q.Int(0)), q.Int(1), q.Text(2), q.Real(3)});
  }
  RETURN_IF_ERROR(db_->status());
  return figures;
}

}  // namespace matins::sqlite
