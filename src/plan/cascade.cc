#include "plan/cascade.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace matins {

std::vector<std::string> JobsAfter(absl::string_view job, absl::Span<const CascadeJob> jobs) {
  std::set<std::string> reached = {std::string(job)};
  std::vector<std::string> order;
  // Level by level; one that waits for two comes behind the later of them.
  for (size_t before = 0; before != reached.size();) {
    before = reached.size();
    std::vector<std::string> level;
    for (const CascadeJob& other : jobs) {
      if (reached.contains(other.name)) continue;
      const bool waits = std::any_of(other.after.begin(), other.after.end(),
                                     [&](const std::string& a) { return reached.contains(a); });
      if (waits) level.push_back(other.name);
    }
    std::sort(level.begin(), level.end());
    reached.insert(level.begin(), level.end());
    order.insert(order.end(), level.begin(), level.end());
  }
  return order;
}

Cascade PlanCascade(absl::string_view job, absl::Time first_due, absl::CivilDay first_day,
                    absl::Span<const CascadeJob> jobs, absl::Span<const PeriodRow> rows,
                    absl::Time now) {
  std::map<std::string, size_t> place = {{std::string(job), 0}};
  for (const std::string& name : JobsAfter(job, jobs)) place.emplace(name, place.size());
  std::map<std::string, absl::Duration> windows;
  for (const CascadeJob& one : jobs) windows[one.name] = one.source_window;

  std::vector<const PeriodRow*> stale;
  for (const PeriodRow& row : rows) {
    if (!place.contains(row.key.job)) continue;
    const bool later = row.key.job == job ? row.due > first_due : row.biz_date >= first_day;
    if (later) stale.push_back(&row);
  }
  std::sort(stale.begin(), stale.end(), [&](const PeriodRow* a, const PeriodRow* b) {
    return std::forward_as_tuple(place[a->key.job], a->due, a->key.period) <
           std::forward_as_tuple(place[b->key.job], b->due, b->key.period);
  });
  Cascade cascade;
  for (const PeriodRow* row : stale) {
    if (row->status == PeriodStatus::kRunning) cascade.running.push_back(*row);
    if (row->status != PeriodStatus::kDone) continue;
    const auto window = windows.find(row->key.job);
    const bool gone = window != windows.end() && now - row->due > window->second;
    (gone ? cascade.unfillable : cascade.reopen).push_back(row->key);
  }
  return cascade;
}

}  // namespace matins
