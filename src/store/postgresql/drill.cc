// Drills on PostgreSQL: rows deleted with what they were kept beside, and put back.
#include "store/drill.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/act_rules.h"
#include "store/locked_change.h"
#include "store/postgresql/acts.h"
#include "store/server_rows.h"

namespace matins::postgresql {
namespace {

// Of the drills that `where` names, the newest first; each period a row.
std::string DrillsText(absl::string_view where, absl::string_view limit) {
  return absl::StrCat(
      "select d.id, d.job, d.by_whom, d.why, d.started_at, d.until, d.finished_at, d.result, "
      "d.detail, r.period, r.generation, r.fence from (select * from @.job_drill where ",
      where, " order by id desc limit ", limit,
      ") d left join @.job_drill_row r on r.drill = d.id order by d.id desc, r.period");
}

Statement LockJob(const Session& session, absl::string_view job) {
  return session.Of("select from @.job where name = $1 and not deleted for no key update",
                    {UsableText(job)});
}

std::string PeriodsJson(const std::string& job, const std::vector<DrillPeriod>& periods) {
  JsonRows json;
  for (const DrillPeriod& p : periods) json.Row().AddKey({job, p.period});
  return json.Take();
}

Statement LockRows(const Session& session, const std::string& json) {
  return session.Of(
      "select r.period, r.status, r.by_whom, r.generation, r.fence from "
      "json_to_recordset($1::json) as x(job text, period text) join @.job_watermark r on "
      "r.job_name = x.job and r.period = x.period order by r.period for update of r",
      {json});
}

Statement ColumnNames(const Session& session) {
  return session.Of(
      "select a.attname from pg_attribute a where a.attrelid = '@.job_watermark'::regclass and "
      "a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum");
}

// In the generation that the deletion opened: putting back is an act of its own (I2). Parameters:
// the drill, the job, the period.
std::string InsertText(const Rows& columns) {
  std::vector<std::string> names, values;
  for (int i = 0; i < columns.size(); ++i) {
    const std::string name = absl::StrCat("\"", columns.Text(i, 0), "\"");
    names.push_back(name);
    values.push_back(absl::StrCat("p.", name));
  }
  return absl::StrCat(
      "insert into @.job_watermark (", absl::StrJoin(names, ", "), ") select ",
      absl::StrJoin(values, ", "),
      " from @.job_drill_row r, jsonb_populate_record(null::@.job_watermark, r.doc || "
      "jsonb_build_object('job_name', $2::text, 'ver', 1, 'op', '",
      kRestoredOp,
      "', 'op_at', @NOW, 'generation', greatest(r.generation + 1, (select max(e.generation) from "
      "@.job_event e where e.kind = 'reopened' and e.job = $2 and e.period = r.period)))) p where "
      "r.drill = $1::bigint and r.period = $3");
}

// The nonce goes: nobody who tried the period meanwhile may take this DONE for his own (I9).
std::string ChangeText() {
  return absl::StrCat(
      "update @.job_watermark w set status = 'DONE', held = false, nonce = null, ver = w.ver + 1, "
      "op = '",
      kRestoredOp,
      "', op_at = @NOW, held_by = null, held_until = null, waits_for = null, "
      "reason = r.doc ->> 'reason', by_whom = r.doc ->> 'by_whom', finished_at = (r.doc ->> "
      "'finished_at')::timestamptz from @.job_drill_row r where r.drill = $1::bigint and "
      "r.period = $3 and w.job_name = $2 and w.period = r.period");
}

Statement EventAt(const Session& session, const DrillRow& drill, const DrillPeriod& period,
                  const Act& act) {
  return session.Of(
      "insert into @.job_event (at, kind, job, period, generation, who, why, detail) select @NOW, "
      "$1, w.job_name, w.period, w.generation, $4, $5, $6 from @.job_watermark w where w.job_name "
      "= $2 and w.period = $3",
      {kRestoredOp, UsableText(drill.job), UsableText(period.period), UsableText(act.who),
       UsableText(act.why), RestoredDetail(drill.id)});
}

void WriteBack(const Session& session, const DrillRow& drill, const Act& act,
               const std::map<std::string, PeriodRow>& rows, const Rows& columns,
               std::vector<Statement>& writes, EndDrillAnswer& answer) {
  for (const DrillPeriod& period : drill.periods) {
    const PeriodRow* const row = FindStanding(rows, period.period);
    if (!PutsBack(row, period.period, answer)) continue;
    writes.push_back(
        session.Of(row == nullptr ? InsertText(columns) : ChangeText(),
                   {absl::StrCat(drill.id), UsableText(drill.job), UsableText(period.period)}));
    writes.push_back(EventAt(session, drill, period, act));
  }
  if (answer.put_back.empty()) return;
  writes.push_back(session.Of(
      "update @.job set revision = revision + 1, next_look = timestamptz 'epoch' where name = $1",
      {UsableText(drill.job)}));
  writes.push_back(
      session.Of("update @.job_watermark set look_at = not_before, waits_for = null where job_name "
                 "= $1 and status = 'PLANNED' and look_at > not_before",
                 {UsableText(drill.job)}));
}

}  // namespace

absl::StatusOr<int64_t> PostgresActs::BeginDrill(const BeginDrillRequest& request) {
  const std::string json = PeriodsJson(request.job, request.periods);
  const auto once = [&]() -> absl::StatusOr<int64_t> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {LockJob(session_, request.job), LockRows(session_, json),
             session_.Of(DrillsText("job = $1 and finished_at is null", "1"),
                         {UsableText(request.job)}),
             session_.Of("select @NOW, nextval(pg_get_serial_sequence('@.job_drill', 'id'))")}));
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
    if (absl::Status fault = Reach("drill.before_commit"); !fault.ok()) return refuse(fault);
    const int64_t id = rows[3].Int(0, 1);
    const absl::Time now = rows[3].Time(0, 0);
    const std::string number = absl::StrCat(id);
    RETURN_IF_ERROR(
        session_.connection
            .Commit(
                {session_.Of(
                     "insert into @.job_drill (id, job, by_whom, why, started_at, until) "
                     "values ($1::bigint, $2, $3, $4, $5::timestamptz, $6::timestamptz)",
                     {number, UsableText(request.job), UsableText(request.act.who),
                      UsableText(request.act.why), TimeParam(now), TimeParam(now + request.lease)}),
                 EventOf(session_, kDrillEvent, request.job, "", request.act,
                         DrillEventDetail(id, request.periods)),
                 session_.Of("insert into @.job_drill_row (drill, period, generation, fence, doc) "
                             "select $2::bigint, r.period, r.generation, r.fence, to_jsonb(r) from "
                             "json_to_recordset($1::json) as x(job text, period text) join "
                             "@.job_watermark r on r.job_name = x.job and r.period = x.period",
                             {json, number}),
                 session_.Of("delete from @.job_watermark r using json_to_recordset($1::json) as "
                             "x(job text, period text) where r.job_name = x.job and r.period = "
                             "x.period",
                             {json})})
            .status());
    MATINS_FAULT_POINT("drill.after_commit");  // crash here: whoever comes next puts the rows back
    return id;
  };
  ASSIGN_OR_RETURN(const int64_t id, session_.Retried(once));
  session_.Notify();
  return id;
}

