// The one statement of a dead node: what its guards hand to `matins guard-return` on standard
// input.
#ifndef MATINS_EXECUTE_GIVE_BACK_H_
#define MATINS_EXECUTE_GIVE_BACK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "execute/runner.h"

namespace matins {

// A lease whose node is dead and whose processes were all seen dead. Giving it back is conditional
// on fence and nonce (I3): one that was finished, or taken over, meanwhile is left alone.
struct LeaseToGiveBack {
  std::string store_url;
  std::string job;
  std::string period;
  int64_t fence = 0;
  int64_t nonce = 0;
};

// One JSON object and a line end; below 64 KiB, so that a pipe takes it whole.
absl::StatusOr<std::string> GiveBackMessage(const RunRequest& request);
absl::StatusOr<LeaseToGiveBack> ParseGiveBack(absl::string_view message);

}  // namespace matins

#endif  // MATINS_EXECUTE_GIVE_BACK_H_
