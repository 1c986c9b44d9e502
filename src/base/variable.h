// The rules for the environment variables that people name: in a job's `env`, and as parameters of
// a run. Reading a job file and starting a run ask the same ones.
#ifndef MATINS_BASE_VARIABLE_H_
#define MATINS_BASE_VARIABLE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins {

// Letters, digits and '_', no digit first.
bool IsVariableName(absl::string_view name);

// InvalidArgument where a job may not set it: no variable's name; set by Matins itself (MATINS_*,
// TRACEPARENT); or one that changes what programs *are* rather than what they are told (LD_*,
// BASH_ENV, ENV, IFS, ...). The message names `env.NAME`, and the mend.
absl::Status CheckEnvName(absl::string_view name);

// InvalidArgument where an entry of this PATH is not absolute: it would be sought in the job's
// folder.
absl::Status CheckEnvPath(absl::string_view path);

}  // namespace matins

#endif  // MATINS_BASE_VARIABLE_H_