absl::Status PostgresActs::ExtendDrill(int64_t id, absl::Duration lease) {
  const std::string number = absl::StrCat(id);
  const std::vector<Statement> locks = {
      session_.Of("select from @.job_drill where id = $1::bigint for update", {number}),
      session_.Of(DrillsText("id = $1::bigint", "1"), {number})};
  return ChangeUnderLocks(
             session_, locks, session_.Of("select @NOW"),
             [&](const std::vector<Rows>& rows,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               RETURN_IF_ERROR(MayEndDrill(ReadDrillRows(rows[1]), id, true, now));
               return std::make_pair(
                   true, std::vector<Statement>{session_.Of(
                             "update @.job_drill set until = greatest(until, $2::timestamptz) "
                             "where id = $1::bigint",
                             {number, TimeParam(now + lease)})});
             })
      .status();
}

absl::StatusOr<EndDrillAnswer> PostgresActs::EndDrill(const EndDrillRequest& request) {
  const std::string number = absl::StrCat(request.id);
  const auto once = [&]() -> absl::StatusOr<EndDrillAnswer> {
    // The job before its rows, as every act locks them; which job it is does not change.
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.Begin(
            {session_.Of("select from @.job where name = (select job from @.job_drill where id = "
                         "$1::bigint) for no key update",
                         {number}),
             session_.Of("select from @.job_drill where id = $1::bigint for update", {number}),
             session_.Of("select r.period, r.status, r.by_whom, r.generation, r.fence from "
                         "@.job_drill d join @.job_drill_row x on x.drill = d.id join "
                         "@.job_watermark r on r.job_name = d.job and r.period = x.period where "
                         "d.id = $1::bigint order by r.period for update of r",
                         {number}),
             session_.Of(DrillsText("id = $1::bigint", "1"), {number}), ColumnNames(session_),
             session_.Of("select @NOW")}));
    const std::vector<DrillRow> drills = ReadDrillRows(rows[3]);
    const absl::Time now = rows[5].Time(0, 0);
    const absl::Status may = MayEndDrill(drills, request.id, request.owner, now);
    if (!may.ok()) {
      session_.connection.Rollback();
      return may;
    }
    EndDrillAnswer answer;
    std::vector<Statement> writes;
    WriteBack(session_, drills[0], request.act, ReadStanding(rows[2]), rows[4], writes, answer);
    answer.ended = answer.running.empty();
    writes.push_back(session_.Of(
        "update @.job_drill set until = $2::timestamptz, finished_at = $3::timestamptz, result = "
        "case result when '' then $4 else result end, detail = coalesce(nullif(detail, ''), $5) "
        "where id = $1::bigint",
        {number, TimeParam(now), TimeParam(answer.ended ? now : absl::InfinitePast()),
         UsableText(request.result), UsableText(request.detail)}));
    RETURN_IF_ERROR(session_.connection.Commit(writes).status());
    return answer;
  };
  ASSIGN_OR_RETURN(EndDrillAnswer answer, session_.Retried(once));
  session_.Notify();
  return answer;
}

absl::StatusOr<std::vector<DrillRow>> PostgresActs::ReadDrills(absl::string_view job, int limit) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(DrillsText("$1 = '' or job = $1", "$2::bigint"),
                                            {UsableText(job), absl::StrCat(limit)})}));
  return ReadDrillRows(rows[0]);
}

absl::StatusOr<std::vector<FigureRow>> PostgresActs::ReadFigures(const PeriodKey& key) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(
                       "select generation, fence, name, value from @.job_figure where job_name = "
                       "$1 and period = $2 order by fence, name",
                       {UsableText(key.job), UsableText(key.period)})}));
  std::vector<FigureRow> figures;
  for (int i = 0; i < rows[0].size(); ++i) {
    figures.push_back({key, static_cast<int>(rows[0].Int(i, 0)), rows[0].Int(i, 1),
                       rows[0].Text(i, 2), rows[0].Number(i, 3)});
  }
  return figures;
}

}  // namespace matins::postgresql
