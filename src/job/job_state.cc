#include "job/job_state.h"

#include <algorithm>

namespace matins {

std::optional<int> OldestJudging(const std::vector<PeriodRow>& rows) {
  std::optional<int> oldest;
  for (const PeriodRow& row : rows) {
    const bool judged = row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kFailed;
    if (!judged || row.held || row.version == 0) continue;
    oldest = std::min(oldest.value_or(row.version), row.version);
  }
  return oldest;
}

}  // namespace matins
