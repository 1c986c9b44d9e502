// Alerts and silences of a PostgreSQL store: the rows are locked, then the clock is read, then the
// rules of store/alert_rules.h decide.
#include <map>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/act_rules.h"
#include "store/alert_rows.h"
#include "store/locked_change.h"
#include "store/postgresql/acts.h"
#include "store/rules.h"

namespace matins::postgresql {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

constexpr char kSilenceColumns[] = "id, job, from_at, until_at, who, why, ended_at, ended_by";

std::optional<std::string> RemindParam(absl::Duration d) {
  if (d == absl::InfiniteDuration()) return std::nullopt;
  return absl::StrCat(absl::ToInt64Microseconds(d));
}

std::string BoolText(bool truth) { return truth ? "true" : "false"; }

// What changes of a row, in the order of kAlertColumns from `episode` on.
std::vector<Parameter> Changing(const AlertRow& row) {
  return {absl::StrCat(row.episode),      UsableText(row.kind),       absl::StrCat(row.level),
          UsableText(row.period),         TimeParam(row.due),         absl::StrCat(row.count),
          UsableText(row.text),           BoolText(row.by_job),       BoolText(row.by_audit),
          BoolText(row.momentary),        TimeParam(row.opened_at),   TimeParam(row.seen_at),
          TimeParam(row.resolved_at),     UsableText(row.resolution), TimeParam(row.told_at),
          TimeParam(row.resolve_told_at), TimeParam(row.next_at),     absl::StrCat(row.attempts),
          UsableText(row.claimed_by),     UsableText(row.last_error), TimeParam(row.acked_at),
          UsableText(row.acked_by),       UsableText(row.acked_why),  RemindParam(row.remind)};
}

constexpr char kChanging[] =
    "episode, kind, level, period, due_at, count, text, by_job, by_audit, momentary, opened_at, "
    "seen_at, resolved_at, resolution, told_at, resolve_told_at, next_at, attempts, claimed_by, "
    "last_error, acked_at, acked_by, acked_why, remind";
constexpr char kChangingValues[] =
    "$1::int, $2, $3::int, $4, $5::timestamptz, $6::bigint, $7, $8::boolean, $9::boolean, "
    "$10::boolean, $11::timestamptz, $12::timestamptz, $13::timestamptz, $14, $15::timestamptz, "
    "$16::timestamptz, $17::timestamptz, $18::int, $19, $20, $21::timestamptz, $22, $23, "
    "$24::bigint";

// Of two that add one row the second adds nothing: it would say the same.
Statement Save(const Session& session, const AlertRow& row) {
  std::vector<Parameter> params = Changing(row);
  if (row.id == 0) {
    for (const std::string& part : {row.key.topic, row.key.job, row.key.about, row.channel}) {
      params.emplace_back(UsableText(part));
    }
    return session.Of(absl::StrCat("insert into @.job_alert (", kChanging,
                                   ", topic, job, about, channel) values (", kChangingValues,
                                   ", $25, $26, $27, $28) on conflict (topic, job, about, channel) "
                                   "do nothing"),
                      std::move(params));
  }
  params.emplace_back(absl::StrCat(row.id));
  return session.Of(absl::StrCat("update @.job_alert set (", kChanging, ") = row(", kChangingValues,
                                 ") where id = $25::bigint"),
                    std::move(params));
}

std::string NotSilenced() {
  return "not exists (select from @.job_silence s where s.ended_at is null and s.from_at <= @NOW "
         "and s.until_at > @NOW and s.job in ('', a.job))";
}

std::string Columns(absl::string_view more) {
  return absl::StrCat("select ", kAlertColumns, " from @.job_alert a ", more);
}

std::vector<Statement> Troubles(const Session& session, absl::Time since) {
  const std::vector<Parameter> params = {TimeParam(since), absl::StrCat(kMostTroubles)};
  return {
      session.Of("select w.job_name, w.period, w.due_at, w.op_at, w.held, w.fence, w.node, "
                 "w.reason, r.message, j.definition from @.job_watermark w join @.job j on j.name "
                 "= w.job_name and not j.deleted left join @.job_run r on r.fence = w.fence where "
                 "w.status = 'FAILED' and w.finished_at >= coalesce($1::timestamptz, timestamptz "
                 "'epoch') order by w.finished_at limit $2::int",
                 params),
      session.Of("select r.job_name, r.period, r.due_at, r.finished_at, false, r.fence, r.node, "
                 "r.reason, r.message, j.definition from @.job_run r join @.job j on j.name = "
                 "r.job_name and not j.deleted where r.status = 'LOST' and r.finished_at >= "
                 "coalesce($1::timestamptz, timestamptz 'epoch') order by r.finished_at limit "
                 "$2::int",
                 params),
      session.Of("select e.id, e.at, e.kind, e.job, e.period, e.generation, e.who, e.why, "
                 "e.detail, j.definition from @.job_event e left join @.job j on j.name = e.job "
                 "and not j.deleted where e.id > coalesce((select max(id) from @.job_event), 0) - "
                 "$2::int and e.kind in ('clock', 'zombie') and e.at >= coalesce($1::timestamptz, "
                 "timestamptz 'epoch') order by e.id",
                 params)};
}

std::vector<Statement> MadeGood(const Session& session) {
  return {
      session.Of("select distinct a.topic, a.job, a.about, w.status, w.reason, w.by_whom, "
                 "w.finished_at from @.job_alert a join @.job_watermark w on w.job_name = a.job "
                 "and w.period = a.period where a.resolved_at is null and a.topic = 'gap' and not "
                 "a.by_job and w.status in ('DONE', 'SKIPPED')"),
      session.Of("select distinct a.topic, a.job, a.about, 'DONE', '', '', w.at from @.job_alert a "
                 "cross join lateral (select max(x.finished_at) as at from @.job_watermark x where "
                 "x.job_name = a.job and x.status = 'DONE' and x.due_at >= a.due_at) w where "
                 "a.resolved_at is null and a.topic = 'gap' and a.by_job and w.at is not null"),
      session.Of("select distinct a.topic, a.job, a.about, 'GONE', '', '', null::timestamptz from "
                 "@.job_alert a where a.resolved_at is null and a.job <> '' and not exists (select "
                 "from @.job j where j.name = a.job and not j.deleted)"),
      session.Of("select distinct a.topic, a.job, a.about, 'STEADY', '', '', null::timestamptz "
                 "from @.job_alert a where a.resolved_at is null and a.topic = 'clock' and not "
                 "exists (select from @.matins_meta where key = 'clock_frozen_why' and value <> "
                 "'')")};
}

}  // namespace

