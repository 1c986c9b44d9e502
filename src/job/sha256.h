// FIPS 180-4: a name for a text, to tell whether a file or a definition has changed; no secret
// hangs on it. Our own: libcrypto is loaded only where TLS or a signature asks for it
// (base/openssl.h), and its first digest costs about 0.75 ms, more than a whole file takes here.
#ifndef MATINS_JOB_SHA256_H_
#define MATINS_JOB_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace matins {

// 64 hex digits.
std::string Sha256Hex(absl::string_view text);

}  // namespace matins

#endif  // MATINS_JOB_SHA256_H_
