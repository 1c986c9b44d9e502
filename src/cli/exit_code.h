// What a command's exit code tells: one table, from a Status's code. docs/commands.md shows it to
// users.
#ifndef MATINS_CLI_EXIT_CODE_H_
#define MATINS_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace matins {

enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,     // the run, wait or check it was asked about did not end well
  kExitUsage = 2,      // bad arguments or a bad file; nothing was done
  kExitNotFound = 3,   // no such job, run, period or store
  kExitRefused = 4,    // it is there, but its state does not allow that
  kExitAway = 5,       // the store cannot be reached; nothing was done, try again
  kExitUnknown = 6,    // sent, and no answer came: it may have been done
  kExitTimeout = 7,    // waited as long as it was told to
  kExitLost = 8,       // (exec) the run was taken from it, or cancelled: its result does not count
  kExitInternal = 70,  // a bug
};

// `matins exec` ends with its command's code; what it has to say itself is one of the above and
// this.
inline constexpr int kExecOwn = 100;

ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace matins

#endif  // MATINS_CLI_EXIT_CODE_H_
