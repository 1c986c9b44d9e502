// What the runners of handlers, by threads and stepped by a test, do alike: the call itself, and
// what is said of it.
#ifndef MATINS_EXECUTE_HANDLER_CALL_H_
#define MATINS_EXECUTE_HANDLER_CALL_H_

#include "absl/status/status.h"
#include "execute/handler_runner.h"
#include "execute/runner.h"

namespace matins {

// An exception counts as Internal.
absl::Status CallHandler(const Handler& handler, HandlerContext& context);

// What a run with a handler that this program does not have answers.
RunNotStarted NoSuchHandler(const std::string& name);

// Whether a handler that did not stop takes the program with it: its job says so, and nothing
// extends the lease any more. A cancel alone leaves it alive.
bool AbortsProcess(const RunRequest& request, StopReason reason);
// With a line to stderr.
[[noreturn]] void AbortProcess(const RunRequest& request);

// To all that a run asks once its lease is lost or it was let go.
absl::Status LeaseLostError();
// The end of one that did not stop in time.
absl::Status LetGoError();

// `dead`: the function has returned.
RunEnded HandlerEnded(absl::Status status, bool dead, StopReason stopped, OutputKept output);

}  // namespace matins

#endif  // MATINS_EXECUTE_HANDLER_CALL_H_
