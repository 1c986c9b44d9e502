#include "job/job_state.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace matins {

namespace {

std::optional<int> OldestJudging(const std::vector<PeriodRow>& rows) {
  std::optional<int> oldest;
  for (const PeriodRow& row : rows) {
    const bool judged = row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kFailed;
    if (!judged || row.held || row.version == 0) continue;
    oldest = std::min(oldest.value_or(row.version), row.version);
  }
  return oldest;
}

}  // namespace

PeriodRow PlannedRow(const Intent& intent) {
  return {.key = intent.key,
          .biz_date = intent.biz_date,
          .status = intent.skip_reason.empty() ? PeriodStatus::kPlanned : PeriodStatus::kSkipped,
          .due = intent.due,
          .window_start = intent.window_start,
          .window_end = intent.window_end,
          .nominal = intent.nominal,
          .not_before = intent.not_before,
          .start_by = intent.start_by,
          .version = intent.version,
          .backfill = intent.backfill,
          .manual = intent.manual,
          .params = intent.params,
          .reason = intent.skip_reason,
          .by = intent.by};
}

std::vector<JobVersion> VersionsSince(std::vector<JobVersion> all, absl::Time since,
                                      const std::vector<PeriodRow>& rows) {
  const std::optional<int> oldest = OldestJudging(rows);
  std::vector<JobVersion> versions;
  for (JobVersion& version : all) {
    // A version is in force until the next one's beginning: the older ones before that are past.
    const bool judges = oldest && version.number > *oldest;
    if (version.from <= since && !judges) versions.clear();
    versions.push_back(std::move(version));
  }
  return versions;
}

}  // namespace matins
