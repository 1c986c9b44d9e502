// "did you mean": the word a typing error was meant to be.
#ifndef MATINS_JOB_NEAREST_H_
#define MATINS_JOB_NEAREST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace matins {

// The nearest of `words` where it is near enough to be meant (case and '-' for '_' count little);
// else empty.
std::string Nearest(absl::string_view word, absl::Span<const std::string> words);

// The mend for a wrong word: "did you mean 'each'?", else "one of: skip, latest, each".
std::string MendWord(absl::string_view word, absl::Span<const std::string> words);

}  // namespace matins

#endif  // MATINS_JOB_NEAREST_H_
