// What is asked of each kind of receiver, and what its answer means. Pure.
#ifndef MATINS_SEND_PAYLOAD_H_
#define MATINS_SEND_PAYLOAD_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "alert/message.h"
#include "job/alerts.h"

namespace matins {

struct HttpCall {
  std::string url;  // a secret, for most
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

// FailedPrecondition: a secret is not where the channel says.
absl::StatusOr<HttpCall> CallOf(const Channel& channel, const AlertMessage& message,
                                absl::Time now);

// Some receivers say no with a 200. The status names the answer's code and words, never the
// address.
absl::Status JudgeReply(ChannelKind kind, int http_status, absl::string_view body);

// A mail of RFC 5322, lines ended by CRLF.
std::string MailText(const Channel& channel, const AlertMessage& message, absl::Time now);

}  // namespace matins

#endif  // MATINS_SEND_PAYLOAD_H_
