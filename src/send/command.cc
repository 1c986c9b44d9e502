#include "send/command.h"

#include <sys/wait.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "send/child.h"

namespace matins {

absl::Status RunCommand(const Channel& channel, const AlertMessage& message,
                        const std::atomic<bool>& stop) {
  ChildCall call;
  call.words = channel.command;
  call.variables = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const auto& [name, secret] : channel.env) {
    ASSIGN_OR_RETURN(const std::string value, ReadSecret(secret));
    call.variables.push_back(absl::StrCat(name, "=", value));
  }
  call.input = MessageJson(message);
  call.timeout = channel.timeout;
  call.stop = &stop;
  ASSIGN_OR_RETURN(const ChildEnd end, RunChild(call));
  if (end.status == 0) return absl::OkStatus();
  if (WIFSIGNALED(end.status)) {
    return absl::UnavailableError(
        absl::StrCat("the command was killed by signal ", WTERMSIG(end.status)));
  }
  if (WEXITSTATUS(end.status) == kNoProgram) {
    return absl::UnavailableError("the command is not there, or cannot be run");
  }
  return absl::UnavailableError(
      absl::StrCat("the command ended with exit code ", WEXITSTATUS(end.status)));
}

}  // namespace matins
