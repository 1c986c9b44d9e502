#include "job/alerts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace matins {

const Channel* AlertConfig::Find(absl::string_view name) const {
  for (const Channel& channel : channels) {
    if (channel.name == name) return &channel;
  }
  return nullptr;
}

absl::StatusOr<std::string> ReadSecret(const SecretText& secret) {
  if (!secret.env.empty()) {
    const char* value = std::getenv(secret.env.c_str());
    if (value == nullptr || *value == '\0') {
      return absl::FailedPreconditionError(
          absl::StrCat("the variable ", secret.env, " is not set; start the node with it"));
    }
    return absl::StrCat(value, secret.then);
  }
  if (!secret.file.empty()) {
    std::ifstream file(secret.file, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    std::string value = text.str();
    while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.pop_back();
    if (!file || value.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the file ", secret.file, " cannot be read, or is empty; let the node's user read it"));
    }
    return absl::StrCat(value, secret.then);
  }
  return secret.text;
}

absl::Status CheckAlertTemplate(absl::string_view text) {
  for (size_t at = text.find("{{"); at != absl::string_view::npos; at = text.find("{{", at)) {
    const size_t end = text.find("}}", at);
    if (end == absl::string_view::npos) {
      return absl::InvalidArgumentError("{{ without }}; write {{text}}");
    }
    const absl::string_view word = absl::StripAsciiWhitespace(text.substr(at + 2, end - at - 2));
    const auto* known = std::find(std::begin(kAlertWords), std::end(kAlertWords), word);
    if (known == std::end(kAlertWords)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "{{", word, "}} is nothing of an alert; it has ", absl::StrJoin(kAlertWords, ", ")));
    }
    at = end + 2;
  }
  return absl::OkStatus();
}

}  // namespace matins
