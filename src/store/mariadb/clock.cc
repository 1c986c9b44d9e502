#include "store/mariadb/clock.h"

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/clock_rules.h"
#include "store/mariadb/due.h"
#include "store/mariadb/finish.h"
#include "store/mariadb/store.h"
#include "store/rules.h"

namespace matins::mariadb {
namespace {

Statement SetMeta(absl::string_view name, const Value& value) {
  return Sql("UPDATE matins_meta SET value = ? WHERE name = ?", {value, name});
}

Value MicrosOf(absl::Time t) { return Value(absl::StrCat(ToMicros(t))); }

}  // namespace

Statement LockMark() {
  return Sql(
      "SELECT name FROM matins_meta WHERE name IN ('clock_hwm', 'return_last') ORDER BY "
      "name FOR UPDATE");
}

absl::StatusOr<std::vector<Statement>> SettleClock(Session& session, const Act& act) {
  // In key order. No lease is waited for: its end was told by the old clock.
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.More(
          {Sql(absl::StrCat("SELECT ", RowColumns(),
                            " FROM job_watermark r WHERE r.status = 'RUNNING' AND r.fence > 0 "
                            "ORDER BY r.job_name, r.period FOR UPDATE")),
           Sql("SELECT matins_clock(), (SELECT value FROM matins_meta WHERE name = 'epoch'), "
               "(SELECT value FROM matins_meta WHERE name = 'clock_frozen_why')"),
           ReadWaiting(),
           Sql("SELECT name, recovery, max_lost, stale_after FROM job WHERE NOT deleted")}));
  Clock clock;
  clock.now = rows[1].Time(0, 0);
  clock.epoch = rows[1].Int(0, 1);
  const LossRules rules = LossRulesOf(rows[3]);
  Ends ends(clock, WaitingOf(rows[2]));
  for (int i = 0; i < rows[0].size() && !IsMutant(Mutant::kNoSettleBurn); ++i) {
    const AttemptRow row = ReadRow(rows[0], i);
    Ending ending = TakenBack(row, rules.Of(row.key.job), clock.now);
    ending.outcome.message = "the store's clock stepped";
    ending.op = "burn";
    ending.wait_until = absl::InfinitePast();
    ends.Add(row, ending);
  }
  std::vector<Statement> writes = ends.Statements();
  const absl::Time soon = clock.now + absl::Minutes(5);
  const std::vector<Statement> rest = {
      Sql("UPDATE job_lock SET until = LEAST(until, ?)", {soon}),
      Sql("UPDATE job_slot SET until = LEAST(until, ?)", {soon}),
      Sql("UPDATE job_watermark r SET r.look_at = r.not_before, r.waits_for = NULL, "
          "r.held_by = NULL, r.held_until = NULL WHERE r.status = 'PLANNED' AND "
          "(r.look_at > r.not_before OR r.held_by IS NOT NULL)"),
      Sql("UPDATE job_watermark r SET r.wait_until = ? WHERE r.wait_until > ?", {soon, soon}),
      Sql("UPDATE job_node SET seen_at = LEAST(seen_at, ?)", {clock.now}),
      Sql("INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES "
          "(?, 'clock', '', '', 0, ?, ?, JSON_OBJECT('was', ?))",
          {clock.now, act.who, act.why, rows[1].Text(0, 2)}),
      Sql("UPDATE matins_meta SET value = CASE name WHEN 'clock_frozen_why' THEN '' WHEN "
          "'clock_hwm' THEN ? WHEN 'return_wait' THEN '0' END WHERE name IN "
          "('clock_frozen_why', 'clock_hwm', 'clock_frozen_at', 'clock_raw', 'return_last', "
          "'return_wait', 'return_due', 'return_planner')",
          {MicrosOf(clock.now)})};
  writes.insert(writes.end(), rest.begin(), rest.end());
  return writes;
}

