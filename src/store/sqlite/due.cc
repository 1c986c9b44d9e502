#include "store/sqlite/due.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "store/rules.h"

namespace matins::sqlite {

const char kMayRun[] =
    "(w.held_by = '' OR w.held_until <= ?2) AND NOT j.deleted AND j.suspended_at IS NULL AND "
    "(j.labels = '[]' OR NOT EXISTS (SELECT 1 FROM json_each(j.labels) l WHERE l.value NOT IN "
    "(SELECT value FROM json_each(?3))))";

namespace {

std::string Select(absl::string_view where, absl::string_view order) {
  return absl::StrCat("SELECT ", kRowColumns, " FROM job_watermark WHERE status = 'PLANNED' AND ",
                      where, " AND (held_by = '' OR held_until <= ?1) ORDER BY ", order,
                      " LIMIT ?2");
}

}  // namespace

Due::Due(Connection& db, Jobs& jobs, const DueRequest& request)
    : db_(db),
      jobs_(jobs),
      request_(request),
      limit_(request.wanted + request.without.size() + (request.order.priorities ? 224 : 24)),
      seen_(request.without) {
  static const std::string kByTime = Select("look_at <= ?1", "look_at");
  static const std::string kByTurn =
      Select("start_tag > 0 AND look_at <= ?1", "start_tag, look_at");
  const auto most = static_cast<int64_t>(limit_ + kPassedOver);
  if (request.order.turns) {
    Read(db.Sql(kByTurn, request.now, most));
    ReadAside(/*tagged=*/true);
  }
  if (!request.order.turns || seen_.size() < limit_) {
    Read(db.Sql(kByTime, request.now, most));
    ReadAside(/*tagged=*/false);
  }
  SetAside();
  std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.start_tag != b.start_tag) return a.start_tag < b.start_tag;
    return a.due != b.due ? a.due < b.due : a.key < b.key;
  });
}

// As many as there were room for, had nothing else been found: the most urgent are chosen at last.
void Due::Read(Statement rows) {
  std::vector<Row> others;
  for (size_t found = 0; found < limit_ && rows.Next();) {
    Row row = ReadRow(rows);
    const JobInfo* job = jobs_.Find(row.key.job);
    if (job == nullptr) continue;
    if (job->suspended || !HasLabels(request_.node.labels, job->labels)) {
      others.push_back(std::move(row));
      continue;
    }
    ++found;
    if (seen_.insert(row.key).second) rows_.push_back(std::move(row));
  }
  if (others.size() < kPassedOver) return;
  std::move(others.begin(), others.end(), std::back_inserter(others_));
}

void Due::ReadAside(bool tagged) {
  static const std::string kSql =
      Select("waits_for >= ?3 AND waits_for < ?4 AND waits_for IS NOT NULL", "waits_for, due_at");
  for (const std::string& list : AsideLists(db_, request_.node.labels)) {
    Read(db_.Sql(kSql, request_.now, static_cast<int64_t>(limit_ + kPassedOver),
                 AsideFrom(list, tagged), AsideEnd(list)));
  }
}

void Due::SetAside() {
  more_ = !others_.empty();
  for (const Row& row : others_) {
    const JobInfo& job = *jobs_.Find(row.key.job);
    const matins::SetAside aside = AsideOf(row.key, job.suspended ? "" : JsonArray(job.labels),
                                           row.start_tag, request_.now, request_.soon);
    db_.Sql(
           "UPDATE job_watermark SET look_at = ?, waits_for = ?, held_by = '', held_until = NULL "
           "WHERE rowid = ?",
           aside.look_at,
           aside.waits_for.empty() ? std::nullopt : std::optional<std::string>(aside.waits_for),
           row.rowid)
        .Run();
  }
}

std::vector<std::string> AsideLists(Connection& db, const std::vector<std::string>& labels) {
  std::vector<std::string> lists;
  for (std::string from = kAside;;) {
    std::string list;
    {
      Statement next = db.Sql(
          "SELECT waits_for FROM job_watermark WHERE status = 'PLANNED' AND waits_for >= ? AND "
          "waits_for IS NOT NULL ORDER BY waits_for LIMIT 1",
          from);
      if (!next.Next()) return lists;
      list = std::string(AsideListOf(next.Text(0)));
    }
    if (!absl::StartsWith(list, kAside)) return lists;
    from = AsideEnd(list);
    if (HasLabels(labels, ReadLabels(db, std::string(LabelsOfAside(list))))) {
      lists.push_back(std::move(list));
    }
  }
}

bool AnyDue(Connection& db, const NodeId& node, absl::Time now) {
  const std::string due = absl::StrCat(
      " FROM job_watermark WHERE status = 'PLANNED' AND look_at <= ?1 AND (held_by = '' OR "
      "held_until <= ?1) ORDER BY look_at LIMIT ");
  static const std::string kOwn =
      absl::StrCat("SELECT 1 FROM (SELECT job_name, held_by, held_until", due, kPassedOver,
                   ") w CROSS JOIN job j ON j.name = w.job_name WHERE ", kMayRun, " LIMIT 1");
  if (db.Sql(kOwn, now, now, JsonArray(node.labels)).Next()) return true;
  static const std::string kCrowd = absl::StrCat("SELECT 1", due, "1 OFFSET ", kPassedOver - 1);
  if (db.Sql(kCrowd, now).Next()) return true;
  return !AsideLists(db, node.labels).empty();
}

}  // namespace matins::sqlite
