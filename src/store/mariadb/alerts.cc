// Alerts and silences of a MariaDB store: the rows are locked, then the clock is read, then the
// rules of store/alert_rules.h decide.
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/act_rules.h"
#include "store/alert_rows.h"
#include "store/locked_change.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/sql.h"
#include "store/rules.h"

namespace matins::mariadb {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

constexpr char kSilenceColumns[] = "id, job, from_at, until_at, who, why, ended_at, ended_by";

std::vector<Value> Changing(const AlertRow& row) {
  return {row.episode,         row.kind,     row.level,       row.period,     row.due,
          row.count,           row.text,     row.by_job,      row.by_audit,   row.momentary,
          row.opened_at,       row.seen_at,  row.resolved_at, row.resolution, row.told_at,
          row.resolve_told_at, row.next_at,  row.attempts,    row.claimed_by, row.last_error,
          row.acked_at,        row.acked_by, row.acked_why,   row.remind};
}

constexpr const char* kChanging[] = {
    "episode",     "kind",       "level",    "period",          "due_at",    "count",
    "text",        "by_job",     "by_audit", "momentary",       "opened_at", "seen_at",
    "resolved_at", "resolution", "told_at",  "resolve_told_at", "next_at",   "attempts",
    "claimed_by",  "last_error", "acked_at", "acked_by",        "acked_why", "remind"};

// Of two that add one row the second adds nothing: it would say the same.
Statement Save(const AlertRow& row) {
  std::vector<Value> values = Changing(row);
  std::string sets, marks;
  for (const char* column : kChanging) {
    absl::StrAppend(&sets, sets.empty() ? "" : ", ", column, " = ?");
    absl::StrAppend(&marks, "?, ");
  }
  if (row.id == 0) {
    for (const std::string& part : {row.key.topic, row.key.job, row.key.about, row.channel}) {
      values.emplace_back(part);
    }
    return Sql(absl::StrCat("INSERT INTO job_alert (", absl::StrJoin(kChanging, ", "),
                            ", topic, job, about, channel) VALUES (", marks,
                            "?, ?, ?, ?) ON DUPLICATE KEY UPDATE channel = VALUES(channel)"),
               values);
  }
  values.emplace_back(row.id);
  return Sql(absl::StrCat("UPDATE job_alert SET ", sets, " WHERE id = ?"), values);
}

constexpr char kNotSilenced[] =
    "NOT EXISTS (SELECT 1 FROM job_silence s WHERE s.ended_at IS NULL AND s.from_at <= @NOW AND "
    "s.until_at > @NOW AND s.job IN ('', a.job))";

std::string Columns(absl::string_view more) {
  return absl::StrCat("SELECT ", kAlertColumns, " FROM job_alert a ", more);
}

Value IdTable(absl::Span<const int64_t> ids) {
  return Value::Of(absl::StrCat(ids.empty() ? "0" : absl::StrJoin(ids, ", ")));
}

absl::Time OrEpoch(absl::Time since) { return std::max(since, absl::UnixEpoch()); }

std::vector<Statement> Troubles(absl::Time since) {
  return {
      Sql("SELECT w.job_name, w.period, w.due_at, w.op_at, w.held, w.fence, w.node, w.reason, "
          "r.message, j.definition FROM job_watermark w FORCE INDEX (job_watermark_due) "
          "STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.name = w.job_name AND NOT "
          "j.deleted LEFT JOIN job_run r FORCE INDEX (PRIMARY) ON r.fence = w.fence WHERE w.status "
          "= 'FAILED' AND "
          "w.op_at >= ? ORDER BY w.op_at LIMIT ?",
          {since, kMostTroubles}),
      Sql("SELECT r.job_name, r.period, r.due_at, r.finished_at, FALSE, r.fence, r.node, r.reason, "
          "r.message, j.definition FROM job_run r FORCE INDEX (job_run_lost) STRAIGHT_JOIN job j "
          "FORCE INDEX (PRIMARY) ON j.name = r.job_name AND NOT "
          "j.deleted WHERE r.lost_at >= ? ORDER BY r.lost_at LIMIT ?",
          {since, kMostTroubles}),
      Sql("SELECT e.id, e.at, e.kind, e.job, e.period, e.generation, e.who, e.why, e.detail, "
          "j.definition FROM job_event e LEFT JOIN job j FORCE INDEX (PRIMARY) ON j.name = e.job "
          "AND NOT j.deleted WHERE "
          "e.id > COALESCE((SELECT MAX(id) FROM job_event), 0) - ? AND e.kind IN ('clock', "
          "'zombie') AND e.at >= ? ORDER BY e.id",
          {kMostTroubles, since})};
}

std::vector<Statement> MadeGood() {
  return {
      Sql("SELECT DISTINCT a.topic, a.job, a.about, w.status, w.reason, w.by_whom, w.finished_at "
          "FROM job_alert a STRAIGHT_JOIN job_watermark w FORCE INDEX (PRIMARY) ON w.job_name = "
          "a.job AND w.period = "
          "a.period WHERE a.resolved_at IS NULL AND a.topic = 'gap' AND NOT a.by_job AND w.status "
          "IN ('DONE', 'SKIPPED')"),
      Sql("SELECT g.* FROM (SELECT DISTINCT a.topic, a.job, a.about, 'DONE', '' AS reason, '' AS "
          "by_whom, (SELECT MAX(w.finished_at) FROM job_watermark w FORCE INDEX "
          "(job_watermark_open) WHERE w.job_name = a.job AND "
          "w.status = 'DONE' AND w.due_at >= a.due_at) AS done_at FROM job_alert a WHERE "
          "a.resolved_at IS NULL AND a.topic = 'gap' AND a.by_job) g WHERE g.done_at IS NOT NULL"),
      Sql("SELECT DISTINCT a.topic, a.job, a.about, 'GONE', '', '', NULL FROM job_alert a WHERE "
          "a.resolved_at IS NULL AND a.job <> '' AND NOT EXISTS (SELECT 1 FROM job j WHERE j.name "
          "= a.job AND NOT j.deleted)"),
      Sql("SELECT DISTINCT a.topic, a.job, a.about, 'STEADY', '', '', NULL FROM job_alert a WHERE "
          "a.resolved_at IS NULL AND a.topic = 'clock' AND NOT EXISTS (SELECT 1 FROM matins_meta "
          "WHERE name = 'clock_frozen_why' AND value <> '')")};
}

}  // namespace

