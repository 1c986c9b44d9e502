// The environment of a run, listed from nothing: what this process has in its own (passwords of
// stores among it) never reaches a job.
//
//   PATH, HOME, USER, LOGNAME, SHELL, LANG     the usual, the same on every node
//   the job's `env`                            may replace those
//   MATINS_*, TRACEPARENT                      about this run; always ours
//
// Refused in `env`: what base/variable.h refuses, and a PATH with entries that are not absolute
// once its templates are expanded. Values that come with a run (parameters, periods) never name a
// variable of their own.
#ifndef MATINS_EXECUTE_ENVIRONMENT_H_
#define MATINS_EXECUTE_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "execute/runner.h"
#include "execute/user.h"

namespace matins {

// "NAME=value" each, sorted, no name twice. `socket` is MATINS_SOCKET's value. A checkpoint of more
// than 32 KiB, or with a NUL in it, is not here: MATINS_CHECKPOINT_FILE names `checkpoint_file`,
// which the caller writes (an environment that is too large would fail every later start).
// Templates in the job's values are expanded. Errors name the variable and the mend.
absl::StatusOr<std::vector<std::string>> BuildEnvironment(const RunRequest& request,
                                                          const UserAccount& account,
                                                          const std::string& socket,
                                                          const std::string& checkpoint_file);

bool CheckpointNeedsFile(const RunValues& values);

}  // namespace matins

#endif  // MATINS_EXECUTE_ENVIRONMENT_H_
