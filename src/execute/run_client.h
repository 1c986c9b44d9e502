// The run's side of its socket: `matins checkpoint|result|fence`.
#ifndef MATINS_EXECUTE_RUN_CLIENT_H_
#define MATINS_EXECUTE_RUN_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "execute/runner.h"

namespace matins {

struct RunAskArgs {
  AskKind kind = AskKind::kFence;
  int64_t number = -1;
  std::string payload;
};

// Asks the node over `socket`, the value of MATINS_SOCKET, and waits for as long as the store
// needs: when this returns OK, the store has it. For kFence the answer is the fence. Errors:
// FailedPrecondition (not in a run), the store's refusal with its code, or in doubt (base/status.h)
// when the node went away before it answered.
absl::StatusOr<std::string> AskNode(const std::string& socket, const RunAskArgs& args);

}  // namespace matins

#endif  // MATINS_EXECUTE_RUN_CLIENT_H_
