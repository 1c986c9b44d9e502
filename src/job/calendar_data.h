// The days of a calendar as a version of a job carries them.
#ifndef MATINS_JOB_CALENDAR_DATA_H_
#define MATINS_JOB_CALENDAR_DATA_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "job/job.h"

namespace matins {

// From a calendar's file (Calendar::Parse's forms). With an end of coverage the days are written
// out one range a line from 2000 on, so that a file fetched again with other stamps and the same
// days makes no new version; without one the file's own text is kept, at most 256 KiB of it.
absl::StatusOr<CalendarData> MakeCalendarData(absl::string_view name, absl::string_view text,
                                              std::optional<absl::CivilDay> until);

}  // namespace matins

#endif  // MATINS_JOB_CALENDAR_DATA_H_
