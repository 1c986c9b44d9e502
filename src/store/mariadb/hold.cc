// Held before it is due: dispatched to a node, without lock, lease or time-out.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/due.h"
#include "store/mariadb/store.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"
#include "store/set_aside.h"

namespace matins::mariadb {
namespace {

// Rows that may be held, the most urgent of those that the index gives first. Nothing is locked:
// what is taken is asked again behind its lock.
std::vector<Statement> MayHold(const HoldRequest& request) {
  return {Sql("SET @matins_now = @NOW"),
          Sql("SELECT d.job_name, d.period FROM (SELECT w.* FROM (SELECT r.job_name, r.period, "
              "r.priority, r.due_at FROM job_watermark r FORCE INDEX (job_watermark_due) WHERE "
              "r.status = 'PLANNED' AND (? OR r.look_at > CAST(@matins_now AS DATETIME(6))) AND "
              "r.look_at <= CAST(@matins_now AS DATETIME(6)) + INTERVAL ? MICROSECOND AND "
              "(r.look_at <= CAST(@matins_now AS DATETIME(6)) OR NOT COALESCE(r.look_at > "
              "r.not_before, FALSE)) AND (r.held_by IS NULL OR r.held_until <= CAST(@matins_now AS "
              "DATETIME(6))) "
              "ORDER BY r.look_at LIMIT ?) w STRAIGHT_JOIN job b FORCE INDEX (PRIMARY) ON b.name = "
              "w.job_name AND NOT b.deleted "
              "AND b.suspended_at IS NULL AND JSON_CONTAINS(?, b.labels) LIMIT ?) d "
              "ORDER BY d.priority DESC, d.due_at, d.job_name, d.period LIMIT ?",
              {request.due, request.ahead, 8 * request.limit + 2000,
               JsonStrings(request.node.labels), 4 * request.limit + 200, request.limit}),
          Sql("SELECT r.look_at FROM job_watermark r FORCE INDEX (job_watermark_due) WHERE "
              "r.status = 'PLANNED' AND "
              "r.look_at > CAST(@matins_now AS DATETIME(6)) + INTERVAL ? MICROSECOND "
              "ORDER BY r.look_at LIMIT 1",
              {request.ahead}),
          Sql("SELECT r.look_at FROM job_watermark r FORCE INDEX (job_watermark_due) WHERE "
              "r.status = 'PLANNED' AND r.look_at > CAST(@matins_now AS DATETIME(6)) AND "
              "r.look_at <= CAST(@matins_now AS DATETIME(6)) + INTERVAL ? MICROSECOND AND "
              "r.look_at > r.not_before ORDER BY r.look_at LIMIT 1",
              {request.ahead}),
          // Of what is due and held by nobody, the first rows by their index: how many there are,
          // and how many this node could run.
          Sql(absl::StrCat("SELECT COUNT(*), COALESCE(SUM(NOT b.deleted AND b.suspended_at IS NULL "
                           "AND JSON_CONTAINS(?, b.labels)), 0), ",
                           kAnyAside,
                           " FROM (SELECT r.job_name FROM job_watermark r FORCE INDEX "
                           "(job_watermark_due) WHERE r.status = 'PLANNED' AND "
                           "r.look_at <= CAST(@matins_now AS DATETIME(6)) AND "
                           "r.not_before <= CAST(@matins_now AS DATETIME(6)) AND "
                           "(r.held_by IS NULL OR r.held_until <= CAST(@matins_now AS "
                           "DATETIME(6))) ORDER BY r.look_at LIMIT ?) w "
                           "LEFT JOIN job b FORCE INDEX (PRIMARY) ON b.name = w.job_name"),
              {JsonStrings(request.node.labels), kPassedOver}),
          ReadClock()};
}

}  // namespace

absl::StatusOr<HoldAnswer> MariadbStore::Hold(const HoldRequest& request) {
  Connection& connection = session_.connection;
  const auto once = [&]() -> absl::StatusOr<HoldAnswer> {
    ASSIGN_OR_RETURN(const std::vector<Rows> look, connection.Begin(MayHold(request)));
    HoldAnswer answer;
    answer.now = ClockOf(look[5]).now;
    const int64_t due = look[4].Int(0, 0), own = look[4].Int(0, 1);
    start_.crowded = due == kPassedOver && own < kPassedOver;
    start_.any_aside = look[4].Bool(0, 2);
    if (look[2].size() > 0) answer.next_start = look[2].Time(0, 0, absl::InfiniteFuture());
    if (look[3].size() > 0) answer.next_look = look[3].Time(0, 0, absl::InfiniteFuture());
    std::vector<PeriodKey> keys;
    for (int i = 0; i < look[1].size(); ++i)
      keys.push_back({look[1].Text(i, 0), look[1].Text(i, 1)});
    if (keys.empty() || ClockOf(look[5]).frozen) {
      connection.Rollback();
      answer.due = own > 0 || start_.crowded;
      return answer;
    }
    ASSIGN_OR_RETURN(
        const std::vector<Rows> locked,
        connection.More({LockRows(session_, KeysInOrder(keys), Locking::kSkip), ReadClock()}));
    const absl::Time now = ClockOf(locked[1]).now;
    std::map<PeriodKey, AttemptRow> rows;
    for (int i = 0; i < locked[0].size(); ++i) {
      AttemptRow row = ReadRow(locked[0], i);
      const bool held = !row.held_by.empty() && row.held_until > now;
      if (row.status == PeriodStatus::kPlanned && !held) rows[row.key] = std::move(row);
    }
    JsonRows taken;
    for (const PeriodKey& key : keys) {
      const auto row = rows.find(key);
      if (row == rows.end()) continue;
      taken.Row().AddKey(key).AddTime("until", std::max(row->second.not_before, now) + kHoldFor);
      answer.rows.push_back({key, row->second.not_before, row->second.priority});
    }
    std::vector<Statement> writes;
    if (!taken.empty()) {
      writes.push_back(
          Sql("UPDATE ? @ROWS SET r.held_by = ?, r.dispatched_at = ?, "
              "r.held_until = x.until, r.ver = r.ver + 1, r.op = 'dispatch', r.op_at = ?",
              {JsonTable(taken.Take(), "job name, period name, until time"), request.node.name, now,
               now}));
    }
    // Crash here: the rows are free.
    RETURN_IF_ERROR(CommitAt(session_, "hold.before_commit", writes).status());
    int64_t taken_due = 0;
    for (const HeldRow& row : answer.rows) taken_due += row.not_before <= answer.now ? 1 : 0;
    answer.due = own > taken_due || start_.crowded;
    return answer;
  };
  ASSIGN_OR_RETURN(HoldAnswer answer, session_.Retried(once));
  MATINS_FAULT_POINT("hold.after_commit");  // crash here: held_until frees them
  if (!answer.due && start_.any_aside) {
    ASSIGN_OR_RETURN(const std::vector<std::string> lists,
                     AsideLists(session_, JsonStrings(request.node.labels)));
    answer.due = !lists.empty();
  }
  return answer;
}

absl::Status MariadbStore::Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) {
  if (keys.empty()) return absl::OkStatus();
  const std::string json = KeysInOrder({keys.begin(), keys.end()});
  const auto once = [&]() -> absl::StatusOr<std::vector<Rows>> {
    ASSIGN_OR_RETURN(const std::vector<Rows> locked,
                     session_.connection.Begin({LockRows(session_, json, Locking::kSkip)}));
    JsonRows held;
    for (int i = 0; i < locked[0].size(); ++i) {
      const AttemptRow row = ReadRow(locked[0], i);
      if (row.status == PeriodStatus::kPlanned && row.held_by == UsableText(node.name)) {
        held.Row().AddKey(row.key);
      }
    }
    return session_.connection.Commit(
        {Sql("UPDATE ? @ROWS SET r.held_by = NULL, r.held_until = NULL", {KeyTable(held.Take())})});
  };
  return session_.Retried(once).status();
}

}  // namespace matins::mariadb
