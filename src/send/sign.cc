#include "send/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace matins {

std::string HmacSha256(absl::string_view key, absl::string_view text) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), out, &size);
  return std::string(reinterpret_cast<const char*>(out), size);
}

std::string FeishuSign(absl::string_view secret, absl::Time now) {
  return absl::Base64Escape(HmacSha256(absl::StrCat(absl::ToUnixSeconds(now), "\n", secret), ""));
}

std::string DingtalkSign(absl::string_view secret, absl::Time now) {
  return absl::Base64Escape(
      HmacSha256(secret, absl::StrCat(absl::ToUnixMillis(now), "\n", secret)));
}

std::string WebhookSignature(absl::string_view secret, absl::string_view body, absl::Time now) {
  const int64_t seconds = absl::ToUnixSeconds(now);
  return absl::StrCat("t=", seconds, ",v1=",
                      absl::BytesToHexString(HmacSha256(secret, absl::StrCat(seconds, ".", body))));
}

}  // namespace matins
