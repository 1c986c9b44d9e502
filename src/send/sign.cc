#include "send/sign.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/openssl.h"
#include "base/status.h"

namespace matins {

absl::StatusOr<std::string> HmacSha256(absl::string_view key, absl::string_view text) {
  RETURN_IF_ERROR(LoadOpenssl());
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  Ossl().HMAC(Ossl().EVP_sha256(), key.data(), static_cast<int>(key.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), out, &size);
  return std::string(reinterpret_cast<const char*>(out), size);
}

absl::StatusOr<std::string> FeishuSign(absl::string_view secret, absl::Time now) {
  ASSIGN_OR_RETURN(const std::string mac,
                   HmacSha256(absl::StrCat(absl::ToUnixSeconds(now), "\n", secret), ""));
  return absl::Base64Escape(mac);
}

absl::StatusOr<std::string> DingtalkSign(absl::string_view secret, absl::Time now) {
  ASSIGN_OR_RETURN(const std::string mac,
                   HmacSha256(secret, absl::StrCat(absl::ToUnixMillis(now), "\n", secret)));
  return absl::Base64Escape(mac);
}

absl::StatusOr<std::string> WebhookSignature(absl::string_view secret, absl::string_view body,
                                             absl::Time now) {
  const int64_t seconds = absl::ToUnixSeconds(now);
  ASSIGN_OR_RETURN(const std::string mac, HmacSha256(secret, absl::StrCat(seconds, ".", body)));
  return absl::StrCat("t=", seconds, ",v1=", absl::BytesToHexString(mac));
}

}  // namespace matins
