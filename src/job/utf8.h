// UTF-8, strictly (RFC 3629): no overlong forms, no surrogates, nothing past U+10FFFF.
#ifndef MATINS_JOB_UTF8_H_
#define MATINS_JOB_UTF8_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace matins {

// Takes one code point from the front of `rest`, which is not empty; nothing, and nothing taken,
// where its bytes are not UTF-8.
std::optional<uint32_t> NextCodePoint(absl::string_view& rest);

// Where the first byte stands that is not UTF-8; npos: all is.
size_t FindNotUtf8(absl::string_view text);

}  // namespace matins

#endif  // MATINS_JOB_UTF8_H_
