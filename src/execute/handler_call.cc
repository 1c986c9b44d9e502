#include "execute/handler_call.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"

namespace matins {

absl::Status CallHandler(const Handler& handler, HandlerContext& context) {
  const std::string& name = context.request().program.handler;
  try {
    return handler(context);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the handler ", name, " threw: ", error.what()));
  } catch (...) {
    return absl::InternalError(absl::StrCat("the handler ", name, " threw something"));
  }
}

RunNotStarted NoSuchHandler(const std::string& name) {
  return {.error = absl::NotFoundError(absl::StrCat("run.handler: this program has no handler '",
                                                    name, "'; AddHandler before Start")),
          .exit_code = 127};
}

bool AbortsProcess(const RunRequest& request, StopReason reason) {
  const bool lost = reason == StopReason::kLeaseLost || reason == StopReason::kTimeOut;
  return lost && request.abort_on_lease_lost;
}

void AbortProcess(const RunRequest& request) {
  std::fprintf(stderr,
               "matins: the handler %s of job %s did not stop when its lease was lost; "
               "on_lease_lost: abort_process ends the process\n",
               request.program.handler.c_str(), request.values.job.c_str());
  std::abort();
}

absl::Status LeaseLostError() {
  return absl::AbortedError("the run's lease is lost; stop, and write nothing more");
}

absl::Status LetGoError() {
  return absl::DeadlineExceededError(
      "the handler did not stop; it was let go, and all that it still writes is refused");
}

RunEnded HandlerEnded(absl::Status status, bool dead, StopReason stopped, OutputKept output) {
  return {.exit_code = status.ok() && dead ? 0 : -1,
          .stopped = stopped,
          .tree_dead = dead,
          .output = std::move(output),
          .status = std::move(status)};
}

}  // namespace matins
