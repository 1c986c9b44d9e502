// Transfers by libcurl, each in a process of its own (carrier/carrier.c), which this program
// carries inside itself: it does not load libcurl where nothing is sent.
#ifndef MATINS_SEND_CARRY_H_
#define MATINS_SEND_CARRY_H_

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

// What the carrier is told, in order: names of carrier.c and their values.
using CarrierItems = std::vector<std::pair<absl::string_view, std::string>>;

struct CarrierReply {
  int status = 0;    // HTTP's, or SMTP's
  std::string body;  // its first 4 KiB
};

// Errors are libcurl's words for the kind of failure: no address is among them. DeadlineExceeded,
// Cancelled (by `stop`), Unavailable; FailedPrecondition where the carrier cannot be started:
// libcurl is not installed, or the system starts no program from memory or from /tmp.
absl::StatusOr<CarrierReply> Carry(const CarrierItems& items, absl::Duration timeout,
                                   const std::atomic<bool>& stop);

}  // namespace matins

#endif  // MATINS_SEND_CARRY_H_
