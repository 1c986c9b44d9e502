// The texts of single values in a job file, both ways.
#ifndef MATINS_JOB_VALUES_TEXT_H_
#define MATINS_JOB_VALUES_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

// "09:00" or "09:00:30" (a local time of day), or a duration after due: "3h". Errors here and
// below: InvalidArgument with the reason and the mend.
absl::StatusOr<DoneBy> ParseDoneBy(absl::string_view text);
std::string DoneByText(const DoneBy& done_by);

// "30s..10m", least and most; "30s": both.
absl::StatusOr<std::pair<absl::Duration, absl::Duration>> ParseBackoff(absl::string_view text);

// "256KiB", "1MiB", "65536": 0 to 16 MiB.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);
std::string BytesText(int64_t bytes);

// Octal whatever its look, as umask(1) has it: "022", "0022" and "0o22" are 18. It begins with 0,
// so that nobody reads it otherwise.
absl::StatusOr<int> ParseUmask(absl::string_view text);
std::string UmaskText(int umask);

}  // namespace matins

#endif  // MATINS_JOB_VALUES_TEXT_H_