absl::StatusOr<AlertFacts> PostgresActs::ReadAlertFacts(const AlertLook& look) {
  std::vector<Statement> asked = {
      session_.Of("select @NOW"),
      session_.Of("select key, value from @.matins_meta where key in ('alerts_looked', "
                  "'clock_frozen_why')"),
      session_.Of(
          "select id, beat, due_at, by_whom, started_at, finished_at, expected, done, "
          "findings, alarms, canary, detail from @.job_audit where id > coalesce((select "
          "max(id) from @.job_audit), 0) - $3::int and finished_at >= "
          "coalesce($1::timestamptz, timestamptz 'epoch') and beat <> 'hand' and id <> all "
          "(select x::bigint from json_array_elements_text($2::json) x) order by "
          "finished_at, id",
          {TimeParam(look.since), JsonNumbers(look.known_audits), absl::StrCat(kMostTroubles)}),
      session_.Of(absl::StrCat("select a.channel, min(a.next_at) from @.job_alert a where "
                               "a.next_at is not null and ",
                               NotSilenced(), " group by a.channel order by a.channel"))};
  for (Statement& one : Troubles(session_, look.since)) asked.push_back(std::move(one));
  for (Statement& one : MadeGood(session_)) asked.push_back(std::move(one));
  ASSIGN_OR_RETURN(const std::vector<Rows> r, session_.connection.Read(asked));
  return ReadAlertFactsOf(r);
}

