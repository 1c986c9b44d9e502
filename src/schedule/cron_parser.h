// The cron dialects: 5 fields, 6 fields, Quartz. Their grammar is in docs/schedules.md.
#ifndef MATINS_SCHEDULE_CRON_PARSER_H_
#define MATINS_SCHEDULE_CRON_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "schedule/pattern.h"
#include "schedule/schedule.h"

namespace matins {

// `dialect` is kVixie5, kSeconds6 or kQuartz. InvalidArgument names field, reason and mend.
absl::StatusOr<Pattern> ParseCron(absl::string_view text, Dialect dialect);

}  // namespace matins

#endif  // MATINS_SCHEDULE_CRON_PARSER_H_
