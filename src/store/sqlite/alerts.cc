// Alerts and silences of a SQLite store.
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/act_rules.h"
#include "store/alert_text.h"
#include "store/rules.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();
constexpr absl::Time kNever = absl::InfiniteFuture();

AlertRow ReadAlert(const Statement& q) {
  AlertRow row;
  row.id = q.Int(0);
  row.key = {q.Text(1), q.Text(2), q.Text(3)};
  row.channel = q.Text(4);
  row.episode = static_cast<int>(q.Int(5));
  row.kind = q.Text(6);
  row.level = static_cast<int>(q.Int(7));
  row.period = q.Text(8);
  row.due = q.Time(9, kPast);
  row.count = q.Int(10);
  row.text = q.Text(11);
  row.by_job = q.Bool(12);
  row.by_audit = q.Bool(13);
  row.momentary = q.Bool(14);
  row.opened_at = q.Time(15, kPast);
  row.seen_at = q.Time(16, kPast);
  row.resolved_at = q.Time(17, kPast);
  row.resolution = q.Text(18);
  row.told_at = q.Time(19, kPast);
  row.resolve_told_at = q.Time(20, kPast);
  row.next_at = q.Time(21, kNever);
  row.attempts = static_cast<int>(q.Int(22));
  row.claimed_by = q.Text(23);
  row.last_error = q.Text(24);
  row.acked_at = q.Time(25, kPast);
  row.acked_by = q.Text(26);
  row.acked_why = q.Text(27);
  row.remind = q.Null(28) ? absl::InfiniteDuration() : q.Micros(28);
  return row;
}

std::optional<absl::Duration> Remind(const AlertRow& row) {
  if (row.remind == absl::InfiniteDuration()) return std::nullopt;
  return row.remind;
}

void Save(Connection& db, const AlertRow& row) {
  if (row.id == 0) {
    db.Sql(
          "INSERT INTO job_alert (topic, job, about, channel, episode, kind, level, period, "
          "due_at, "
          "count, text, by_job, by_audit, momentary, opened_at, seen_at, resolved_at, resolution, "
          "told_at, resolve_told_at, next_at, attempts, claimed_by, last_error, acked_at, "
          "acked_by, "
          "acked_why, remind) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
          "?, ?, ?, ?, ?, ?, ?, ?)",
          row.key.topic, row.key.job, row.key.about, row.channel, row.episode, row.kind, row.level,
          row.period, row.due, row.count, row.text, row.by_job, row.by_audit, row.momentary,
          row.opened_at, row.seen_at, row.resolved_at, row.resolution, row.told_at,
          row.resolve_told_at, row.next_at, row.attempts, row.claimed_by, row.last_error,
          row.acked_at, row.acked_by, row.acked_why, Remind(row))
        .Run();
    return;
  }
  db.Sql(
        "UPDATE job_alert SET episode = ?, kind = ?, level = ?, period = ?, due_at = ?, count = ?, "
        "text = ?, by_job = ?, by_audit = ?, momentary = ?, opened_at = ?, seen_at = ?, "
        "resolved_at = ?, resolution = ?, told_at = ?, resolve_told_at = ?, next_at = ?, attempts "
        "= "
        "?, claimed_by = ?, last_error = ?, acked_at = ?, acked_by = ?, acked_why = ?, remind = ? "
        "WHERE id = ?",
        row.episode, row.kind, row.level, row.period, row.due, row.count, row.text, row.by_job,
        row.by_audit, row.momentary, row.opened_at, row.seen_at, row.resolved_at, row.resolution,
        row.told_at, row.resolve_told_at, row.next_at, row.attempts, row.claimed_by, row.last_error,
        row.acked_at, row.acked_by, row.acked_why, Remind(row), row.id)
      .Run();
}

std::vector<AlertRow> All(Statement q) {
  std::vector<AlertRow> rows;
  while (q.Next()) rows.push_back(ReadAlert(q));
  return rows;
}

