// Names that people give: to jobs, tenants, calendars, labels, handlers.
#ifndef MATINS_JOB_NAMES_H_
#define MATINS_JOB_NAMES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins {

// 1 to 64 bytes of UTF-8, compared as bytes everywhere ("job" and "Job" are two names, and so are
// an accent composed and decomposed). Letters and digits of any script, and - _ . between them: a
// name stands in addresses, file names, columns and commands, and works in all of them as it is.
// InvalidArgument with the reason and the mend; `what` begins the message: "job name".
absl::Status CheckName(absl::string_view what, absl::string_view name);

}  // namespace matins

#endif  // MATINS_JOB_NAMES_H_
