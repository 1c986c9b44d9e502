// How receivers know that a message is from whoever has the channel's secret.
#ifndef MATINS_SEND_SIGN_H_
#define MATINS_SEND_SIGN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

// RFC 2104 over SHA-256: 32 bytes.
std::string HmacSha256(absl::string_view key, absl::string_view text);

// Feishu's custom bots: base64 of the HMAC of nothing under "SECONDS\nSECRET".
std::string FeishuSign(absl::string_view secret, absl::Time now);
// DingTalk's custom robots: base64 of the HMAC of "MILLISECONDS\nSECRET" under the secret.
std::string DingtalkSign(absl::string_view secret, absl::Time now);
// A webhook's header Matins-Signature: "t=SECONDS,v1=HEX" where HEX is the HMAC of "SECONDS.BODY".
std::string WebhookSignature(absl::string_view secret, absl::string_view body, absl::Time now);

}  // namespace matins

#endif  // MATINS_SEND_SIGN_H_