std::vector<AlertRow> OfKeys(Connection& db, const AlertChanges& changes) {
  std::set<AlertKey> keys;
  for (const AlertRaise& raise : changes.raise) keys.insert(raise.key);
  for (const AlertResolve& resolve : changes.resolve) keys.insert(resolve.key);
  static const std::string kSql =
      absl::StrCat("SELECT ", kAlertColumns,
                   " FROM job_alert WHERE topic = ? AND job = ? AND about = ? ORDER BY id");
  std::vector<AlertRow> rows;
  for (const AlertKey& key : keys) {
    for (AlertRow& row : All(db.Sql(kSql, key.topic, key.job, key.about))) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<SilenceRow> Silences(Connection& db) {
  std::vector<SilenceRow> rows;
  Statement q = db.Sql(
      "SELECT id, job, from_at, until_at, who, why, ended_at, ended_by FROM job_silence ORDER BY "
      "id DESC");
  while (q.Next()) {
    rows.push_back({q.Int(0), q.Text(1), q.Time(2, kPast), q.Time(3, kPast), q.Text(4), q.Text(5),
                    q.Time(6, kPast), q.Text(7)});
  }
  return rows;
}

constexpr char kNotSilenced[] =
    " NOT EXISTS (SELECT 1 FROM job_silence s WHERE s.ended_at IS NULL AND s.from_at <= ?1 AND "
    "s.until_at > ?1 AND s.job IN ('', a.job))";

void ReadTroubles(Connection& db, absl::Time since, AlertFacts& facts) {
  {
    Statement q = db.Sql(
        "SELECT w.job_name, w.period, w.due_at, w.op_at, w.held, w.fence, w.node, w.reason, "
        "coalesce(r.message, ''), j.definition FROM job_watermark w JOIN job j ON j.name = "
        "w.job_name AND NOT j.deleted LEFT JOIN job_run r ON r.fence = w.fence WHERE w.status = "
        "'FAILED' AND w.op_at >= ? ORDER BY w.op_at LIMIT ?",
        since, kMostTroubles);
    while (q.Next()) {
      facts.troubles.push_back({.kind = AlertTrouble::Kind::kFailed,
                                .key = {q.Text(0), q.Text(1)},
                                .due = q.Time(2, kPast),
                                .at = q.Time(3, kPast),
                                .held = q.Bool(4),
                                .fence = q.Int(5),
                                .node = q.Text(6),
                                .why = TroubleWhy(q.Text(7), q.Text(8)),
                                .definition = q.Text(9)});
    }
  }
  {
    Statement q = db.Sql(
        "SELECT r.job_name, r.period, r.due_at, r.finished_at, r.fence, r.node, r.reason, "
        "r.message, j.definition FROM job_run r JOIN job j ON j.name = r.job_name AND NOT "
        "j.deleted WHERE r.status = 'LOST' AND r.finished_at >= ? ORDER BY r.finished_at LIMIT ?",
        since, kMostTroubles);
    while (q.Next()) {
      facts.troubles.push_back({.kind = AlertTrouble::Kind::kLost,
                                .key = {q.Text(0), q.Text(1)},
                                .due = q.Time(2, kPast),
                                .at = q.Time(3, kPast),
                                .fence = q.Int(4),
                                .node = q.Text(5),
                                .why = TroubleWhy(q.Text(6), q.Text(7)),
                                .definition = q.Text(8)});
    }
  }
  Statement q = db.Sql(
      "SELECT e.kind, e.job, e.period, e.at, e.who, e.why, e.detail, coalesce(j.definition, '') "
      "FROM job_event e LEFT JOIN job j ON j.name = e.job AND NOT j.deleted WHERE e.id > coalesce("
      "(SELECT max(id) FROM job_event), 0) - ?2 AND e.kind IN ('clock', 'zombie') AND e.at >= ?1 "
      "ORDER BY e.id",
      since, kMostTroubles);
  while (q.Next()) {
    if (auto trouble = TroubleOfEvent({.at = q.Time(3, kPast),
                                       .kind = q.Text(0),
                                       .job = q.Text(1),
                                       .period = q.Text(2),
                                       .who = q.Text(4),
                                       .why = q.Text(5),
                                       .detail = q.Text(6)},
                                      q.Text(7))) {
      facts.troubles.push_back(*std::move(trouble));
    }
  }
}

void ReadEndedAudits(Connection& db, const AlertLook& look, AlertFacts& facts) {
  Statement q = db.Sql(
      "SELECT id, beat, due_at, by_whom, started_at, finished_at, expected, done, findings, "
      "alarms, canary, detail FROM job_audit WHERE id > coalesce((SELECT max(id) FROM job_audit), "
      "0) "
      "- ?3 AND finished_at >= ?1 AND beat <> 'hand' AND id NOT IN (SELECT value FROM "
      "json_each(?2)) ORDER BY finished_at, id",
      look.since, JsonNumbers(look.known_audits), kMostTroubles);
  while (q.Next()) {
    facts.audits.push_back({q.Int(0), q.Text(1), q.Time(2, kPast), q.Text(3), q.Time(4, kPast),
                            q.Time(5, kPast), q.Int(6), q.Int(7), q.Int(8), q.Int(9), q.Bool(10),
                            q.Text(11)});
  }
}

void ReadMadeGood(Connection& db, AlertFacts& facts) {
  const auto add = [&](Statement q) {
    while (q.Next()) {
      facts.made_good.push_back(
          {{q.Text(0), q.Text(1), q.Text(2)},
           ResolutionText(q.Text(3), q.Text(4), q.Text(5), FinishedFromText(q.Text(6)))});
    }
  };
  add(db.Sql(
      "SELECT DISTINCT a.topic, a.job, a.about, w.status, w.reason, w.by_whom, w.finished_at FROM "
      "job_alert a JOIN job_watermark w ON w.job_name = a.job AND w.period = a.period WHERE "
      "a.resolved_at IS NULL AND a.topic = 'gap' AND NOT a.by_job AND w.status IN ('DONE', "
      "'SKIPPED')"));
  add(db.Sql(
      "SELECT DISTINCT a.topic, a.job, a.about, 'DONE', '', '', (SELECT max(w.finished_at) FROM "
      "job_watermark w WHERE w.job_name = a.job AND w.status = 'DONE' AND w.due_at >= a.due_at) AS "
      "at FROM job_alert a WHERE a.resolved_at IS NULL AND a.topic = 'gap' AND a.by_job AND at IS "
      "NOT NULL"));
  add(db.Sql(
      "SELECT DISTINCT a.topic, a.job, a.about, 'GONE', '', '', NULL FROM job_alert a WHERE "
      "a.resolved_at IS NULL AND a.job <> '' AND NOT EXISTS (SELECT 1 FROM job j WHERE j.name = "
      "a.job AND NOT j.deleted)"));
  if (facts.frozen_why.empty()) {
    add(db.Sql(
        "SELECT DISTINCT a.topic, a.job, a.about, 'STEADY', '', '', NULL FROM job_alert a WHERE "
        "a.resolved_at IS NULL AND a.topic = 'clock'"));
  }
}

}  // namespace

absl::StatusOr<AlertFacts> SqliteActs::ReadAlertFacts(const AlertLook& look) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  AlertFacts facts;
  facts.now = snapshot.now();
  {
    Statement q = db_->Sql(
        "SELECT key, value FROM matins_meta WHERE key IN ('alerts_looked', 'clock_frozen_why')");
    while (q.Next()) {
      if (q.Text(0) == "alerts_looked") {
        facts.looked = q.Time(1, kPast);
      } else {
        facts.frozen_why = q.Text(1);
      }
    }
  }
  ReadTroubles(*db_, look.since, facts);
  ReadEndedAudits(*db_, look, facts);
  ReadMadeGood(*db_, facts);
  Statement q = db_->Sql(
      absl::StrCat("SELECT a.channel, min(a.next_at) FROM job_alert a WHERE a.next_at IS NOT NULL "
                   "AND",
                   kNotSilenced, " GROUP BY a.channel ORDER BY a.channel"),
      facts.now);
  while (q.Next()) facts.due.push_back({q.Text(0), q.Time(1, kNever)});
  RETURN_IF_ERROR(db_->status());
  return facts;
}