absl::StatusOr<AlertCounts> PostgresActs::PutAlerts(const AlertChanges& changes) {
  const std::vector<Statement> locks = {
      session_.Of(absl::StrCat("select ", kSilenceColumns, " from @.job_silence")),
      session_.Of(Columns("where (a.topic, a.job, a.about) in (select x.topic, x.job, x.about from "
                          "json_to_recordset($1::json) as x(topic text, job text, about text)) "
                          "order by a.id for update"),
                  {KeysOf<JsonRows>(changes)})};
  return ChangeUnderLocks(
      session_, locks, session_.Of("select @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<AlertCounts, std::vector<Statement>>> {
        AlertBatch batch(ReadAlertRows(r[1]), ReadSilenceRows(r[0]), now);
        const AlertCounts counts = batch.Put(changes);
        std::vector<Statement> writes;
        for (const AlertRow* row : batch.Changed()) writes.push_back(Save(session_, *row));
        if (changes.looked != kPast) {
          writes.push_back(session_.Of(
              "insert into @.matins_meta(key, value) values ('alerts_looked', $1) on conflict "
              "(key) do update set value = excluded.value",
              {absl::StrCat(absl::ToUnixMicros(changes.looked))}));
        }
        return std::make_pair(counts, std::move(writes));
      });
}

absl::StatusOr<AlertClaimed> PostgresActs::ClaimAlerts(const AlertClaim& claim) {
  const bool claimed_too = IsMutant(Mutant::kNoAlertClaim);
  const std::vector<Statement> locks = {session_.Of(
      Columns(absl::StrCat("where a.channel = $1 and a.next_at <= @NOW",
                           claimed_too ? " + interval '2 minutes'" : "", " and ", NotSilenced(),
                           " order by a.next_at, a.id limit $2::int for update skip locked")),
      {UsableText(claim.channel), absl::StrCat(claim.limit)})};
  return ChangeUnderLocks(
      session_, locks, session_.Of("select @NOW"),
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
              session_.Of("update @.job_alert set claimed_by = $2, next_at = $3::timestamptz, "
                          "attempts = attempts + 1 where id in (select x::bigint from "
                          "json_array_elements_text($1::json) x)",
                          {JsonNumbers(ids), UsableText(claim.by), TimeParam(now + kAlertLease)}));
        }
        return std::make_pair(std::move(claimed), std::move(writes));
      });
}

absl::StatusOr<std::vector<bool>> PostgresActs::EndAlerts(absl::string_view by,
                                                          absl::Span<const AlertSent> sent) {
  std::vector<int64_t> ids;
  for (const AlertSent& one : sent) ids.push_back(one.id);
  const std::vector<Statement> locks = {
      session_.Of(Columns("where a.id in (select x::bigint from json_array_elements_text($1::json) "
                          "x) order by a.id for update"),
                  {JsonNumbers(ids)})};
  return ChangeUnderLocks(
      session_, locks, session_.Of("select @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<std::vector<bool>, std::vector<Statement>>> {
        AlertBatch batch(ReadAlertRows(r[0]), {}, now);
        std::vector<bool> ended = batch.End(by, sent);
        std::vector<Statement> writes;
        for (const AlertRow* row : batch.Changed()) {
          writes.push_back(Save(session_, *row));
        }
        const std::vector<Parameter> kept = {TimeParam(now - kAlertKept)};
        writes.push_back(
            session_.Of("delete from @.job_alert where next_at is null and resolved_at < "
                        "$1::timestamptz",
                        kept));
        writes.push_back(
            session_.Of("delete from @.job_silence where until_at < $1::timestamptz", kept));
        return std::make_pair(std::move(ended), std::move(writes));
      });
}

absl::StatusOr<std::vector<AlertRow>> PostgresActs::ReadAlerts(const AlertFilter& filter) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          Columns("where (not $1::boolean or a.resolved_at is null) and ($2 = '' or a.job = $2) "
                  "order by a.resolved_at is null desc, a.opened_at desc, a.id desc limit $3::int"),
          {BoolText(filter.open_only), UsableText(filter.job), absl::StrCat(filter.limit)})}));
  return ReadAlertRows(rows[0]);
}

