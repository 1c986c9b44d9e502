#include "store/mariadb/due.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/set_aside.h"

namespace matins::mariadb {
namespace {

constexpr int kUrgentLook = 200;
constexpr int kUrgentTimes = 4;

constexpr absl::string_view kNow = "CAST(@matins_now AS DATETIME(6))";

std::string Free() { return absl::StrCat("(r.held_by IS NULL OR r.held_until <= ", kNow, ")"); }

constexpr absl::string_view kColumns =
    "r.job_name, r.period, r.priority, r.due_at, r.look_at, r.start_tag, r.not_before";

// The first due rows by their index, whoever may run them.
std::string ByIndex(const DueWindow& window) {
  return absl::StrCat("SELECT ", kColumns, " FROM job_watermark r FORCE INDEX (job_watermark_",
                      window.in_turn ? "turn) WHERE r.turn > 0 AND r.turn_at"
                                     : "due) WHERE r.status = 'PLANNED' AND r.look_at",
                      " <= ", kNow, " AND r.not_before <= ", kNow, " AND ", Free(), " ORDER BY ",
                      window.in_turn ? "r.turn, r.turn_at" : "r.look_at", " LIMIT ",
                      window.look + kPassedOver);
}

Statement OfList(const DueWindow& window, const std::string& list) {
  return Sql(absl::StrCat("SELECT ", kColumns,
                          " FROM job_watermark r FORCE INDEX (job_watermark_waiting) WHERE "
                          "r.waits_for >= ? AND r.waits_for < ? AND r.status = 'PLANNED' AND ",
                          Free(), " ORDER BY r.waits_for, r.due_at LIMIT ?"),
             {AsideFrom(list, window.in_turn), AsideEnd(list), window.look});
}

// Of the first rows of the index and of the lists, those that this node may run.
Statement InACrowd(const DueWindow& window) {
  const absl::string_view wrap =
      "(SELECT w.* FROM (?) w STRAIGHT_JOIN job b FORCE INDEX (PRIMARY) ON b.name = w.job_name "
      "WHERE NOT b.deleted AND b.suspended_at IS NULL AND JSON_CONTAINS(?, b.labels) LIMIT ?)";
  std::string text = Sql(wrap, {Value::Of(ByIndex(window)), window.labels, window.look}).sql;
  for (const std::string& list : window.lists) {
    absl::StrAppend(
        &text, " UNION ",
        Sql(wrap, {Value::Of(OfList(window, list).sql), window.labels, window.look}).sql);
  }
  return {text};
}

Statement AtEase(const DueWindow& window) {
  return Sql(
      absl::StrCat("SELECT ", kColumns,
                   " FROM job_watermark r FORCE INDEX (?) STRAIGHT_JOIN job b FORCE INDEX "
                   "(PRIMARY) ON b.name = r.job_name WHERE ? <= ",
                   kNow, " AND r.not_before <= ", kNow, " AND ", Free(),
                   " AND NOT b.deleted AND b.suspended_at IS NULL AND JSON_CONTAINS(?, b.labels) "
                   "ORDER BY ? LIMIT ?"),
      {Value::Of(window.in_turn ? "job_watermark_turn" : "job_watermark_due"),
       Value::Of(window.in_turn ? "r.turn > 0 AND r.turn_at"
                                : "r.status = 'PLANNED' AND r.look_at"),
       window.labels, Value::Of(window.in_turn ? "r.turn, r.turn_at" : "r.look_at"), window.look});
}

}  // namespace

absl::StatusOr<std::vector<std::string>> AsideLists(Session& session, const std::string& labels) {
  std::vector<std::string> lists;
  for (std::string from = kAside;;) {
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session.connection.Read({Sql(
            "SELECT r.waits_for, JSON_CONTAINS(?, SUBSTRING(r.waits_for, ?, "
            "CHAR_LENGTH(r.waits_for) - ?)) FROM job_watermark r FORCE INDEX "
            "(job_watermark_waiting) WHERE r.waits_for >= ? AND r.status = 'PLANNED' ORDER BY "
            "r.waits_for LIMIT 1",
            {labels, static_cast<int64_t>(absl::string_view(kAside).size() + 1),
             static_cast<int64_t>(absl::string_view(kAside).size() + kTagDigits + 1), from})}));
    if (rows[0].size() == 0) return lists;
    const std::string first = rows[0].Text(0, 0);
    const absl::string_view list = AsideListOf(first);
    from = AsideEnd(list);
    if (rows[0].Bool(0, 1)) lists.emplace_back(list);
  }
}

int DueLookOf(const StartRequest& request, const StartMemory& memory) {
  const int chosen = request.also_due * memory.reach + kSpare;
  if (!memory.any_priority) return chosen;
  return std::max(chosen, kUrgentTimes * request.also_due + kUrgentLook);
}

std::vector<Statement> AlsoDue(const DueWindow& window, const StartRequest& request,
                               const StartMemory& memory) {
  const int taken = request.also_due + kSpare;
  const int chosen = request.also_due * memory.reach + kSpare;
  const Statement found = window.crowded ? InACrowd(window) : AtEase(window);
  return {Sql("SET @matins_now = @NOW"),
          Sql("SELECT JSON_ARRAYAGG(JSON_OBJECT('job', d.job_name, 'period', d.period)), COUNT(*) "
              "INTO @matins_due, @matins_many FROM (SELECT c.job_name, c.period FROM (?) c "
              "ORDER BY ? LIMIT ?) d",
              {Value::Of(found.sql),
               Value::Of(memory.any_priority
                             ? "c.priority DESC, c.start_tag, c.due_at, c.job_name, c.period"
                         : window.crowded ? "c.start_tag, c.not_before"
                                          : "c.start_tag, c.look_at"),
               chosen}),
          Sql(absl::StrCat("SELECT ", RowColumns(), ", r.start_tag FROM ? @ROWS WHERE r.status = ",
                           "'PLANNED' LIMIT ? FOR UPDATE SKIP LOCKED"),
              {JsonTableOf(Value::Of("@matins_due"), "job name, period name"), taken}),
          Sql("SELECT @matins_many, (SELECT COALESCE(MAX(id), 0) FROM job_event)")};
}

std::vector<Statement> DueForOthers(const DueWindow& window) {
  const absl::string_view wrap =
      "SELECT w.job_name, w.period, w.start_tag, IF(b.suspended_at IS NULL, b.labels, ''), "
      "b.suspended_at IS NULL AND JSON_CONTAINS(?, b.labels) FROM (?) w STRAIGHT_JOIN job b FORCE "
      "INDEX (PRIMARY) ON b.name = w.job_name WHERE NOT b.deleted";
  std::vector<Statement> out = {Sql(wrap, {window.labels, Value::Of(ByIndex(window))})};
  for (const std::string& list : window.lists) {
    out.push_back(Sql(wrap, {window.labels, Value::Of(OfList(window, list).sql)}));
  }
  return out;
}

std::map<PeriodKey, OfOther> OthersOf(const std::vector<Rows>& rows) {
  std::map<PeriodKey, OfOther> others;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::map<PeriodKey, OfOther> found;
    for (int k = 0; k < rows[i].size(); ++k) {
      if (rows[i].Bool(k, 4)) continue;
      found[{rows[i].Text(k, 0), rows[i].Text(k, 1)}] = {rows[i].Text(k, 3), rows[i].Int(k, 2)};
    }
    if (i == 0 && found.size() < kPassedOver) continue;
    others.merge(found);
  }
  return others;
}

}  // namespace matins::mariadb
