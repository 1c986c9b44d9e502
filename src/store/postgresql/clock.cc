#include "store/postgresql/clock.h"

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/clock_rules.h"
#include "store/postgresql/due.h"
#include "store/postgresql/finish.h"
#include "store/postgresql/store.h"
#include "store/rules.h"

namespace matins::postgresql {
namespace {

// In key order. No lease is waited for: its end was told by the old clock.
std::string BurnAllText() {
  return absl::StrCat(
      "with l as materialized (select * from @.job_watermark r where r.status = 'RUNNING' and "
      "r.fence > 0",
      IsMutant(Mutant::kNoSettleBurn) ? " and false" : "",
      " order by r.job_name, r.period for update), "
      "c as materialized (select @NOW as now, count(*) from l), "
      "j as materialized (select l.*, ",
      kLossVerdict,
      " as verdict from l left join @.job b on b.name = l.job_name), "
      "u as (update @.job_watermark r set status = case j.verdict when 'PLANNED' then ",
      kAgainStatus, " else 'FAILED' end, held = j.verdict = 'HELD', reason = ", kBurntReason,
      ", fence = @FENCE, nonce = null, losses = r.losses + 1, "
      "attempts = case j.verdict when 'PLANNED' then greatest(r.attempts - 1, 0) else r.attempts "
      "end, wait_until = null, "
      "lease_until = null, run_until = null, "
      "finished_at = case when j.verdict = 'PLANNED' and r.cancel_by is null then null else c.now "
      "end, "
      "look_at = r.not_before, waits_for = null, cancel_by = null, cancel_why = null, "
      "ver = r.ver + 1, op = 'burn', op_at = c.now from j cross join c "
      "where r.job_name = j.job_name and r.period = j.period) "
      "insert into @.job_run (",
      kRunColumns, ", status, reason, message) select ", kRunValues,
      ", 'LOST', case l.verdict when 'HELD' then 'held' else 'lost' end, 'the store''s clock "
      "stepped' from j l cross join c "
      "on conflict (fence) do nothing");
}

}  // namespace

std::vector<Statement> SettleClock(const Session& session, const Act& act) {
  return {session.Of(BurnAllText()),
          session.Of("update @.job_lock set until = least(until, @.matins_clock() + interval "
                     "'5 minutes')"),
          session.Of("update @.job_slot set until = least(until, @.matins_clock() + interval "
                     "'5 minutes')"),
          session.Of(
              "update @.job_watermark r set look_at = r.not_before, waits_for = null, "
              "held_by = null, held_until = null "
              "where r.status = 'PLANNED' and (r.look_at > r.not_before or r.held_by is not null)"),
          session.Of("update @.job_watermark r set wait_until = @.matins_clock() + interval "
                     "'5 minutes' where r.wait_until > @.matins_clock() + interval '5 minutes'"),
          session.Of("update @.job_node set seen_at = least(seen_at, @.matins_clock())"),
          session.Of("insert into @.job_event (at, kind, job, period, who, why, detail) select "
                     "@.matins_clock(), 'clock', '', '', $1, $2, json_build_object('was', "
                     "value)::text from @.matins_meta where key = 'clock_frozen_why'",
                     {act.who, act.why}),
          session.Of("update @.matins_meta set value = case key when 'clock_frozen_why' then '' "
                     "when 'clock_hwm' then (extract(epoch from @.matins_clock()) * "
                     "1000000)::bigint::text when 'return_wait' then '0' end where key in "
                     "('clock_frozen_why', 'clock_hwm', 'clock_frozen_at', 'clock_raw', "
                     "'return_last', 'return_wait', 'return_due', 'return_planner')")};
}

namespace {

// Nodes take turns on the mark's row; everything is read behind it.
constexpr char kLockClock[] =
    "select key from @.matins_meta where key in ('clock_hwm', 'return_last') order by key "
    "for update";

constexpr char kClockFacts[] = R"(
  with m as materialized (select key, value from @.matins_meta)
  select @.matins_clock(), @NOW,
    (select value::bigint from m where key = 'clock_hwm'),
    (select value from m where key = 'clock_frozen_why'),
    (select value::bigint from m where key = 'clock_frozen_at'),
    (select value::bigint from m where key = 'clock_raw'),
    (select value::bigint from m where key = 'epoch'),
    (select value::bigint from m where key = 'return_last'),
    (select value::bigint from m where key = 'return_wait'),
    (select value::bigint from m where key = 'return_due'),
    (select boot from @.job_node where name = $1),
    (select seen_at from @.job_node where name = $1),
    exists (select from @.job_node n, m where m.key = 'clock_hwm' and not n."left" and
      n.seen_at > timestamptz 'epoch' + m.value::bigint * interval '1 microsecond' -
        $2::interval),
    (select value::int from m where key = 'schema'))";

constexpr char kLiveNodes[] =
    "select count(*), count(*) filter (where name <> $1) from @.job_node where not \"left\" and "
    "seen_at > $2::timestamptz";

// Nothing runs, and nothing is to be looked at by $1: three ends of indexes.
constexpr char kIdle[] =
    "select not (exists (select from @.job_watermark where status = 'RUNNING') or exists (select "
    "from @.job_watermark where status = 'PLANNED' and look_at <= $1::timestamptz) or exists "
    "(select from @.job where not deleted and next_look <= $1::timestamptz)), ";

struct Mark : ClockMark {
  absl::Time now;
  int64_t epoch = 0;
  bool settled = false;
  int schema = 0;
};

Mark ReadMark(const Rows& r) {
  const auto micros = [&](int column) {
    return r.IsNull(0, column) ? absl::InfinitePast() : FromMicros(r.Int(0, column));
  };
  Mark m;
  m.raw = r.Time(0, 0);
  m.now = r.Time(0, 1);
  m.hwm = micros(2);
  m.frozen_why = r.Text(0, 3);
  m.frozen_at = micros(4);
  m.last_raw = micros(5);
  m.epoch = r.Int(0, 6);
  m.return_last = micros(7);
  m.return_wait = absl::Microseconds(r.Int(0, 8));
  m.return_due = micros(9);
  if (!r.IsNull(0, 10)) m.boot = absl::Microseconds(r.Int(0, 10));
  m.seen = r.Time(0, 11);
  m.witness = r.Bool(0, 12);
  m.schema = static_cast<int>(r.Int(0, 13));
  return m;
}

Statement SetMeta(const Session& session, absl::string_view key, absl::string_view value) {
  return session.Of("update @.matins_meta set value = $2 where key = $1",
                    {std::string(key), std::string(value)});
}

std::string MicrosText(absl::Time t) { return absl::StrCat(ToMicros(t)); }

// Freezes at a step; while frozen, counts the steady time, and settles at its end. False: nothing
// is to be written, not even the node's sign of life.
bool WriteClock(const Session& session, const TickRequest& request, Mark& m,
                std::vector<Statement>& writes) {
  const ClockVerdict verdict = JudgeClock(m, request);
  m.frozen_why = verdict.why;
  switch (verdict.kind) {
    case ClockVerdict::Kind::kWait:
      return false;
    case ClockVerdict::Kind::kForward:
      if (m.raw > m.hwm) writes.push_back(SetMeta(session, "clock_hwm", MicrosText(m.raw)));
      return true;
    case ClockVerdict::Kind::kSettle:
      writes = SettleClock(session, {"policy", "the clock has been steady"});
      m.settled = true;
      m.now = m.raw;
      m.return_last = m.return_due = absl::InfinitePast();
      return true;
    case ClockVerdict::Kind::kFreeze:
      writes.push_back(SetMeta(session, "clock_frozen_why", m.frozen_why));
      writes.push_back(session.Of(
          "insert into @.job_event (at, kind, job, period, generation, who, why, detail) values "
          "(@NOW, 'clock', '', '', 0, 'policy', $1, '{\"frozen\":true}')",
          {m.frozen_why}));
      [[fallthrough]];
    case ClockVerdict::Kind::kRestart:
      writes.push_back(SetMeta(session, "clock_frozen_at", MicrosText(m.raw)));
      [[fallthrough]];
    case ClockVerdict::Kind::kFrozen:
      writes.push_back(SetMeta(session, "clock_raw", MicrosText(m.raw)));
  }
  return true;
}

bool WriteReturn(const Session& session, const TickRequest& request, const Mark& m, bool nobody,
                 std::vector<Statement>& writes) {
  const ReturnVerdict verdict = JudgeReturn(m, m.now, nobody);
  if (verdict.due) writes.push_back(SetMeta(session, "return_due", MicrosText(*verdict.due)));
  if (!verdict.returned) return false;
  writes.push_back(SetMeta(session, "return_last", MicrosText(m.now)));
  writes.push_back(
      SetMeta(session, "return_wait", absl::StrCat(absl::ToInt64Microseconds(verdict.wait))));
  writes.push_back(session.Of("update @.matins_meta set value = null where key = 'return_due'"));
  // To a job without a FAILED period it says nothing, as long as its next look can be trusted.
  writes.push_back(session.Of(
      "update @.job j set pending = 'return', next_look = timestamptz 'epoch', "
      "revision = j.revision + 1 from (select name from @.job where not deleted and pending is "
      "null and ((select value from @.matins_meta where key = 'return_planner') is distinct from "
      "$1 or name in (select r.job_name from @.job_watermark r where r.status = 'FAILED' and not "
      "r.held)) order by name for no key update) l where l.name = j.name",
      {request.planner}));
  writes.push_back(session.Of(
      "insert into @.matins_meta as m (key, value) values ('return_planner', $1) on conflict (key) "
      "do update set value = excluded.value",
      {request.planner}));
  writes.push_back(
      session.Of("insert into @.job_event (at, kind, job, period, generation, who) values "
                 "(@NOW, 'return', '', '', 0, $1)",
                 {UsableText(absl::StrCat("node:", request.node.name))}));
  return true;
}

}  // namespace

