// What `matins exec` and `matins lock` share: they run the command behind "--" in this process's
// place, and end as it does.
#ifndef MATINS_CLI_AS_COMMAND_H_
#define MATINS_CLI_AS_COMMAND_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/shell.h"
#include "ops/exec.h"

namespace matins {

// Where this process stands: its folder and umask. `example`: what the mend shows where there is no
// command.
absl::Status FillPlace(ExecProgram& program, absl::string_view example);

// The same for a command whose words are templates, as `run.command`.
absl::Status FillProgram(ExecProgram& program, absl::string_view example);

// The command's code; what there is to say of ourselves is kExecOwn and a code of exit_code.h.
int CodeOf(const ExecAnswer& answer);

// Sets the exit code, and tells an error that is none of the command's.
absl::Status EndAsCommand(Shell& shell, const absl::StatusOr<ExecAnswer>& answer);

}  // namespace matins

#endif  // MATINS_CLI_AS_COMMAND_H_