absl::StatusOr<AlertFacts> MariadbActs::ReadAlertFacts(const AlertLook& look) {
  const absl::Time since = OrEpoch(look.since);
  std::vector<Statement> asked = {
      Sql("SELECT @NOW"),
      Sql("SELECT name, value FROM matins_meta WHERE name IN ('alerts_looked', "
          "'clock_frozen_why')"),
      Sql("SELECT id, beat, due_at, by_whom, started_at, finished_at, expected, done, findings, "
          "alarms, canary, detail FROM job_audit WHERE id > COALESCE((SELECT MAX(id) FROM "
          "job_audit), "
          "0) - ? AND finished_at >= ? AND beat <> 'hand' AND id "
          "NOT IN (?) ORDER BY finished_at, id",
          {kMostTroubles, since, IdTable(look.known_audits)}),
      Sql(absl::StrCat("SELECT a.channel, MIN(a.next_at) FROM job_alert a WHERE a.next_at IS NOT "
                       "NULL AND ",
                       kNotSilenced, " GROUP BY a.channel ORDER BY a.channel"))};
  for (Statement& one : Troubles(since)) asked.push_back(std::move(one));
  for (Statement& one : MadeGood()) asked.push_back(std::move(one));
  ASSIGN_OR_RETURN(const std::vector<Rows> r, session_.connection.Read(asked));
  return ReadAlertFactsOf(r);
}

