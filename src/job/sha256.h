// FIPS 180-4: a name for a text.
#ifndef MATINS_JOB_SHA256_H_
#define MATINS_JOB_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace matins {

// 64 hex digits.
std::string Sha256Hex(absl::string_view text);

}  // namespace matins

#endif  // MATINS_JOB_SHA256_H_
