#include "ops/watermark.h"

#include <algorithm>

#include "base/status.h"

namespace matins {
namespace {

// The oldest period of the job that is neither DONE nor SKIPPED, whether or not it has a row.
absl::Time FirstGap(const Planned& planned) {
  absl::Time first = planned.state().gap_from.value_or(absl::InfiniteFuture());
  for (const PeriodRow& row : planned.state().rows) {
    if (row.status != PeriodStatus::kDone && row.status != PeriodStatus::kSkipped)
      first = std::min(first, row.due);
  }
  return first;
}

// The newest settled period that was due before `gap`.
absl::StatusOr<std::string> LastSettledBefore(Session& session, const std::string& job,
                                              absl::Time gap) {
  RowFilter filter;
  filter.job = job;
  filter.newest_first = true;
  filter.limit = 1'000'000;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  for (const PeriodRow& row : rows) {
    const bool settled = row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped;
    if (settled && row.due < gap) return row.key.period;
  }
  return std::string();
}

}  // namespace

absl::StatusOr<Watermark> ReadWatermark(Session& session, const RowFilter& filter) {
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, filter.job));
  Watermark watermark;
  watermark.job = filter.job;
  watermark.zone = planned.current().schedule.zone();
  ASSIGN_OR_RETURN(watermark.rows, session.acts().ReadRows(filter));
  std::sort(watermark.rows.begin(), watermark.rows.end(),
            [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  ASSIGN_OR_RETURN(watermark.spans, session.acts().ReadSpans(filter.job));
  ASSIGN_OR_RETURN(watermark.high_water_mark,
                   LastSettledBefore(session, filter.job, FirstGap(planned)));
  return watermark;
}

}  // namespace matins
