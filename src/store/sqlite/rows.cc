#include "store/sqlite/rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/words.h"
#include "store/rules.h"
#include "store/sqlite/limits.h"

namespace matins::sqlite {

const char kRowColumns[] =
    "job_name, period, biz_date, status, held, generation, ver, due_at, window_start, window_end, "
    "nominal, not_before, start_by, version, backfill, manual, params, reason, by_whom, attempts, "
    "attempts_total, losses, fence, nonce, node, held_by, held_until, claimed_at, lease_until, "
    "run_until, wait_until, checkpoint, finished_at, op_at, lock_key, priority, planned_at, "
    "dispatched_at, checkpointed_at, cancel_by IS NOT NULL, cancel_why, tenant, limit_key, "
    "start_tag, backfill_id, job_watermark.rowid";

Row ReadRow(const Statement& q) {
  constexpr absl::Time kPast = absl::InfinitePast();
  Row row;
  int i = 0;
  row.key.job = q.Text(i++);
  row.key.period = q.Text(i++);
  row.biz_date = ParseDay(q.Text(i++)).value_or(absl::CivilDay());
  row.status = FromWord<PeriodStatus>(q.Text(i++)).value_or(PeriodStatus::kFailed);
  row.held = q.Bool(i++);
  row.generation = static_cast<int>(q.Int(i++));
  row.change = q.Int(i++);
  row.due = q.Time(i++, kPast);
  row.window_start = q.Time(i++, kPast);
  row.window_end = q.Time(i++, kPast);
  row.nominal = NominalFromText(q.Text(i++));
  row.not_before = q.Time(i++, kPast);
  row.start_by = q.Time(i++, absl::InfiniteFuture());
  row.version = static_cast<int>(q.Int(i++));
  row.backfill = q.Bool(i++);
  row.manual = q.Bool(i++);
  row.params = q.Text(i++);
  row.reason = q.Text(i++);
  row.by = q.Text(i++);
  row.attempts = static_cast<int>(q.Int(i++));
  row.attempts_total = static_cast<int>(q.Int(i++));
  row.losses = static_cast<int>(q.Int(i++));
  row.fence = q.Int(i++);
  row.nonce = q.Int(i++);
  row.node = q.Text(i++);
  row.held_by = q.Text(i++);
  row.held_until = q.Time(i++, kPast);
  row.claimed_at = q.Time(i++, kPast);
  row.lease_until = q.Time(i++, kPast);
  row.run_until = q.Time(i++, kPast);
  row.wait_until = q.Time(i++, kPast);
  row.checkpoint = q.Int(i++);
  row.finished_at = FinishedFromText(q.Text(i++));
  row.changed_at = q.Time(i++, kPast);
  row.lock_key = q.Text(i++);
  row.priority = static_cast<int>(q.Int(i++));
  row.planned_at = q.Time(i++, kPast);
  row.dispatched_at = q.Time(i++, kPast);
  row.checkpointed_at = q.Time(i++, kPast);
  row.cancel_asked = q.Bool(i++);
  row.cancel_why = q.Text(i++);
  row.tenant = q.Text(i++);
  row.limit_key = q.Text(i++);
  row.start_tag = q.Int(i++);
  row.backfill_id = q.Int(i++);
  row.rowid = q.Int(i++);
  return row;
}

std::optional<Row> FindRow(Connection& db, const PeriodKey& key) {
  static const std::string kSql = absl::StrCat("SELECT ", kRowColumns,
                                               " FROM job_watermark WHERE job_name = ? AND "
                                               "period = ?");
  Statement row = db.Sql(kSql, key.job, key.period);
  if (!row.Next()) return std::nullopt;
  return ReadRow(row);
}

std::vector<std::string> ReadLabels(Connection& db, const std::string& json) {
  std::vector<std::string> labels;
  if (json == "[]") return labels;
  Statement rows = db.Sql("SELECT value FROM json_each(?)", json);
  while (rows.Next()) labels.push_back(rows.Text(0));
  return labels;
}

const JobInfo* Jobs::Find(const std::string& name) {
  if (auto it = known_.find(name); it != known_.end()) {
    return it->second ? &*it->second : nullptr;
  }
  std::optional<JobInfo>& slot = known_[name];
  std::string labels;
  {
    Statement q = db_.Sql(
        "SELECT version, strict, overlap, lock_scope, lock_ttl, timeout, grace, stale_after, "
        "job_limit, max_parallel, labels, recovery, max_lost, cursor, gap_from, "
        "suspended_at IS NOT NULL, coalesce(pending = 'person', 0), next_look FROM job WHERE name "
        "= ? "
        "AND NOT deleted",
        name);
    if (!q.Next()) return nullptr;
    JobInfo& job = slot.emplace();
    job.version = static_cast<int>(q.Int(0));
    job.strict = q.Bool(1);
    job.overlap = q.Text(2);
    job.lock_scope = q.Text(3);
    job.lock_ttl = q.Micros(4);
    job.timeout = q.Micros(5);
    job.grace = q.Micros(6);
    job.stale_after = q.Micros(7);
    job.limit = q.OptionalInt(8);
    job.max_parallel = q.OptionalInt(9);
    labels = q.Text(10);
    job.recovery = q.Text(11);
    job.max_lost = static_cast<int>(q.Int(12));
    job.cursor = q.Time(13, absl::InfinitePast());
    if (!q.Null(14)) job.gap_from = q.Time(14, absl::InfinitePast());
    job.suspended = q.Bool(15);
    job.asked = q.Bool(16);
    job.next_look = q.Time(17, absl::InfiniteFuture());
  }
  const auto [known, fresh] = labels_.try_emplace(labels);
  if (fresh) known->second = ReadLabels(db_, labels);
  slot->labels = known->second;
  Statement after = db_.Sql("SELECT after_job FROM job_after WHERE job = ?", name);
  while (after.Next()) slot->after.push_back(after.Text(0));
  return &*slot;
}

// ---- the end of an attempt ----

void EndAttempt(Connection& db, Transaction& transaction, const Row& row, const Ending& ending) {
  const absl::Time now = transaction.now();
  const AfterEnd after = EndOf(row, ending, now);
  // Another program's row has no instant to start at, and keeps none once it has ended.
  const bool none = row.not_before == absl::InfinitePast() && after.final;
  const absl::Time not_before = none ? row.not_before : after.not_before;
  db.Sql(
        "UPDATE job_watermark SET status = ?, held = ?, reason = ?, ver = ver + 1, op = ?, "
        "op_at = ?, finished_at = ?, not_before = ?, look_at = ?, attempts = ?, losses = ?, "
        "fence = ?, nonce = ?, lease_until = NULL, run_until = NULL, wait_until = ?, "
        "by_whom = CASE WHEN ? THEN 'policy' ELSE by_whom END, held_by = '', held_until = NULL, "
        "cancel_by = NULL, cancel_why = NULL WHERE rowid = ?",
        Word(after.status), after.held, after.reason, ending.op, now,
        after.final ? std::optional<std::string>(FinishedText(now)) : std::nullopt, not_before,
        not_before, after.attempts, after.losses, after.burn ? transaction.NextFence() : row.fence,
        after.burn ? 0 : row.nonce, ending.wait_until, ending.skip, row.rowid)
      .Run();
  if (ending.wait_until > now) LeaveSlot(db, row, ending.wait_until);
  WriteRun(db, now, row, ending);
  Wake(db, now, row, row.lock_key, after.status == PeriodStatus::kDone);
  if (db.AnyPutOff()) WakeForSlot(db, now, row);
}

std::optional<LossRule> LossRuleOf(const JobInfo* job) {
  if (job == nullptr) return std::nullopt;
  return LossRule{job->recovery, job->max_lost};
}

void WriteRun(Connection& db, absl::Time now, const Row& row, const Ending& ending) {
  if (IsMutant(Mutant::kNoRunRow) && ending.run_word == "LOST") return;
  if (row.fence == 0) return;  // as other programs write it: no attempt of ours
  const Outcome& outcome = ending.outcome;
  const absl::Time started = StartedWithin(row, outcome.started_at, now);
  db.Sql(
        "INSERT INTO job_run (fence, job_name, period, biz_date, generation, attempt, "
        "attempts_total, node, status, reason, message, exit_code, signal, result, due_at, "
        "planned_at, dispatched_at, claimed_at, started_at, checkpointed_at, finished_at, "
        "backfill, manual, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?, ?, ?, ?, ?, ?) ON CONFLICT (fence) DO UPDATE SET status = excluded.status, "
        "reason = excluded.reason, message = excluded.message, exit_code = excluded.exit_code, "
        "signal = excluded.signal, result = excluded.result, started_at = excluded.started_at, "
        "finished_at = excluded.finished_at",
        row.fence, row.key.job, row.key.period, FormatDay(row.biz_date), row.generation,
        row.attempts, row.attempts_total, row.node, ending.run_word, outcome.reason,
        outcome.message, outcome.exit_code, outcome.signal, outcome.result, row.due, row.planned_at,
        row.dispatched_at, row.claimed_at, started, row.checkpointed_at, now, row.backfill,
        row.manual, row.version)
      .Run();
}

std::string WakeText(absl::string_view waiting) {
  return absl::StrCat(
      "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE rowid = "
      "coalesce((SELECT w.id FROM (SELECT rowid AS id, job_name FROM job_watermark WHERE ",
      waiting, " AND status = 'PLANNED' ORDER BY due_at LIMIT ", kWakeLook,
      ") w WHERE EXISTS (SELECT 1 FROM job j, job_node n WHERE j.name = w.job_name AND NOT "
      "j.deleted AND j.suspended_at IS NULL AND NOT n.left AND n.seen_at > ?2 AND "
      "(j.labels = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(j.labels) l WHERE l.value "
      "NOT IN (SELECT value FROM json_each(n.labels))))) LIMIT 1), "
      "(SELECT rowid FROM job_watermark WHERE ",
      waiting, " AND status = 'PLANNED' ORDER BY due_at LIMIT 1))");
}

void Wake(Connection& db, absl::Time now, const PeriodRow& row, const std::string& lock_key,
          bool done) {
  if (!db.AnyPutOff()) return;
  static const auto& of_job = *new std::string(WakeText("job_name = ?1 AND look_at > not_before"));
  db.Sql(of_job, row.key.job, now - kNodeGone).Run();
  if (!lock_key.empty() && lock_key != absl::StrCat("job/", row.key.job)) {
    static const auto& of_lock = *new std::string(
        WakeText("lock_key = ?1 AND lock_key IS NOT NULL AND look_at > not_before"));
    db.Sql(of_lock, lock_key, now - kNodeGone).Run();
  }
  if (!done) return;
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before WHERE job_name IN (SELECT job FROM "
        "job_after WHERE after_job = ?) AND biz_date = ? AND status = 'PLANNED' AND "
        "look_at > not_before",
        row.key.job, FormatDay(row.biz_date))
      .Run();
}

void RaiseEpoch(Connection& db, int64_t epoch, absl::Time now) {
  db.Sql("UPDATE matins_meta SET value = ? WHERE key = 'epoch'", epoch).Run();
  db.Sql("UPDATE matins_meta SET value = max(value, ?) WHERE key = 'fence_next'", FirstNumber(now))
      .Run();
}

void WriteEvent(Connection& db, absl::Time now, const Event& event) {
  db.Sql(
        "INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        now, event.kind, event.job, event.period, event.generation, event.who, event.why,
        event.detail)
      .Run();
}

// ---- text forms ----

std::string FinishedText(absl::Time t) {
  const absl::CivilSecond civil = absl::ToCivilSecond(t, absl::UTCTimeZone());
  const int64_t micros = ToMicros(t) - ToMicros(absl::FromCivil(civil, absl::UTCTimeZone()));
  return absl::StrCat(NominalText(civil), ".", absl::Dec(micros, absl::kZeroPad6));
}

absl::Time FinishedFromText(const std::string& text) {
  if (text.empty()) return absl::InfinitePast();
  absl::Time t;
  for (const char* form : {"%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d%ET%H:%M:%E*S", "%Y-%m-%d %H:%M:%E*S%Ez",
                           "%Y-%m-%d%ET%H:%M:%E*S%Ez", "%Y-%m-%d"}) {
    if (absl::ParseTime(form, text, absl::UTCTimeZone(), &t, nullptr)) return t;
  }
  return absl::InfinitePast();
}

// Both are called for each run, so they do without the library's general machinery.
std::string NominalText(absl::CivilSecond nominal) {
  const auto two = [](int value) { return absl::Dec(value, absl::kZeroPad2); };
  return absl::StrCat(FormatDay(absl::CivilDay(nominal)), " ", two(nominal.hour()), ":",
                      absl::StrCat(two(nominal.minute()), ":", two(nominal.second())));
}

absl::CivilSecond NominalFromText(const std::string& text) {
  if (text.size() == 19 && text[10] == ' ') {
    std::string instant = text + "Z";
    instant[10] = 'T';
    if (const auto t = ParseInstant(instant); t.ok()) {
      return absl::ToCivilSecond(*t, absl::UTCTimeZone());
    }
  }
  absl::Time t;
  if (!absl::ParseTime("%Y-%m-%d %H:%M:%S", text, absl::UTCTimeZone(), &t, nullptr)) {
    return absl::CivilSecond();
  }
  return absl::ToCivilSecond(t, absl::UTCTimeZone());
}

}  // namespace matins::sqlite
