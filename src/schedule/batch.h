// Many questions about schedules in one go, a JSON object a line: what `matins next --batch` reads
// and writes.
#ifndef MATINS_SCHEDULE_BATCH_H_
#define MATINS_SCHEDULE_BATCH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

// The largest `n` of a line.
inline constexpr int kMostBatchFires = 10000;

// The answer to one line, without a newline. The line is an object with
//   expr     the expression
//   dialect  auto (default), vixie5, seconds6, quartz or oncalendar
//   tz       an IANA zone, default UTC; a zone inside an OnCalendar expression wins
//   from     an instant, exclusive, default `now`
//   n        1 to kMostBatchFires, default 1: an upper bound
// and the answer {"next":["2026-11-29T02:00:00Z",...]}, shorter than n or empty when the schedule
// ends, or {"error":"..."}; it never fails otherwise, whatever the line. Other keys are passed
// over, so that a line may carry its own id. Thread-safe.
std::string AnswerBatchLine(absl::string_view line, absl::Time now);

}  // namespace matins

#endif  // MATINS_SCHEDULE_BATCH_H_
