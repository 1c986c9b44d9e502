#include "store/mariadb/backfills.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/perform.h"
#include "store/mariadb/plan_statements.h"
#include "store/server_rows.h"

namespace matins::mariadb {
namespace {

// With what is there of their periods.
std::string RowsText(absl::string_view where) {
  return absl::StrCat("SELECT ", kBackfillColumns,
                      ", COALESCE(SUM(r.status = 'PLANNED'), 0), "
                      "COALESCE(SUM(r.status = 'RUNNING'), 0), COALESCE(SUM(r.status = 'DONE'), "
                      "0), COALESCE(SUM(r.status = 'FAILED'), 0), "
                      "COALESCE(SUM(r.status = 'SKIPPED'), 0) FROM job_backfill b LEFT JOIN "
                      "job_watermark r ON r.backfill_id = b.id WHERE ",
                      where, " GROUP BY b.id ORDER BY b.id DESC");
}

Statement InsertBackfill(const OpenBackfillRequest& request, absl::Time now) {
  const BackfillTerms& terms = request.terms;
  return Sql(
      "INSERT INTO job_backfill (job, from_day, to_day, reprocess, max_parallel, hours, zone, "
      "cascades, state, periods, who, why, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, "
      "?)",
      {terms.job, Value::Day(terms.from), Value::Day(terms.to), terms.reprocess, terms.max_parallel,
       terms.window, terms.zone, terms.cascade, PeriodsOf(request), request.act.who,
       request.act.why, now});
}

}  // namespace

std::vector<Statement> LookAtBackfills(const std::set<int64_t>& ids) {
  const Value list = Value::Of(absl::StrCat("(", absl::StrJoin(ids, ", "), ")"));
  return {
      IsMutant(Mutant::kNoBackfillLock)
          ? Sql("SELECT 0")
          : Sql("SELECT b.id FROM job_backfill b WHERE b.id IN ? ORDER BY b.id FOR UPDATE", {list}),
      Sql(absl::StrCat(
              "SELECT ", kBackfillColumns,
              ", (SELECT COUNT(*) FROM job_watermark r FORCE INDEX (job_watermark_open_backfill) "
              "WHERE r.open_backfill = b.id AND "
              "r.status = 'RUNNING') + (SELECT COUNT(*) FROM job_slot s WHERE s.backfill AND "
              "s.until > @NOW AND EXISTS (SELECT 1 FROM job_watermark r WHERE "
              "r.backfill_id = b.id AND r.job_name = s.job_name)), "
              "(SELECT CONCAT(r.job_name, ' ', r.period) FROM job_watermark r FORCE INDEX "
              "(job_watermark_open_backfill) WHERE "
              "r.open_backfill = b.id AND r.status = 'FAILED' ORDER BY r.job_name, r.due_at "
              "LIMIT 1) FROM job_backfill b WHERE b.id IN ?"),
          {list}),
      Sql("SELECT b.id, r.job_name, MIN(r.due_at) FROM job_backfill b STRAIGHT_JOIN "
          "job_watermark r FORCE INDEX (job_watermark_open_backfill) ON r.open_backfill = b.id "
          "WHERE b.id IN ? AND b.cascades GROUP BY "
          "b.id, r.job_name",
          {list}),
      ReadClock()};
}

// ---- acts ----

absl::StatusOr<int64_t> MariadbActs::OpenBackfill(const OpenBackfillRequest& request) {
  PlanRequest plan;
  plan.writes.push_back(request.write);
  plan.writes[0].act = request.act;
  plan.writes[0].act_told = true;
  const std::vector<PeriodKey> belong = KeysOf(request);
  const std::string reopened = KeysInOrder(request.reopen);
  std::vector<PeriodKey> jobs = belong;
  jobs.push_back({request.terms.job, ""});
  std::vector<Statement> locks = {LockJobsOf(KeysInOrder(jobs)),
                                  LockRows(session_, reopened, Locking::kWait)};
  for (Statement& s : LockForPlan(plan)) locks.push_back(std::move(s));
  locks.push_back(ReadTurns());
  int64_t id = 0;
  const auto decide = [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    id = 0;
    PlanLocked locked = ReadPlanLocked(plan, &rows[2], &rows[6]);
    PlanBatch batch(plan, std::move(locked.facts), JsonForm::kMariadb);
    if (!batch.written[0]) return std::vector<Statement>{};
    RETURN_IF_ERROR(MayReopenRows(rows[0], rows[1], request.reopen));
    ASSIGN_OR_RETURN(const std::vector<Rows> inserted,
                     session_.connection.More(
                         {InsertBackfill(request, clock.now), Sql("SELECT LAST_INSERT_ID()")}));
    id = inserted[1].Int(0, 0);
    std::vector<Statement> writes =
        PlanStatements(batch, plan, locked.wakes, clock.now, session_.connection.statement_bytes());
    if (!request.reopen.empty()) {
      for (Statement& s :
           ReopenRows(rows[1], rows[6], request.write.intents, "", request.act, clock.now)) {
        writes.push_back(std::move(s));
      }
    }
    writes.push_back(
        Sql("UPDATE ? @ROWS "
            "SET r.backfill_id = ?, r.backfill = TRUE WHERE r.status = 'PLANNED'",
            {KeyTable(KeysInOrder(belong)), id}));
    writes.push_back(EventOf("backfill", request.terms.job, "", request.act, clock.now,
                             BackfillDetail(id, request.terms, PeriodsOf(request))));
    return writes;
  };
  RETURN_IF_ERROR(Perform(session_, std::move(locks), decide));
  return id;
}

absl::Status MariadbActs::SetBackfill(int64_t id, BackfillState state, const Act& act) {
  // The jobs first, then the rows, then the back-fill: as START, which waits for no row.
  const std::vector<Statement> locks = {
      Sql("SELECT j.name FROM (SELECT DISTINCT r.job_name FROM job_watermark r WHERE "
          "r.backfill_id = ? ORDER BY r.job_name) k STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON "
          "j.name = k.job_name "
          "FOR UPDATE",
          {id}),
      Sql(absl::StrCat("SELECT ", RowColumns(),
                       " FROM job_watermark r WHERE r.open_backfill = ? AND r.status IN "
                       "('PLANNED', 'FAILED') ORDER BY r.job_name, r.period FOR UPDATE"),
          {id}),
      Sql("SELECT id FROM job_backfill WHERE id = ? FOR UPDATE", {id}),
      Sql(RowsText("b.id = ?"), {id}), ReadWaiting()};
  return Perform(session_, locks, [&](const std::vector<Rows>& rows, const Clock& clock) -> Writes {
    const std::vector<BackfillRow> found = ReadBackfillRows(rows[3]);
    if (found.empty()) return NoBackfill(id);
    RETURN_IF_ERROR(MaySetBackfill(found[0], state));
    std::vector<Statement> writes = {
        Sql("UPDATE job_backfill SET state = ?, changed_by = ?, changed_why = ?, changed_at = ? "
            "WHERE id = ?",
            {Word(state), act.who, act.why, clock.now, id})};
    if (state == BackfillState::kActive) {
      writes.push_back(
          Sql("UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE "
              "backfill_id = ? AND status = 'PLANNED'",
              {id}));
    }
    if (state == BackfillState::kCancelled && rows[1].size() > 0) {
      ASSIGN_OR_RETURN(std::vector<Statement> skips,
                       SkipRows(rows[1], rows[4], {act.who, CancelledReason(id, act)}, clock.now));
      for (Statement& s : skips) writes.push_back(std::move(s));
    }
    writes.push_back(EventOf(BackfillEvent(state), found[0].terms.job, "", act, clock.now,
                             BackfillDetail(id, found[0].terms, found[0].periods)));
    return writes;
  });
}

absl::StatusOr<std::vector<BackfillRow>> MariadbActs::ReadBackfills(int64_t id,
                                                                    absl::string_view job) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql(RowsText("(? = 0 OR b.id = ?) AND (? = '' OR b.job = ?)"), {id, id, job, job})}));
  return ReadBackfillRows(rows[0]);
}

}  // namespace matins::mariadb
