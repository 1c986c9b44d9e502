#include "store/postgresql/backfills.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/postgresql/acts.h"
#include "store/postgresql/perform.h"
#include "store/postgresql/plan_statements.h"
#include "store/server_rows.h"
#include "store/turns.h"

namespace matins::postgresql {
namespace {

std::string ListOf(const std::set<int64_t>& ids) {
  return absl::StrCat("{", absl::StrJoin(ids, ","), "}");
}

// With what is there of their periods.
std::string RowsText(absl::string_view where) {
  return absl::StrCat(
      "select ", kBackfillColumns,
      ", n.planned, n.running, n.done, n.failed, n.skipped from @.job_backfill b cross join "
      "lateral (select count(*) filter (where r.status = 'PLANNED') as planned, "
      "count(*) filter (where r.status = 'RUNNING') as running, "
      "count(*) filter (where r.status = 'DONE') as done, "
      "count(*) filter (where r.status = 'FAILED') as failed, "
      "count(*) filter (where r.status = 'SKIPPED') as skipped "
      "from @.job_watermark r where r.backfill_id = b.id) n where ",
      where, " order by b.id desc");
}

Statement InsertBackfill(const Session& session, const OpenBackfillRequest& request) {
  const BackfillTerms& terms = request.terms;
  std::optional<std::string> most;
  if (terms.max_parallel) most = absl::StrCat(*terms.max_parallel);
  return session.Of(
      "insert into @.job_backfill (job, from_day, to_day, reprocess, max_parallel, hours, zone, "
      "cascades, state, periods, who, why, at) values ($1, $2::date, $3::date, $4, $5::int, $6, "
      "$7, $8::boolean, 'active', $9::bigint, $10, $11, @NOW) returning id",
      {UsableText(terms.job), FormatDay(terms.from), FormatDay(terms.to), terms.reprocess, most,
       terms.window, terms.zone, terms.cascade ? "true" : "false", absl::StrCat(PeriodsOf(request)),
       UsableText(request.act.who), UsableText(request.act.why)});
}

}  // namespace

std::vector<Statement> LookAtBackfills(const Session& session, const std::set<int64_t>& ids) {
  const std::string list = ListOf(ids);
  return {
      IsMutant(Mutant::kNoBackfillLock)
          ? session.Of("select")
          : session.Of("select b.id from @.job_backfill b where b.id = any($1::bigint[]) "
                       "order by b.id for no key update",
                       {list}),
      session.Of(absl::StrCat(
                     "select ", kBackfillColumns,
                     ", (select count(*) from @.job_watermark r where r.backfill_id = b.id and "
                     "r.status = 'RUNNING') + (select count(*) from @.job_slot s where s.backfill "
                     "and s.until > (select @NOW) and exists (select from @.job_watermark r where "
                     "r.backfill_id = b.id and r.job_name = s.job_name)), "
                     "(select r.job_name || ' ' || r.period from @.job_watermark r where "
                     "r.backfill_id = b.id and r.status = 'FAILED' order by r.job_name, r.due_at "
                     "limit 1) from @.job_backfill b where b.id = any($1::bigint[])"),
                 {list}),
      session.Of("select r.backfill_id, r.job_name, min(r.due_at) from @.job_backfill b join "
                 "@.job_watermark r on r.backfill_id = b.id and r.status in ('PLANNED', 'RUNNING', "
                 "'FAILED') where b.id = any($1::bigint[]) and b.cascades group by 1, 2",
                 {list}),
      session.Of("select @NOW")};
}

// ---- acts ----

absl::StatusOr<int64_t> PostgresActs::OpenBackfill(const OpenBackfillRequest& request) {
  PlanRequest plan;
  plan.writes.push_back(request.write);
  plan.writes[0].act = request.act;
  plan.writes[0].act_told = true;
  const std::vector<PeriodKey> belong = KeysOf(request);
  const std::string reopened = KeysJson(request.reopen);
  std::vector<PeriodKey> jobs = belong;
  jobs.push_back({request.terms.job, ""});
  std::vector<Statement> locks = {LockJobsOf(session_, KeysJson(jobs)),
                                  LockRowsOf(session_, reopened)};
  for (Statement& s : LockForPlan(session_, plan)) locks.push_back(std::move(s));
  locks.push_back(ReadTurns(session_, plan));
  int64_t id = 0;
  RETURN_IF_ERROR(Perform(
      session_, locks,
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        id = 0;
        const bool in_turn = NamesTenant(plan) || !rows[4].IsNull(0, 1);
        PlanBatch batch(plan,
                        ReadPlanFacts(rows[2], rows[3], rows[4], in_turn ? &rows[5] : nullptr),
                        JsonForm::kPostgresql);
        if (!batch.written[0]) return std::vector<Statement>{};
        RETURN_IF_ERROR(MayReopenRows(rows[0], rows[1], request.reopen));
        ASSIGN_OR_RETURN(const std::vector<Rows> inserted,
                         session_.connection.More({InsertBackfill(session_, request)}));
        id = inserted[0].Int(0, 0);
        std::vector<Statement> writes = PlanStatements(session_, batch);
        if (!request.reopen.empty()) {
          for (Statement& s : ReopenRows(session_, reopened, "", request.act)) {
            writes.push_back(std::move(s));
          }
        }
        writes.push_back(session_.Of(
            "update @.job_watermark r set backfill_id = $2::bigint, backfill = true from "
            "json_to_recordset($1::json) as x(job text, period text) where r.job_name = x.job and "
            "r.period = x.period and r.status = 'PLANNED'",
            {KeysJson(belong), absl::StrCat(id)}));
        writes.push_back(EventOf(session_, "backfill", request.terms.job, "", request.act,
                                 BackfillDetail(id, request.terms, PeriodsOf(request))));
        return writes;
      }));
  return id;
}

