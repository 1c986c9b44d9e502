#include "job/print.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "job/node.h"
#include "job/tree.h"

namespace matins {
namespace {

// Letters and digits that no YAML reader takes for anything but a text go bare.
bool IsBare(const std::string& text) {
  constexpr absl::string_view kOther[] = {"true", "false", "null", "yes", "no",
                                          "on",   "off",   "y",    "n"};
  if (text.empty() || !absl::ascii_isalpha(static_cast<unsigned char>(text[0]))) return false;
  for (const absl::string_view word : kOther) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '/' || c == '.';
  });
}

// JSON's strings are YAML's double-quoted ones.
std::string ScalarText(const YamlNode& node) {
  if (!node.quoted || IsBare(node.text)) return node.text;
  return nlohmann::json(node.text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// On one line, as everything below a job's own keys is.
std::string Flow(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      return ScalarText(node);
    case YamlNode::Kind::kList:
      for (const NodePtr& item : node.items) parts.push_back(Flow(*item));
      return absl::StrCat("[", absl::StrJoin(parts, ", "), "]");
    case YamlNode::Kind::kMap:
      for (const Entry& entry : node.entries) {
        parts.push_back(absl::StrCat(entry.key, ": ", Flow(*entry.value)));
      }
      return absl::StrCat("{ ", absl::StrJoin(parts, ", "), " }");
  }
  return "";
}

}  // namespace

std::string JobToYaml(const Job& job) {
  std::string text;
  const NodePtr tree = JobTree(job, false);
  for (const Entry& entry : tree->entries) {
    absl::StrAppend(&text, text.empty() ? "- " : "  ", entry.key, ": ", Flow(*entry.value), "\n");
  }
  return text;
}

}  // namespace matins
