// %XX in URLs.
#ifndef MATINS_BASE_PERCENT_H_
#define MATINS_BASE_PERCENT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace matins {

// Each %XX of two hexadecimal digits becomes that byte; any other '%' stays as it is.
std::string PercentDecoded(absl::string_view text);

}  // namespace matins

#endif  // MATINS_BASE_PERCENT_H_
