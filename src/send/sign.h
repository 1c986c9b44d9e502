// How receivers know that a message is from whoever has the channel's secret. Errors, of all:
// LoadOpenssl's.
#ifndef MATINS_SEND_SIGN_H_
#define MATINS_SEND_SIGN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

// RFC 2104 over SHA-256: 32 bytes.
absl::StatusOr<std::string> HmacSha256(absl::string_view key, absl::string_view text);

// Feishu's custom bots: base64 of the HMAC of nothing under "SECONDS\nSECRET".
absl::StatusOr<std::string> FeishuSign(absl::string_view secret, absl::Time now);
// DingTalk's custom robots: base64 of the HMAC of "MILLISECONDS\nSECRET" under the secret.
absl::StatusOr<std::string> DingtalkSign(absl::string_view secret, absl::Time now);
// A webhook's header Matins-Signature: "t=SECONDS,v1=HEX" where HEX is the HMAC of "SECONDS.BODY".
absl::StatusOr<std::string> WebhookSignature(absl::string_view secret, absl::string_view body,
                                             absl::Time now);

}  // namespace matins

#endif  // MATINS_SEND_SIGN_H_
