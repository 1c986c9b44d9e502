// Shell completion, made from the command line's own description, so that it never lags behind.
#ifndef MATINS_CLI_COMPLETION_H_
#define MATINS_CLI_COMPLETION_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace CLI {
class App;
}  // namespace CLI

namespace matins {

// `shell` is bash, zsh or fish; anything else is InvalidArgument.
absl::StatusOr<std::string> CompletionScript(const CLI::App& app, absl::string_view shell);

}  // namespace matins

#endif  // MATINS_CLI_COMPLETION_H_
