// Runs handlers: functions of the embedding program, on threads of its own.
//
// A function cannot be killed. At the deadline's `stop` (by a watchdog thread that knows the boot
// clock and nothing else) its stop token is set; from a lost lease on, all that it asks is refused.
// At `kill` it is let go: the run has ended, not proven dead, and whatever the function still says
// is refused; or, with abort_on_lease_lost, the process ends.
#ifndef MATINS_EXECUTE_HANDLER_RUNNER_H_
#define MATINS_EXECUTE_HANDLER_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "execute/runner.h"

namespace matins {

// What a handler has in its hand. Valid until it returns; its methods may be called from any
// thread.
class HandlerContext {
 public:
  virtual ~HandlerContext() = default;
  virtual const RunRequest& request() const = 0;
  // Set when the run is to stop. A handler that looks at it now and then can end in order.
  virtual std::stop_token stop_token() const = 0;
  // Why the token is set; kNone while it is not.
  virtual StopReason stop_reason() const = 0;
  // Waits for the store's answer; Aborted once the lease is lost or the run was let go.
  virtual absl::StatusOr<std::string> Ask(AskKind kind, int64_t number, std::string payload) = 0;
  // Adds to the run's output.
  virtual void Print(absl::string_view text) = 0;
};

// OK: the run has succeeded. An exception counts as Internal.
using Handler = std::function<absl::Status(HandlerContext&)>;

struct HandlerRunnerOptions {
  std::map<std::string, Handler> handlers;
  int threads = 16;  // at a time; more wait for their turn. 1 or more
  Clock* clock = &SystemClock();
  // What abort_on_lease_lost does.
  std::function<void(const RunRequest&)> abort_process = nullptr;  // null: a line to stderr, abort
};

// Destroying it sets every stop token and waits for the functions that run.
std::unique_ptr<Runner> NewHandlerRunner(HandlerRunnerOptions options);

// Handlers go to `handlers`, all else to `processes`.
std::unique_ptr<Runner> JoinRunners(std::unique_ptr<Runner> processes,
                                    std::unique_ptr<Runner> handlers);

}  // namespace matins

#endif  // MATINS_EXECUTE_HANDLER_RUNNER_H_
