// How the part of a run's output that was not kept is told, wherever output is shown.
#ifndef MATINS_EXECUTE_OUTPUT_TEXT_H_
#define MATINS_EXECUTE_OUTPUT_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace matins {

// A line of its own for `cut` bytes of `total` that are missing behind `before`, or nothing where
// cut is 0.
std::string CutText(absl::string_view before, int64_t cut, int64_t total);

}  // namespace matins

#endif  // MATINS_EXECUTE_OUTPUT_TEXT_H_
