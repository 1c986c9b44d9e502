// What carries messages out: one attempt each, bounded in time. Who is told, when, and whether
// again is decided elsewhere (alert/beats.h).
#ifndef MATINS_ALERT_SENDER_H_
#define MATINS_ALERT_SENDER_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "alert/message.h"
#include "job/alerts.h"

namespace matins {

class AlertSender {
 public:
  virtual ~AlertSender() = default;
  // OK: whoever was asked has taken it. Anything else may be tried again, with the same message;
  // the status says what went wrong, and holds no secret. Returns within the channel's time-out.
  virtual absl::Status Send(const Channel& channel, const AlertMessage& message) = 0;
  // Calls an address and throws away what it says.
  virtual absl::Status Ping(const SecretText& url, absl::Duration timeout) = 0;
  // Ends what is under way, and all that comes; from any thread.
  virtual void Stop() = 0;
};

}  // namespace matins

#endif  // MATINS_ALERT_SENDER_H_