absl::Status PostgresActs::AckAlert(int64_t id, const Act& act) {
  const std::vector<Statement> locks = {
      session_.Of(Columns("where (a.topic, a.job, a.about) in (select topic, job, about from "
                          "@.job_alert where id = $1::bigint) order by a.id for update"),
                  {absl::StrCat(id)})};
  return ChangeUnderLocks(
             session_, locks, session_.Of("select @NOW"),
             [&](const std::vector<Rows>& r,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               AlertBatch batch(ReadAlertRows(r[0]), {}, now);
               ASSIGN_OR_RETURN(const AlertRow* named, batch.Ack(id, act));
               std::vector<Statement> writes;
               for (const AlertRow* row : batch.Changed()) {
                 writes.push_back(Save(session_, *row));
               }
               writes.push_back(EventOf(session_, "acked", named->key.job, named->period, act,
                                        AlertDetail(*named)));
               return std::make_pair(true, std::move(writes));
             })
      .status();
}

absl::StatusOr<int64_t> PostgresActs::Silence(absl::string_view job, absl::Duration length,
                                              const Act& act) {
  const std::vector<Statement> locks = {
      session_.Of("select 1 from @.job where name = $1 and not deleted", {UsableText(job)}),
      session_.Of("select nextval(pg_get_serial_sequence('@.job_silence', 'id'))")};
  return ChangeUnderLocks(
      session_, locks, session_.Of("select @NOW"),
      [&](const std::vector<Rows>& r,
          absl::Time now) -> absl::StatusOr<std::pair<int64_t, std::vector<Statement>>> {
        if (!job.empty() && r[0].size() == 0) return NoJob(job);
        const int64_t id = r[1].Int(0, 0);
        return std::make_pair(
            id,
            std::vector<Statement>{
                session_.Of("insert into @.job_silence (id, job, from_at, until_at, who, why) "
                            "values ($1::bigint, $2, $3::timestamptz, $4::timestamptz, $5, $6)",
                            {absl::StrCat(id), UsableText(job), TimeParam(now),
                             TimeParam(now + length), UsableText(act.who), UsableText(act.why)}),
                EventOf(session_, "silenced", job, "", act, SilenceDetail(id, now + length))});
      });
}

absl::Status PostgresActs::Unsilence(int64_t id, const Act& act) {
  const std::vector<Statement> locks = {
      session_.Of(absl::StrCat("select ", kSilenceColumns,
                               " from @.job_silence where id = $1::bigint for update"),
                  {absl::StrCat(id)})};
  return ChangeUnderLocks(
             session_, locks, session_.Of("select @NOW"),
             [&](const std::vector<Rows>& r,
                 absl::Time now) -> absl::StatusOr<std::pair<bool, std::vector<Statement>>> {
               const std::vector<SilenceRow> rows = ReadSilenceRows(r[0]);
               if (rows.empty() || rows[0].ended_at != kPast || rows[0].until <= now) {
                 return NoSilence(id);
               }
               return std::make_pair(
                   true, std::vector<Statement>{
                             session_.Of("update @.job_silence set ended_at = "
                                         "$2::timestamptz, ended_by = $3 where id = $1::bigint",
                                         {absl::StrCat(id), TimeParam(now), UsableText(act.who)}),
                             EventOf(session_, "unsilenced", rows[0].job, "", act,
                                     SilenceDetail(id, rows[0].until))});
             })
      .status();
}

absl::StatusOr<std::vector<SilenceRow>> PostgresActs::ReadSilences() {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(absl::StrCat(
                       "select ", kSilenceColumns, " from @.job_silence order by id desc"))}));
  return ReadSilenceRows(rows[0]);
}

absl::Status PostgresActs::Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                                  absl::string_view detail) {
  return session_
      .Retried([&] {
        return session_.connection.Write(
            {EventOf(session_, kind, key.job, key.period, act, detail)});
      })
      .status();
}

}  // namespace matins::postgresql