namespace {

struct Mark : ClockMark {
  absl::Time now;
  int64_t epoch = 0;
  bool settled = false;
  int schema = 0;
  bool nobody = false;  // no node is alive
  int others = 0;       // other nodes that are
};

// The last: nothing runs, and nothing is to be looked at by then; three ends of indexes.
std::vector<Statement> MarkFacts(const std::string& node, absl::Duration idle_ahead) {
  return {
      LockMark(),
      Sql("SELECT matins_clock(), @NOW"),
      Sql("SELECT name, value FROM matins_meta"),
      Sql("SELECT n.boot, n.seen_at FROM job_node n WHERE n.name = ?", {node}),
      Sql("SELECT n.name, n.seen_at FROM job_node n WHERE NOT n.`left`"),
      Sql("SET @matins_now = @NOW"),
      Sql(absl::StrCat(
              "SELECT NOT (EXISTS (SELECT 1 FROM job_watermark WHERE status = 'RUNNING') OR EXISTS "
              "(SELECT 1 FROM job_watermark FORCE INDEX (job_watermark_due) WHERE status = "
              "'PLANNED' AND look_at <= "
              "CAST(@matins_now AS DATETIME(6)) + INTERVAL ? MICROSECOND) OR EXISTS (SELECT 1 FROM "
              "job FORCE INDEX (job_next_look) WHERE NOT deleted AND next_look <= CAST(@matins_now "
              "AS DATETIME(6)) + INTERVAL "
              "? MICROSECOND)), ",
              kAnyAside),
          {idle_ahead, idle_ahead})};
}

Mark ReadMark(const std::vector<Rows>& rows, const std::string& node) {
  Mark m;
  m.raw = rows[1].Time(0, 0);
  m.now = rows[1].Time(0, 1);
  for (int i = 0; i < rows[2].size(); ++i) {
    const std::string name = rows[2].Text(i, 0);
    const absl::Time time =
        rows[2].IsNull(i, 1) ? absl::InfinitePast() : FromMicros(rows[2].Int(i, 1));
    if (name == "clock_hwm") m.hwm = time;
    if (name == "clock_frozen_why") m.frozen_why = rows[2].Text(i, 1);
    if (name == "clock_frozen_at") m.frozen_at = time;
    if (name == "clock_raw") m.last_raw = time;
    if (name == "epoch") m.epoch = rows[2].Int(i, 1);
    if (name == "schema") m.schema = static_cast<int>(rows[2].Int(i, 1));
    if (name == "return_last") m.return_last = time;
    if (name == "return_wait") m.return_wait = absl::Microseconds(rows[2].Int(i, 1));
    if (name == "return_due") m.return_due = time;
  }
  if (rows[3].size() > 0) {
    m.boot = absl::Microseconds(rows[3].Int(0, 0));
    m.seen = rows[3].Time(0, 1);
  }
  m.nobody = true;
  for (int i = 0; i < rows[4].size(); ++i) {
    const absl::Time seen = rows[4].Time(i, 1);
    if (m.hwm != absl::InfinitePast() && seen > m.hwm - kNodeGone) m.witness = true;
    if (seen <= m.now - kNodeGone) continue;
    m.nobody = false;
    if (rows[4].Text(i, 0) != node) ++m.others;
  }
  return m;
}

// Freezes at a step; while frozen, counts the steady time. False: nothing is to be written, not
// even the node's sign of life.
absl::StatusOr<bool> WriteClock(Session& session, const TickRequest& request, Mark& m,
                                std::vector<Statement>& writes) {
  const ClockVerdict verdict = JudgeClock(m, request);
  m.frozen_why = verdict.why;
  switch (verdict.kind) {
    case ClockVerdict::Kind::kWait:
      return false;
    case ClockVerdict::Kind::kForward:
      if (m.raw > m.hwm) writes.push_back(SetMeta("clock_hwm", MicrosOf(m.raw)));
      return true;
    case ClockVerdict::Kind::kSettle: {
      ASSIGN_OR_RETURN(writes, SettleClock(session, {"policy", "the clock has been steady"}));
      m.settled = true;
      m.now = m.raw;
      m.return_last = m.return_due = absl::InfinitePast();
      return true;
    }
    case ClockVerdict::Kind::kFreeze:
      writes.push_back(SetMeta("clock_frozen_why", m.frozen_why));
      writes.push_back(
          Sql("INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES "
              "(?, 'clock', '', '', 0, 'policy', ?, '{\"frozen\":true}')",
              {m.now, m.frozen_why}));
      [[fallthrough]];
    case ClockVerdict::Kind::kRestart:
      writes.push_back(SetMeta("clock_frozen_at", MicrosOf(m.raw)));
      [[fallthrough]];
    case ClockVerdict::Kind::kFrozen:
      writes.push_back(SetMeta("clock_raw", MicrosOf(m.raw)));
  }
  return true;
}

// To a job without a FAILED period it says nothing, as long as its next look can be trusted. The
// jobs are read first: an UPDATE would lock the rows that it asks.
absl::StatusOr<Statement> TriggerByReturn(Session& session, const TickRequest& request) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.More({Sql("SELECT DISTINCT r.job_name FROM job_watermark r WHERE r.status "
                                   "= 'FAILED' AND NOT r.held ORDER BY r.job_name")}));
  std::string failed;
  std::vector<Value> values = {request.planner};
  for (int i = 0; i < rows[0].size(); ++i) {
    absl::StrAppend(&failed, i == 0 ? " OR name IN (?" : ", ?");
    values.push_back(rows[0].Text(i, 0));
  }
  if (!failed.empty()) absl::StrAppend(&failed, ")");
  return Sql(absl::StrCat("UPDATE job SET pending = 'return', next_look = "
                          "TIMESTAMP'1970-01-01 00:00:00', revision = revision + 1 WHERE NOT "
                          "deleted AND pending IS NULL AND (NOT (? <=> (SELECT value FROM "
                          "matins_meta WHERE matins_meta.name = 'return_planner'))",
                          failed, ") ORDER BY name"),
             values);
}