absl::Status PostgresActs::SetBackfill(int64_t id, BackfillState state, const Act& act) {
  const std::string number = absl::StrCat(id);
  // The jobs first, then the rows, then the back-fill: as START, which waits for no row.
  const std::vector<Statement> locks = {
      session_.Of("select j.name from @.job j where j.name in (select r.job_name from "
                  "@.job_watermark r where r.backfill_id = $1::bigint) order by j.name "
                  "for no key update",
                  {number}),
      session_.Of("select r.job_name, r.period from @.job_watermark r where "
                  "r.backfill_id = $1::bigint and r.status in ('PLANNED', 'FAILED') "
                  "order by r.job_name, r.period for update",
                  {number}),
      session_.Of("select from @.job_backfill where id = $1::bigint for update", {number}),
      session_.Of(RowsText("b.id = $1::bigint"), {number})};
  return Perform(
      session_, locks,
      [&](const std::vector<Rows>& rows) -> absl::StatusOr<std::vector<Statement>> {
        const std::vector<BackfillRow> found = ReadBackfillRows(rows[3]);
        if (found.empty()) return NoBackfill(id);
        RETURN_IF_ERROR(MaySetBackfill(found[0], state));
        std::vector<Statement> writes = {session_.Of(
            "update @.job_backfill set state = $2, changed_by = $3, changed_why = $4, "
            "changed_at = @NOW where id = $1::bigint",
            {number, std::string(Word(state)), UsableText(act.who), UsableText(act.why)})};
        if (state == BackfillState::kActive) {
          writes.push_back(
              session_.Of("update @.job_watermark set look_at = not_before, waits_for = null where "
                          "backfill_id = $1::bigint and status = 'PLANNED'",
                          {number}));
        }
        if (state == BackfillState::kCancelled && rows[1].size() > 0) {
          std::vector<PeriodKey> waiting;
          for (int i = 0; i < rows[1].size(); ++i) {
            waiting.push_back({rows[1].Text(i, 0), rows[1].Text(i, 1)});
          }
          for (Statement& s : SkipRows(session_, waiting, {act.who, CancelledReason(id, act)})) {
            writes.push_back(std::move(s));
          }
        }
        writes.push_back(EventOf(session_, BackfillEvent(state), found[0].terms.job, "", act,
                                 BackfillDetail(id, found[0].terms, found[0].periods)));
        return writes;
      });
}

absl::StatusOr<std::vector<BackfillRow>> PostgresActs::ReadBackfills(int64_t id,
                                                                     absl::string_view job) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          RowsText("($1::bigint = 0 or b.id = $1::bigint) and ($2 = '' or b.job = $2)"),
          {absl::StrCat(id), UsableText(job)})}));
  return ReadBackfillRows(rows[0]);
}

}  // namespace matins::postgresql
