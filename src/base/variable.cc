#include "base/variable.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr std::array<absl::string_view, 16> kRefused = {
    "BASH_ENV",      "ENV",     "IFS",          "SHELLOPTS",
    "BASHOPTS",      "PS4",     "GLOBIGNORE",   "PROMPT_COMMAND",
    "GCONV_PATH",    "NLSPATH", "PERL5OPT",     "PERL5DB",
    "PYTHONSTARTUP", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS"};

}  // namespace

bool IsVariableName(absl::string_view name) {
  if (name.empty() || absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status CheckEnvName(absl::string_view name) {
  const std::string where = absl::StrCat("env.", name);
  if (!IsVariableName(name)) {
    return BadInput(where, "is no variable's name", "use letters, digits and '_', no digit first");
  }
  if (absl::StartsWith(name, "MATINS_") || name == "TRACEPARENT") {
    return BadInput(where, "is set by Matins itself", "take another name");
  }
  if (absl::StartsWith(name, "LD_") ||
      std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
    return BadInput(where, "changes what programs are, not what they are told",
                    "set it inside the job's own script if it is really meant");
  }
  return absl::OkStatus();
}

absl::Status CheckEnvPath(absl::string_view path) {
  for (const absl::string_view dir : absl::StrSplit(path, ':')) {
    if (absl::StartsWith(dir, "/")) continue;
    return BadInput("env.PATH", absl::StrCat("the entry '", dir, "' is not absolute"),
                    "whoever can write to the job's folder could replace its programs; write "
                    "absolute folders only");
  }
  return absl::OkStatus();
}

}  // namespace matins
