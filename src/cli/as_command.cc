#include "cli/as_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/exit_code.h"
#include "job/key_template.h"

namespace matins {

absl::Status FillPlace(ExecProgram& program, absl::string_view example) {
  if (program.command.empty() || program.command.front().empty()) {
    return BadInput("COMMAND", "there is nothing to run",
                    absl::StrCat("write it last, after --: ", example));
  }
  char dir[PATH_MAX];
  program.dir = getcwd(dir, sizeof dir) == nullptr ? "/" : dir;
  const mode_t mask = umask(0);
  umask(mask);
  program.umask = static_cast<int>(mask);
  return absl::OkStatus();
}

absl::Status FillProgram(ExecProgram& program, absl::string_view example) {
  for (const std::string& word : program.command) {
    RETURN_IF_ERROR(Annotate(CheckRunTemplate(word), "COMMAND"));
  }
  return FillPlace(program, example);
}

int CodeOf(const ExecAnswer& answer) {
  switch (answer.end) {
    case ExecEnd::kDone:
      return 0;
    case ExecEnd::kCommand:
    case ExecEnd::kStopped:
      return answer.code;
    case ExecEnd::kFailed:
      return kExecOwn + kExitFailed;
    case ExecEnd::kHeld:
    case ExecEnd::kRefused:
      return kExecOwn + kExitRefused;
    case ExecEnd::kLost:
      return kExecOwn + kExitLost;
    case ExecEnd::kTimeOut:
      return kExecOwn + kExitTimeout;
  }
  return kExecOwn + kExitInternal;
}

absl::Status EndAsCommand(Shell& shell, const absl::StatusOr<ExecAnswer>& answer) {
  if (answer.ok()) {
    shell.SetExit(CodeOf(*answer));
    return absl::OkStatus();
  }
  std::fprintf(stderr, "matins: %s\n", std::string(answer.status().message()).c_str());
  shell.SetExit(kExecOwn + ExitCodeOf(answer.status()));
  return absl::OkStatus();
}

}  // namespace matins