absl::StatusOr<AlertCounts> SqliteActs::PutAlerts(const AlertChanges& changes) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "put_alerts"));
  AlertBatch batch(OfKeys(*db_, changes), Silences(*db_), transaction.now());
  const AlertCounts counts = batch.Put(changes);
  for (const AlertRow* row : batch.Changed()) Save(*db_, *row);
  if (changes.looked != kPast) {
    db_->Sql("INSERT OR REPLACE INTO matins_meta (key, value) VALUES ('alerts_looked', ?)",
             changes.looked)
        .Run();
  }
  RETURN_IF_ERROR(transaction.Commit());
  return counts;
}

absl::StatusOr<AlertClaimed> SqliteActs::ClaimAlerts(const AlertClaim& claim) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "claim_alerts"));
  AlertClaimed claimed{transaction.now(), {}};
  const absl::Time due = IsMutant(Mutant::kNoAlertClaim) ? claimed.now + kAlertLease : claimed.now;
  claimed.rows = All(db_->Sql(absl::StrCat("SELECT ", kAlertColumns,
                                           " FROM job_alert a WHERE a.channel = ?2 AND a.next_at "
                                           "<= ?3 AND",
                                           kNotSilenced, " ORDER BY a.next_at, a.id LIMIT ?4"),
                              claimed.now, claim.channel, due, claim.limit));
  for (AlertRow& row : claimed.rows) {
    ClaimAlert(claim.by, claimed.now, row);
    Save(*db_, row);
  }
  RETURN_IF_ERROR(transaction.Commit());
  return claimed;
}

