#include "store/sqlite/backfills.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/sqlite/sqlite_acts.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

constexpr char kColumns[] =
    "SELECT b.id, b.job, b.from_day, b.to_day, b.reprocess, b.max_parallel, b.hours, b.zone, "
    "b.cascades, b.state, b.periods, b.who, b.why, b.at, b.changed_by, b.changed_why, b.changed_at";

BackfillRow ReadBackfill(const Statement& q) {
  BackfillRow row;
  row.id = q.Int(0);
  row.terms.job = q.Text(1);
  row.terms.from = ParseDay(q.Text(2)).value_or(absl::CivilDay());
  row.terms.to = ParseDay(q.Text(3)).value_or(absl::CivilDay());
  row.terms.reprocess = q.Text(4);
  if (!q.Null(5)) row.terms.max_parallel = static_cast<int>(q.Int(5));
  row.terms.window = q.Text(6);
  row.terms.zone = q.Text(7);
  row.terms.cascade = q.Bool(8);
  row.state = FromWord<BackfillState>(q.Text(9)).value_or(BackfillState::kPaused);
  row.periods = q.Int(10);
  row.act = {q.Text(11), q.Text(12)};
  row.opened_at = q.Time(13, kPast);
  row.changed = {q.Text(14), q.Text(15)};
  row.changed_at = q.Time(16, kPast);
  return row;
}

// What is there of its periods.
void CountPeriods(Connection& db, BackfillRow& row) {
  Statement q = db.Sql(
      "SELECT sum(status = 'PLANNED'), sum(status = 'RUNNING'), sum(status = 'DONE'), "
      "sum(status = 'FAILED'), sum(status = 'SKIPPED') FROM job_watermark WHERE backfill_id = ?",
      row.id);
  if (!q.Next()) return;
  row.planned = q.Int(0);
  row.running = q.Int(1);
  row.done = q.Int(2);
  row.failed = q.Int(3);
  row.skipped = q.Int(4);
}

std::optional<BackfillRow> FindBackfill(Connection& db, int64_t id) {
  static const std::string kSql = absl::StrCat(kColumns, " FROM job_backfill b WHERE b.id = ?");
  Statement q = db.Sql(kSql, id);
  if (!q.Next()) return std::nullopt;
  return ReadBackfill(q);
}

int64_t InsertBackfill(Connection& db, absl::Time now, const OpenBackfillRequest& request) {
  const BackfillTerms& terms = request.terms;
  Statement q = db.Sql(
      "INSERT INTO job_backfill (job, from_day, to_day, reprocess, max_parallel, hours, zone, "
      "cascades, state, periods, who, why, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'active', ?, ?, ?, "
      "?) RETURNING id",
      terms.job, FormatDay(terms.from), FormatDay(terms.to), terms.reprocess,
      terms.max_parallel ? std::optional<int64_t>(*terms.max_parallel) : std::nullopt, terms.window,
      terms.zone, terms.cascade, PeriodsOf(request), request.act.who, request.act.why, now);
  int64_t id = 0;
  while (q.Next()) id = q.Int(0);
  return id;
}

}  // namespace

const BackfillFacts* BackfillGate::Find(int64_t id) {
  const auto [found, fresh] = known_.try_emplace(id);
  if (!fresh) return found->second ? &*found->second : nullptr;
  const std::optional<BackfillRow> row = FindBackfill(db_, id);
  if (!row) return nullptr;
  BackfillFacts facts;
  facts.terms = row->terms;
  facts.state = row->state;
  facts.changed_by = row->changed.who;
  {
    Statement running = db_.Sql(
        "SELECT (SELECT count(*) FROM job_watermark WHERE backfill_id = ?1 AND status = "
        "'RUNNING') + (SELECT count(*) FROM job_slot s WHERE s.backfill AND s.until > ?2 AND "
        "EXISTS (SELECT 1 FROM job_watermark r WHERE r.backfill_id = ?1 AND "
        "r.job_name = s.job_name))",
        id, now_);
    if (running.Next()) facts.running = running.Int(0);
  }
  {
    Statement failed = db_.Sql(
        "SELECT job_name || ' ' || period FROM job_watermark WHERE backfill_id = ? AND status = "
        "'FAILED' ORDER BY job_name, due_at LIMIT 1",
        id);
    if (failed.Next()) facts.failed = failed.Text(0);
  }
  if (facts.terms.cascade) {
    Statement oldest = db_.Sql(
        "SELECT job_name, min(due_at) FROM job_watermark WHERE backfill_id = ? AND status IN "
        "('PLANNED', 'RUNNING', 'FAILED') GROUP BY job_name",
        id);
    while (oldest.Next()) facts.oldest[oldest.Text(0)] = oldest.Time(1, kPast);
  }
  found->second = std::move(facts);
  return &*found->second;
}

