// Drills on MariaDB: rows deleted with what they were kept beside, and put back.
#include "store/drill.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/act_rules.h"
#include "store/locked_change.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/ticket.h"
#include "store/server_rows.h"

namespace matins::mariadb {
namespace {

// Of the drills that `where` names, the newest first; each period a row.
Statement Drills(absl::string_view where, std::vector<Value> values, int limit) {
  values.push_back(limit);
  return Sql(
      absl::StrCat("SELECT d.id, d.job, d.by_whom, d.why, d.started_at, d.until, d.finished_at, "
                   "d.result, d.detail, r.period, r.generation, r.fence FROM (SELECT * FROM "
                   "job_drill WHERE ",
                   where,
                   " ORDER BY id DESC LIMIT ?) d LEFT JOIN job_drill_row r ON r.drill = d.id "
                   "ORDER BY d.id DESC, r.period"),
      values);
}

Value PeriodList(const std::vector<DrillPeriod>& periods) {
  std::vector<std::string> texts;
  for (const DrillPeriod& p : periods) texts.push_back(Value(p.period).sql());
  return Value::Of(texts.empty() ? "NULL" : absl::StrJoin(texts, ", "));
}

// The columns that can be written, another program's own included: a row comes back whole. JSON
// holds no bytes; a column that has some is left out.
Statement ColumnNames() {
  return Sql(
      "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND "
      "table_name = 'job_watermark' AND is_generated = 'NEVER' AND data_type NOT LIKE '%blob' AND "
      "data_type NOT LIKE '%binary' ORDER BY ordinal_position");
}

std::vector<std::string> ReadColumns(const Rows& r) {
  std::vector<std::string> columns;
  for (int i = 0; i < r.size(); ++i) columns.push_back(r.Text(i, 0));
  return columns;
}

std::string RowAsJson(const std::vector<std::string>& columns) {
  std::vector<std::string> args;
  for (const std::string& c : columns) args.push_back(absl::StrCat("'", c, "', r.`", c, "`"));
  return absl::StrCat("JSON_OBJECT(", absl::StrJoin(args, ", "), ")");
}

// In the generation that the deletion opened: putting back is an act of its own (I2).
Statement Insert(const DrillRow& drill, const DrillPeriod& period,
                 const std::vector<std::string>& columns, absl::Time now) {
  std::vector<std::string> values;
  for (const std::string& column : columns) {
    if (column == "job_name") {
      values.push_back(Value(drill.job).sql());
    } else if (column == "generation") {
      values.push_back(
          absl::StrCat("GREATEST(r.generation + 1, COALESCE((SELECT MAX(e.generation) FROM "
                       "job_event e WHERE e.kind = 'reopened' AND e.job = ",
                       Value(drill.job).sql(), " AND e.period = r.period), 1))"));
    } else if (column == "ver") {
      values.push_back("1");
    } else if (column == "op") {
      values.push_back(Value(kRestoredOp).sql());
    } else if (column == "op_at") {
      values.push_back(Value(now).sql());
    } else {
      values.push_back(absl::StrCat("JSON_VALUE(r.doc, '$.\"", column, "\"')"));
    }
  }
  return Sql(
      absl::StrCat("INSERT INTO job_watermark (`", absl::StrJoin(columns, "`, `"), "`) SELECT ?"),
      {Value::Of(absl::StrCat(absl::StrJoin(values, ", "), " FROM job_drill_row r WHERE r.drill = ",
                              drill.id, " AND r.period = ", Value(period.period).sql()))});
}

// The nonce goes: nobody who tried the period meanwhile may take this DONE for his own (I9).
Statement Change(const DrillRow& drill, const DrillPeriod& period, absl::Time now) {
  return Sql(
      "UPDATE job_watermark w JOIN job_drill_row r ON r.drill = ? AND r.period = w.period SET "
      "w.status = 'DONE', w.held = FALSE, w.nonce = NULL, w.ver = w.ver + 1, w.op = ?, w.op_at = "
      "?, w.held_by = NULL, w.held_until = NULL, w.waits_for = NULL, w.reason = "
      "JSON_VALUE(r.doc, '$.reason'), w.by_whom = JSON_VALUE(r.doc, '$.by_whom'), w.finished_at = "
      "JSON_VALUE(r.doc, '$.finished_at') WHERE w.job_name = ? AND w.period = ?",
      {drill.id, kRestoredOp, now, drill.job, period.period});
}

void WriteBack(const DrillRow& drill, const Act& act, const std::map<std::string, PeriodRow>& rows,
               const std::vector<std::string>& columns, absl::Time now,
               std::vector<Statement>& writes, EndDrillAnswer& answer) {
  for (const DrillPeriod& period : drill.periods) {
    const PeriodRow* const row = FindStanding(rows, period.period);
    if (!PutsBack(row, period.period, answer)) continue;
    writes.push_back(row == nullptr ? Insert(drill, period, columns, now)
                                    : Change(drill, period, now));
    writes.push_back(Sql(
        "INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) SELECT ?, "
        "?, w.job_name, w.period, w.generation, ?, ?, ? FROM job_watermark w WHERE w.job_name "
        "= ? AND w.period = ?",
        {now, kRestoredOp, act.who, act.why, RestoredDetail(drill.id), drill.job, period.period}));
  }
  if (answer.put_back.empty()) return;
  writes.push_back(Sql(
      "UPDATE job SET revision = revision + 1, next_look = TIMESTAMP'1970-01-01 00:00:00' WHERE "
      "name = ?",
      {drill.job}));
  writes.push_back(
      Sql("UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE job_name = ? AND "
          "status = 'PLANNED' AND look_at > not_before",
          {drill.job}));
}

}  // namespace

absl::StatusOr<int64_t> MariadbActs::BeginDrill(const BeginDrillRequest& request) {
  const Value periods = PeriodList(request.periods);
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {Sql("SELECT name FROM job WHERE name = ? AND NOT deleted FOR UPDATE", {request.job}),
             Sql("SELECT r.period, r.status, r.by_whom, r.generation, r.fence FROM job_watermark r "
                 "WHERE r.job_name = ? AND r.period IN (?) ORDER BY r.period FOR UPDATE",
                 {request.job, periods}),
             Drills("job = ? AND finished_at IS NULL", {request.job}, 1), ColumnNames(),
             Sql("SELECT @NOW")}));
    const auto refuse = [&](absl::Status status) {
      session_.connection.Rollback();
      return status;
    };
    if (rows[0].size() == 0) return refuse(NoJob(request.job));
    const std::vector<DrillRow> open = ReadDrillRows(rows[2]);
    if (!open.empty()) return refuse(RefuseSecondDrill(request.job, open[0]));
    const std::map<std::string, PeriodRow> standing = ReadStanding(rows[1]);
    for (const DrillPeriod& p : request.periods) {
      const absl::Status may = MayDelete(request.job, p, FindStanding(standing, p.period));
      if (!may.ok()) return refuse(may);
    }
    const absl::Time now = rows[4].Time(0, 0);
    const std::string detail_of_id =
        absl::StrCat("CONCAT('{\"drill\":', @matins_drill, ",
                     Value(DrillEventDetail(0, request.periods).substr(10)).sql(), ")");
    ASSIGN_OR_RETURN(
        const std::vector<Rows> written,
        CommitAt(
            session_, "drill.before_commit",
            {Sql("INSERT INTO job_drill (job, by_whom, why, started_at, until, detail) VALUES (?, "
                 "?, ?, ?, ?, '')",
                 {request.job, request.act.who, request.act.why, now, now + request.lease}),
             Sql("SET @matins_drill = LAST_INSERT_ID()"),
             EventOf(kDrillEvent, request.job, "", request.act, now, ""),
             Sql("UPDATE job_event SET detail = ? WHERE id = LAST_INSERT_ID()",
                 {Value::Of(detail_of_id)}),
             Sql(absl::StrCat("INSERT INTO job_drill_row (drill, period, generation, fence, doc) "
                              "SELECT @matins_drill, r.period, r.generation, r.fence, ",
                              RowAsJson(ReadColumns(rows[3])),
                              " FROM job_watermark r WHERE r.job_name = ? AND r.period IN (?)"),
                 {request.job, periods}),
             Sql("DELETE FROM job_watermark WHERE job_name = ? AND period IN (?)",
                 {request.job, periods}),
             Sql("SELECT @matins_drill")}));
    MATINS_FAULT_POINT("drill.after_commit");  // crash here: whoever comes next puts the rows back
    return written[6].Int(0, 0);
  };
  return session_.Retried(once);
}