absl::StatusOr<AlertCounts> MariadbActs::PutAlerts(const AlertChanges& changes) {
  const std::vector<Statement> locks = {
      Sql(absl::StrCat("SELECT ", kSilenceColumns, " FROM job_silence")),
      Sql(Columns("WHERE (a.topic, a.job, a.about) IN (SELECT x.topic, x.job, x.about FROM ?) "
                  "ORDER BY a.id FOR UPDATE"),
          {JsonTable(KeysOf<JsonRows>(changes), "topic name, job name, about name")})};
  return ChangeUnderLocks(
      session_, locks, Sql("SELECT @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<AlertCounts, std::vector<Statement>>> {
        AlertBatch batch(ReadAlertRows(r[1]), ReadSilenceRows(r[0]), now);
        const AlertCounts counts = batch.Put(changes);
        std::vector<Statement> writes;
        for (const AlertRow* row : batch.Changed()) writes.push_back(Save(*row));
        if (changes.looked != kPast) {
          writes.push_back(
              Sql("INSERT INTO matins_meta (name, value) VALUES ('alerts_looked', ?) ON DUPLICATE "
                  "KEY UPDATE value = VALUES(value)",
                  {absl::StrCat(absl::ToUnixMicros(changes.looked))}));
        }
        return std::make_pair(counts, std::move(writes));
      });
}

absl::StatusOr<AlertClaimed> MariadbActs::ClaimAlerts(const AlertClaim& claim) {
  const bool claimed_too = IsMutant(Mutant::kNoAlertClaim);
  const std::vector<Statement> locks = {
      Sql(Columns(absl::StrCat("WHERE a.channel = ? AND a.next_at <= @NOW",
                               claimed_too ? " + INTERVAL 2 MINUTE" : "", " AND ", kNotSilenced,
                               " ORDER BY a.next_at, a.id LIMIT ? FOR UPDATE SKIP LOCKED")),
          {claim.channel, claim.limit})};
  return ChangeUnderLocks(
      session_, locks, Sql("SELECT @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<AlertClaimed, std::vector<Statement>>> {
        AlertClaimed claimed{now, ReadAlertRows(r[0])};
        std::vector<int64_t> ids;
        for (AlertRow& row : claimed.rows) {
          ClaimAlert(claim.by, now, row);
          ids.push_back(row.id);
        }
        std::vector<Statement> writes;
        if (!ids.empty()) {
          writes.push_back(
              Sql("UPDATE job_alert SET claimed_by = ?, next_at = ?, attempts = attempts "
                  "+ 1 WHERE id IN (?)",
                  {claim.by, now + kAlertLease, IdTable(ids)}));
        }
        return std::make_pair(std::move(claimed), std::move(writes));
      });
}

absl::StatusOr<std::vector<bool>> MariadbActs::EndAlerts(absl::string_view by,
                                                         absl::Span<const AlertSent> sent) {
  std::vector<int64_t> ids;
  for (const AlertSent& one : sent) ids.push_back(one.id);
  const std::vector<Statement> locks = {
      Sql(Columns("WHERE a.id IN (?) ORDER BY a.id FOR UPDATE"), {IdTable(ids)})};
  return ChangeUnderLocks(
      session_, locks, Sql("SELECT @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<std::vector<bool>, std::vector<Statement>>> {
        AlertBatch batch(ReadAlertRows(r[0]), {}, now);
        std::vector<bool> ended = batch.End(by, sent);
        std::vector<Statement> writes;
        for (const AlertRow* row : batch.Changed()) writes.push_back(Save(*row));
        writes.push_back(Sql("DELETE FROM job_alert WHERE next_at IS NULL AND resolved_at < ?",
                             {now - kAlertKept}));
        writes.push_back(Sql("DELETE FROM job_silence WHERE until_at < ?", {now - kAlertKept}));
        return std::make_pair(std::move(ended), std::move(writes));
      });
}

absl::StatusOr<std::vector<AlertRow>> MariadbActs::ReadAlerts(const AlertFilter& filter) {
  std::vector<Value> values;
  if (!filter.job.empty()) values.push_back(filter.job);
  values.push_back(filter.limit);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read(
          {Sql(Columns(absl::StrCat(
                   "WHERE TRUE", filter.open_only ? " AND a.resolved_at IS NULL" : "",
                   filter.job.empty() ? "" : " AND a.job = ?",
                   " ORDER BY a.resolved_at IS NULL DESC, a.opened_at DESC, a.id DESC LIMIT ?")),
               values)}));
  return ReadAlertRows(rows[0]);
}