std::optional<BackfillStop> BackfillGate::Refuse(const Row& row) {
  const BackfillFacts* facts = Find(row.backfill_id);
  if (facts == nullptr) return std::nullopt;
  return StopOf(row.backfill_id, *facts, row, now_);
}

void BackfillGate::Granted(const Row& row) {
  const auto found = known_.find(row.backfill_id);
  if (found != known_.end() && found->second) ++found->second->running;
}

// ---- acts ----

absl::StatusOr<int64_t> SqliteActs::OpenBackfill(const OpenBackfillRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "open_backfill"));
  const absl::Time now = transaction.now();
  HoldAtOnce none;
  std::vector<HeldRow> held;
  PlanWrite write = request.write;
  write.act = request.act;
  write.act_told = true;
  if (transaction.frozen() || !WritePlan(*db_, now, write, &none, &held)) {
    RETURN_IF_ERROR(db_->status());
    return 0;
  }
  Turns turns = TurnsOfRows(*db_, now, request.reopen);
  for (const PeriodKey& key : request.reopen) {
    RETURN_IF_ERROR(ReopenRow(*db_, now, key, "", request.act, turns));
  }
  const int64_t id = InsertBackfill(*db_, now, request);
  for (const PeriodKey& key : KeysOf(request)) {
    db_->Sql(
           "UPDATE job_watermark SET backfill_id = ?, backfill = 1 WHERE job_name = ? AND period = "
           "? AND status = 'PLANNED'",
           id, key.job, key.period)
        .Run();
  }
  WriteEvent(*db_, now,
             {.kind = "backfill",
              .job = request.terms.job,
              .who = request.act.who,
              .why = request.act.why,
              .detail = BackfillDetail(id, request.terms, PeriodsOf(request))});
  RETURN_IF_ERROR(transaction.Commit());
  return id;
}

absl::Status SqliteActs::SetBackfill(int64_t id, BackfillState state, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "set_backfill"));
  const absl::Time now = transaction.now();
  std::optional<BackfillRow> row = FindBackfill(*db_, id);
  if (!row) return db_->ok() ? NoBackfill(id) : db_->status();
  CountPeriods(*db_, *row);
  RETURN_IF_ERROR(db_->status());
  RETURN_IF_ERROR(MaySetBackfill(*row, state));
  db_->Sql(
         "UPDATE job_backfill SET state = ?, changed_by = ?, changed_why = ?, changed_at = ? WHERE "
         "id = ?",
         Word(state), act.who, act.why, now, id)
      .Run();
  if (state == BackfillState::kActive) {
    db_->Sql(
           "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE backfill_id = ? "
           "AND status = 'PLANNED'",
           id)
        .Run();
  }
  if (state == BackfillState::kCancelled) {
    std::vector<PeriodKey> waiting;
    {
      Statement q = db_->Sql(
          "SELECT job_name, period FROM job_watermark WHERE backfill_id = ? AND status IN "
          "('PLANNED', 'FAILED')",
          id);
      while (q.Next()) waiting.push_back({q.Text(0), q.Text(1)});
    }
    RETURN_IF_ERROR(SkipRows(*db_, now, waiting, {act.who, CancelledReason(id, act)}));
  }
  WriteEvent(*db_, now,
             {.kind = BackfillEvent(state),
              .job = row->terms.job,
              .who = act.who,
              .why = act.why,
              .detail = BackfillDetail(id, row->terms, row->periods)});
  return transaction.Commit();
}

absl::StatusOr<std::vector<BackfillRow>> SqliteActs::ReadBackfills(int64_t id,
                                                                   absl::string_view job) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  static const std::string kSql =
      absl::StrCat(kColumns,
                   " FROM job_backfill b WHERE (?1 = 0 OR b.id = ?1) AND (?2 = '' OR b.job = ?2) "
                   "ORDER BY b.id DESC");
  std::vector<BackfillRow> rows;
  {
    Statement q = db_->Sql(kSql, id, job);
    while (q.Next()) rows.push_back(ReadBackfill(q));
  }
  for (BackfillRow& row : rows) CountPeriods(*db_, row);
  RETURN_IF_ERROR(db_->status());
  return rows;
}

}  // namespace matins::sqlite