absl::StatusOr<TickAnswer> PostgresStore::Tick(const TickRequest& request) {
  Connection& connection = session_.connection;
  const std::string name = UsableText(request.node.name);
  const auto once = [&]() -> absl::StatusOr<TickAnswer> {
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     connection.Begin({session_.Of(kLockClock),
                                       session_.Of(kClockFacts, {name, IntervalText(kNodeGone)})}));
    Mark mark = ReadMark(rows[1]);
    if (IsMutant(Mutant::kNodeClock)) mark.raw = request.wall;
    TickAnswer answer;
    answer.epoch = mark.epoch;
    answer.schema = mark.schema;
    std::vector<Statement> writes;
    if (!WriteClock(session_, request, mark, writes)) {
      connection.Rollback();
      answer.now = mark.now;
      answer.frozen = true;
      answer.frozen_why = mark.frozen_why;
      return answer;
    }
    ASSIGN_OR_RETURN(
        const std::vector<Rows> nodes,
        connection.More({session_.Of(kLiveNodes, {name, TimeParam(mark.now - kNodeGone)}),
                         session_.Of(absl::StrCat(kIdle, kAnyAside),
                                     {TimeParam(mark.now + request.idle_ahead)})}));
    bool idle = nodes[1].Bool(0, 0);
    if (idle && nodes[1].Bool(0, 1)) {
      ASSIGN_OR_RETURN(
          const std::vector<Rows> aside,
          connection.More({session_.Of(AsideForLabels(), {JsonStrings(request.node.labels)})}));
      idle = !aside[0].Bool(0, 0);
    }
    if (mark.frozen_why.empty()) {
      answer.returned = WriteReturn(session_, request, mark, nodes[0].Int(0, 0) == 0, writes);
    }
    writes.push_back(session_.Of(
        "insert into @.job_node as n (name, labels, started_at, seen_at, \"left\", boot, "
        "clock_offset) values ($1, $2::jsonb, $3::timestamptz, $3::timestamptz, false, $4::bigint, "
        "$5::timestamptz - $3::timestamptz) on conflict (name) do update set "
        "labels = excluded.labels, seen_at = excluded.seen_at, \"left\" = false, "
        "boot = excluded.boot, clock_offset = excluded.clock_offset",
        {name, JsonStrings(request.node.labels), TimeParam(mark.now),
         absl::StrCat(absl::ToInt64Microseconds(request.boot)), TimeParam(request.wall)}));
    if (request.stood_still >= kStoodStill) {
      writes.push_back(session_.Of(
          "insert into @.job_event (at, kind, job, period, generation, who, detail) values "
          "(@NOW, $1, '', '', 0, $2, $3)",
          {kStoodStillEvent, absl::StrCat("node:", name), StoodStillDetail(request.stood_still)}));
    }
    if (absl::Status fault = Reach("tick.before_commit"); !fault.ok()) {
      connection.Rollback();
      return fault;
    }
    RETURN_IF_ERROR(connection.Commit(writes).status());
    MATINS_FAULT_POINT("tick.after_commit");  // crash here: the next node's tick goes on from it
    answer.now = mark.now;
    answer.frozen = !mark.frozen_why.empty();
    answer.frozen_why = mark.frozen_why;
    answer.live_nodes = static_cast<int>(nodes[0].Int(0, 1)) + 1;
    answer.idle = !mark.settled && !answer.frozen && !answer.returned && idle;
    return answer;
  };
  auto answer = session_.Retried(once);
  if (answer.ok() && (answer->returned || request.stirs)) session_.Notify();
  return answer;
}

absl::Status PostgresStore::Leave(const NodeId& node) {
  RETURN_IF_ERROR(
      session_
          .Retried([&] {
            return session_.connection.Write(
                {session_.Of("update @.job_node set \"left\" = true where name = $1", {node.name}),
                 session_.Of("with l as materialized (select r.job_name, r.period from "
                             "@.job_watermark r where r.status = 'PLANNED' and r.held_by = $1 "
                             "order by r.job_name, r.period for update skip locked) "
                             "update @.job_watermark r set held_by = null, held_until = null "
                             "from l where r.job_name = l.job_name and r.period = l.period",
                             {node.name})});
          })
          .status());
  session_.Notify();
  return absl::OkStatus();
}

}  // namespace matins::postgresql