absl::Status MariadbActs::AckAlert(int64_t id, const Act& act) {
  const std::vector<Statement> locks = {
      Sql(Columns("JOIN (SELECT topic AS t, job AS j, about AS b FROM job_alert WHERE id = ?) k ON "
                  "a.topic = k.t AND a.job = k.j AND a.about = k.b ORDER BY a.id FOR UPDATE"),
          {id})};
  return ChangeUnderLocks(
             session_, locks, Sql("SELECT @NOW"),
             [&](const std::vector<Rows>& r,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               AlertBatch batch(ReadAlertRows(r[0]), {}, now);
               ASSIGN_OR_RETURN(const AlertRow* named, batch.Ack(id, act));
               std::vector<Statement> writes;
               for (const AlertRow* row : batch.Changed()) writes.push_back(Save(*row));
               writes.push_back(
                   EventOf("acked", named->key.job, named->period, act, now, AlertDetail(*named)));
               return std::make_pair(true, std::move(writes));
             })
      .status();
}

absl::StatusOr<int64_t> MariadbActs::Silence(absl::string_view job, absl::Duration length,
                                             const Act& act) {
  // The row first, so that its number is known when the act is recorded.
  const std::vector<Statement> locks = {
      Sql("SELECT 1 FROM job WHERE name = ? AND NOT deleted", {job}),
      Sql("INSERT INTO job_silence (job, from_at, until_at, who, why) VALUES (?, @NOW, @NOW + "
          "INTERVAL ? MICROSECOND, ?, ?)",
          {job, absl::ToInt64Microseconds(length), act.who, act.why}),
      Sql("SELECT LAST_INSERT_ID()")};
  return ChangeUnderLocks(
      session_, locks, Sql("SELECT @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<int64_t, std::vector<Statement>>> {
        if (!job.empty() && r[0].size() == 0) return NoJob(job);
        const int64_t id = r[2].Int(0, 0);
        return std::make_pair(id, std::vector<Statement>{EventOf("silenced", job, "", act, now,
                                                                 SilenceDetail(id, now + length))});
      });
}

absl::Status MariadbActs::Unsilence(int64_t id, const Act& act) {
  const std::vector<Statement> locks = {Sql(
      absl::StrCat("SELECT ", kSilenceColumns, " FROM job_silence WHERE id = ? FOR UPDATE"), {id})};
  return ChangeUnderLocks(
             session_, locks, Sql("SELECT @NOW"),
             [&](const std::vector<Rows>& r,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               const std::vector<SilenceRow> rows = ReadSilenceRows(r[0]);
               if (rows.empty() || rows[0].ended_at != kPast || rows[0].until <= now) {
                 return NoSilence(id);
               }
               return std::make_pair(
                   true, std::vector<Statement>{
                             Sql("UPDATE job_silence SET ended_at = ?, ended_by = ? WHERE id = ?",
                                 {now, act.who, id}),
                             EventOf("unsilenced", rows[0].job, "", act, now,
                                     SilenceDetail(id, rows[0].until))});
             })
      .status();
}

absl::StatusOr<std::vector<SilenceRow>> MariadbActs::ReadSilences() {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({Sql(absl::StrCat(
                       "SELECT ", kSilenceColumns, " FROM job_silence ORDER BY id DESC"))}));
  return ReadSilenceRows(rows[0]);
}

absl::Status MariadbActs::Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                                 absl::string_view detail) {
  return ChangeUnderLocks(
             session_, std::vector<Statement>(), Sql("SELECT @NOW"),
             [&](const std::vector<Rows>& r,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               return std::make_pair(true, std::vector<Statement>{EventOf(kind, key.job, key.period,
                                                                          act, now, detail)});
             })
      .status();
}

}  // namespace matins::mariadb