absl::Status MariadbActs::ExtendDrill(int64_t id, absl::Duration lease) {
  const std::vector<Statement> locks = {
      Sql("SELECT id FROM job_drill WHERE id = ? FOR UPDATE", {id}), Drills("id = ?", {id}, 1)};
  return ChangeUnderLocks(
             session_, locks, Sql("SELECT @NOW"),
             [&](const std::vector<Rows>& rows,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               RETURN_IF_ERROR(MayEndDrill(ReadDrillRows(rows[1]), id, true, now));
               return std::make_pair(
                   true, std::vector<Statement>{
                             Sql("UPDATE job_drill SET until = GREATEST(until, ?) WHERE id = ?",
                                 {now + lease, id})});
             })
      .status();
}

absl::StatusOr<EndDrillAnswer> MariadbActs::EndDrill(const EndDrillRequest& request) {
  const int64_t id = request.id;
  const auto once = [&]() -> absl::StatusOr<EndDrillAnswer> {
    // The job before its rows, as every act locks them; which job it is does not change.
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {Sql("SELECT name FROM job WHERE name = (SELECT d.job FROM job_drill d WHERE d.id = ?) "
                 "FOR UPDATE",
                 {id}),
             Sql("SELECT id FROM job_drill WHERE id = ? FOR UPDATE", {id}),
             Sql("SELECT r.period, r.status, r.by_whom, r.generation, r.fence FROM job_drill d "
                 "JOIN job_drill_row x ON x.drill = d.id JOIN job_watermark r ON r.job_name = "
                 "d.job AND r.period = x.period WHERE d.id = ? ORDER BY r.period FOR UPDATE",
                 {id}),
             Drills("id = ?", {id}, 1), ColumnNames(), Sql("SELECT @NOW")}));
    const std::vector<DrillRow> drills = ReadDrillRows(rows[3]);
    const absl::Time now = rows[5].Time(0, 0);
    const absl::Status may = MayEndDrill(drills, id, request.owner, now);
    if (!may.ok()) {
      session_.connection.Rollback();
      return may;
    }
    EndDrillAnswer answer;
    std::vector<Statement> writes;
    WriteBack(drills[0], request.act, ReadStanding(rows[2]), ReadColumns(rows[4]), now, writes,
              answer);
    answer.ended = answer.running.empty();
    writes.push_back(
        Sql("UPDATE job_drill SET until = ?, finished_at = ?, result = IF(result = '', ?, result), "
            "detail = IF(COALESCE(detail, '') = '', ?, detail) WHERE id = ?",
            {now, answer.ended ? now : absl::InfinitePast(), request.result, request.detail, id}));
    RETURN_IF_ERROR(CommitAt(session_, "act.before_commit", writes).status());
    return answer;
  };
  return session_.Retried(once);
}

absl::StatusOr<std::vector<DrillRow>> MariadbActs::ReadDrills(absl::string_view job, int limit) {
  std::vector<Value> values;
  if (!job.empty()) values.push_back(job);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({Drills(job.empty() ? "TRUE" : "job = ?", values, limit)}));
  return ReadDrillRows(rows[0]);
}

absl::StatusOr<std::vector<FigureRow>> MariadbActs::ReadFigures(const PeriodKey& key) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({Sql(
                       "SELECT generation, fence, name, value FROM job_figure WHERE job_name = ? "
                       "AND period = ? ORDER BY fence, name",
                       {key.job, key.period})}));
  std::vector<FigureRow> figures;
  for (int i = 0; i < rows[0].size(); ++i) {
    double value = 0;
    if (!absl::SimpleAtod(rows[0].Text(i, 3), &value)) {
      return absl::InternalError(absl::StrCat("job_figure: '", rows[0].Text(i, 3), "' of ", key.job,
                                              " ", key.period, " is no number"));
    }
    figures.push_back(
        {key, static_cast<int>(rows[0].Int(i, 0)), rows[0].Int(i, 1), rows[0].Text(i, 2), value});
  }
  return figures;
}

}  // namespace matins::mariadb