absl::StatusOr<std::vector<bool>> SqliteActs::EndAlerts(absl::string_view by,
                                                        absl::Span<const AlertSent> sent) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "end_alerts"));
  const absl::Time now = transaction.now();
  std::vector<int64_t> ids;
  for (const AlertSent& one : sent) ids.push_back(one.id);
  AlertBatch batch(All(db_->Sql(absl::StrCat("SELECT ", kAlertColumns,
                                             " FROM job_alert WHERE id IN (SELECT value FROM "
                                             "json_each(?)) ORDER BY id"),
                                JsonNumbers(ids))),
                   {}, now);
  std::vector<bool> ended = batch.End(by, sent);
  for (const AlertRow* row : batch.Changed()) Save(*db_, *row);
  db_->Sql("DELETE FROM job_alert WHERE next_at IS NULL AND resolved_at < ?", now - kAlertKept)
      .Run();
  db_->Sql("DELETE FROM job_silence WHERE until_at < ?", now - kAlertKept).Run();
  RETURN_IF_ERROR(transaction.Commit());
  return ended;
}

absl::StatusOr<std::vector<AlertRow>> SqliteActs::ReadAlerts(const AlertFilter& filter) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<AlertRow> rows =
      All(db_->Sql(absl::StrCat("SELECT ", kAlertColumns,
                                " FROM job_alert a WHERE (NOT ?1 OR a.resolved_at IS NULL) AND (?2 "
                                "= '' OR a.job = ?2) ORDER BY a.resolved_at IS NULL DESC, "
                                "a.opened_at DESC, a.id DESC LIMIT ?3"),
                   filter.open_only, filter.job, filter.limit));
  RETURN_IF_ERROR(db_->status());
  return rows;
}

absl::Status SqliteActs::AckAlert(int64_t id, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "ack_alert"));
  AlertBatch batch(
      All(db_->Sql(absl::StrCat("SELECT ", kAlertColumns,
                                " FROM job_alert WHERE (topic, job, about) IN (SELECT topic, job, "
                                "about FROM job_alert WHERE id = ?) ORDER BY id"),
                   id)),
      {}, transaction.now());
  ASSIGN_OR_RETURN(const AlertRow* named, batch.Ack(id, act));
  for (const AlertRow* row : batch.Changed()) Save(*db_, *row);
  WriteEvent(*db_, transaction.now(),
             {.kind = "acked",
              .job = named->key.job,
              .period = named->period,
              .who = act.who,
              .why = act.why,
              .detail = AlertDetail(*named)});
  return transaction.Commit();
}

absl::StatusOr<int64_t> SqliteActs::Silence(absl::string_view job, absl::Duration length,
                                            const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "silence"));
  const absl::Time now = transaction.now();
  if (!job.empty() && !db_->Sql("SELECT 1 FROM job WHERE name = ? AND NOT deleted", job).Next()) {
    return NoJob(job);
  }
  int64_t id = 0;
  {
    Statement row = db_->Sql(
        "INSERT INTO job_silence (job, from_at, until_at, who, why) VALUES (?, ?, ?, ?, ?) "
        "RETURNING id",
        job, now, now + length, act.who, act.why);
    while (row.Next()) id = row.Int(0);
  }
  WriteEvent(*db_, now,
             {.kind = "silenced",
              .job = job,
              .who = act.who,
              .why = act.why,
              .detail = SilenceDetail(id, now + length)});
  RETURN_IF_ERROR(transaction.Commit());
  return id;
}

absl::Status SqliteActs::Unsilence(int64_t id, const Act& act) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "unsilence"));
  const absl::Time now = transaction.now();
  for (const SilenceRow& row : Silences(*db_)) {
    if (row.id != id || row.ended_at != kPast || row.until <= now) continue;
    db_->Sql("UPDATE job_silence SET ended_at = ?, ended_by = ? WHERE id = ?", now, act.who, id)
        .Run();
    WriteEvent(*db_, now,
               {.kind = "unsilenced",
                .job = row.job,
                .who = act.who,
                .why = act.why,
                .detail = SilenceDetail(id, row.until)});
    return transaction.Commit();
  }
  return NoSilence(id);
}

absl::StatusOr<std::vector<SilenceRow>> SqliteActs::ReadSilences() {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<SilenceRow> rows = Silences(*db_);
  RETURN_IF_ERROR(db_->status());
  return rows;
}

absl::Status SqliteActs::Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                                absl::string_view detail) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "record"));
  WriteEvent(*db_, transaction.now(),
             {.kind = kind,
              .job = key.job,
              .period = key.period,
              .who = act.who,
              .why = act.why,
              .detail = std::string(detail)});
  return transaction.Commit();
}

}  // namespace matins::sqlite
