// The watermark of a job: its periods, and up to where there is no gap.
#ifndef MATINS_OPS_WATERMARK_H_
#define MATINS_OPS_WATERMARK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/session.h"

namespace matins {

struct Watermark {
  std::string job;
  absl::TimeZone zone;
  std::vector<PeriodRow> rows;  // ascending by due
  std::vector<SkipSpan> spans;
  // The last period below which every period is DONE or SKIPPED; empty where the first one already
  // is not.
  std::string high_water_mark;
};

// `filter.job` names the job; NotFound where there is none. The high-water mark is of the whole
// job, not of the filter.
absl::StatusOr<Watermark> ReadWatermark(Session& session, const RowFilter& filter);

}  // namespace matins

#endif  // MATINS_OPS_WATERMARK_H_