absl::StatusOr<bool> WriteReturn(Session& session, const TickRequest& request, const Mark& m,
                                 std::vector<Statement>& writes) {
  const ReturnVerdict verdict = JudgeReturn(m, m.now, m.nobody);
  if (verdict.due) writes.push_back(SetMeta("return_due", MicrosOf(*verdict.due)));
  if (!verdict.returned) return false;
  writes.push_back(SetMeta("return_last", MicrosOf(m.now)));
  writes.push_back(SetMeta("return_wait", absl::StrCat(absl::ToInt64Microseconds(verdict.wait))));
  writes.push_back(SetMeta("return_due", Value::Null()));
  ASSIGN_OR_RETURN(Statement trigger, TriggerByReturn(session, request));
  writes.push_back(std::move(trigger));
  writes.push_back(
      Sql("INSERT INTO matins_meta (name, value) VALUES ('return_planner', ?) ON DUPLICATE KEY "
          "UPDATE value = VALUES(value)",
          {request.planner}));
  writes.push_back(
      Sql("INSERT INTO job_event (at, kind, job, period, generation, who) VALUES "
          "(?, 'return', '', '', 0, ?)",
          {m.now, absl::StrCat("node:", request.node.name)}));
  return true;
}

}  // namespace

absl::StatusOr<TickAnswer> MariadbStore::Tick(const TickRequest& request) {
  Connection& connection = session_.connection;
  const std::string name = UsableText(request.node.name);
  bool any_aside = false;
  const auto once = [&]() -> absl::StatusOr<TickAnswer> {
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     connection.Begin(MarkFacts(name, request.idle_ahead)));
    Mark mark = ReadMark(rows, name);
    if (IsMutant(Mutant::kNodeClock)) mark.raw = request.wall;
    TickAnswer answer;
    answer.epoch = mark.epoch;
    answer.schema = mark.schema;
    std::vector<Statement> writes;
    ASSIGN_OR_RETURN(const bool judged, WriteClock(session_, request, mark, writes));
    if (!judged) {
      connection.Rollback();
      answer.now = mark.now;
      answer.frozen = true;
      answer.frozen_why = mark.frozen_why;
      return answer;
    }
    if (mark.frozen_why.empty()) {
      ASSIGN_OR_RETURN(answer.returned, WriteReturn(session_, request, mark, writes));
    }
    writes.push_back(
        Sql("INSERT INTO job_node (name, labels, started_at, seen_at, `left`, boot, clock_offset) "
            "VALUES (?, ?, ?, ?, FALSE, ?, ?) ON DUPLICATE KEY UPDATE labels = VALUES(labels), "
            "seen_at = VALUES(seen_at), `left` = FALSE, boot = VALUES(boot), "
            "clock_offset = VALUES(clock_offset)",
            {name, JsonStrings(request.node.labels), mark.now, mark.now, request.boot,
             request.wall - mark.now}));
    if (request.stood_still >= kStoodStill) {
      writes.push_back(
          Sql("INSERT INTO job_event (at, kind, job, period, generation, who, detail) "
              "VALUES (?, ?, '', '', 0, ?, ?)",
              {mark.now, kStoodStillEvent, absl::StrCat("node:", name),
               StoodStillDetail(request.stood_still)}));
    }
    RETURN_IF_ERROR(CommitAt(session_, "tick.before_commit", writes).status());
    MATINS_FAULT_POINT("tick.after_commit");  // crash here: the next node's tick goes on from it
    answer.now = mark.now;
    answer.frozen = !mark.frozen_why.empty();
    answer.frozen_why = mark.frozen_why;
    answer.live_nodes = mark.others + 1;
    answer.idle = !mark.settled && !answer.frozen && !answer.returned && rows[6].Int(0, 0) != 0;
    any_aside = rows[6].Bool(0, 1);
    return answer;
  };
  ASSIGN_OR_RETURN(TickAnswer answer, session_.Retried(once));
  // What waits for this node's labels is to be started. Where that cannot be asked, it may be so.
  if (answer.idle && any_aside) {
    const auto lists = AsideLists(session_, JsonStrings(request.node.labels));
    answer.idle = lists.ok() && lists->empty();
  }
  return answer;
}

absl::Status MariadbStore::Leave(const NodeId& node) {
  const auto once = [&]() -> absl::StatusOr<std::vector<Rows>> {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> held,
        session_.connection.Begin(
            {Sql("UPDATE job_node SET `left` = TRUE WHERE name = ?", {node.name}),
             Sql("SELECT r.job_name, r.period FROM job_watermark r WHERE r.status = 'PLANNED' AND "
                 "r.held_by = ? ORDER BY r.job_name, r.period FOR UPDATE SKIP LOCKED",
                 {node.name})}));
    std::vector<PeriodKey> keys;
    for (int i = 0; i < held[1].size(); ++i) {
      keys.push_back({held[1].Text(i, 0), held[1].Text(i, 1)});
    }
    return session_.connection.Commit(
        {Sql("UPDATE ? @ROWS SET r.held_by = NULL, r.held_until = NULL",
             {KeyTable(KeysInOrder(keys))})});
  };
  return session_.Retried(once).status();
}

}  // namespace matins::mariadb
