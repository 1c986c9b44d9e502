#include "job/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "job/node.h"
#include "job/read_job.h"
#include "job/sha256.h"
#include "job/tree.h"

namespace matins {
namespace {

using Json = nlohmann::json;

std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Write(const YamlNode& node, std::string& out) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      out += "null";
      return;
    case YamlNode::Kind::kScalar:
      out += node.quoted ? Quoted(node.text) : node.text;
      return;
    case YamlNode::Kind::kList:
      out += '[';
      for (size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) out += ',';
        Write(*node.items[i], out);
      }
      out += ']';
      return;
    case YamlNode::Kind::kMap:
      out += '{';
      for (size_t i = 0; i < node.entries.size(); ++i) {
        if (i > 0) out += ',';
        absl::StrAppend(&out, Quoted(node.entries[i].key), ":");
        Write(*node.entries[i].value, out);
      }
      out += '}';
      return;
  }
}

// nlohmann's tree keeps the last of two equal keys; the stored form never has two.
NodePtr FromJson(const Json& json) {
  if (json.is_string()) {
    const std::string& text = json.get_ref<const std::string&>();
    if (text.find('\0') == std::string::npos) return TextNode(text);
  }
  if (json.is_number_integer() || json.is_boolean()) return PlainNode(json.dump());
  if (json.is_array()) {
    std::vector<NodePtr> items;
    for (const Json& item : json) items.push_back(FromJson(item));
    return ListNode(std::move(items));
  }
  if (json.is_object()) {
    std::vector<Entry> entries;
    for (const auto& [key, value] : json.items()) entries.push_back({key, {}, FromJson(value)});
    return MapNode(std::move(entries));
  }
  return std::make_shared<const YamlNode>();
}

absl::StatusOr<Job> Read(absl::string_view text, const ReadJobOptions& options) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError("a definition is a JSON object; this is none");
  }
  Problems problems;
  std::optional<Job> job = ReadJob(FromJson(json), options, problems);
  if (!job) return problems.ToStatus();
  return *std::move(job);
}

}  // namespace

std::string JobToJson(const Job& job) {
  std::string out;
  Write(*JobTree(job, true), out);
  return out;
}

absl::StatusOr<Job> JobFromJson(absl::string_view text) { return Read(text, {}); }

absl::StatusOr<Job> StoredJob(absl::string_view text) { return Read(text, {.checked = true}); }

std::optional<AuditWords> StoredAudit(absl::string_view text) {
  static const auto& normal = *new Job;
  AuditWords words{normal.audit, normal.timezone};
  // Defaults are left out, and most jobs keep them.
  if (!absl::StrContains(text, "\"audit\"") && !absl::StrContains(text, "\"timezone\"")) {
    return words;
  }
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  for (const auto& [key, word] :
       {std::pair{"audit", &words.expression}, std::pair{"timezone", &words.zone}}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_string()) return std::nullopt;
    *word = json[key].get<std::string>();
  }
  if (words.expression.empty()) return std::nullopt;
  return words;
}

absl::Status ValidateJob(const Job& job) {
  ASSIGN_OR_RETURN(const Job back, JobFromJson(JobToJson(job)));
  if (back == job) return absl::OkStatus();
  return BadInput(absl::StrCat("job ", job.name),
                  "a definition does not keep it whole: a text that is not UTF-8, a duration finer "
                  "than a millisecond, a field that its kind of run does not use, or a calendar's "
                  "days without a calendar",
                  "take that out");
}

std::string RenamedJson(absl::string_view json, absl::string_view name) {
  // Ordered: the keys' order is part of the canonical text.
  auto object = nlohmann::ordered_json::parse(json.begin(), json.end(), nullptr,
                                              /*allow_exceptions=*/false);
  if (!object.is_object()) return std::string(json);
  object["name"] = std::string(name);
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string DigestOf(absl::Span<const Job> jobs) {
  std::vector<std::string> definitions;
  for (const Job& job : jobs) definitions.push_back(JobToJson(job));
  std::sort(definitions.begin(), definitions.end());
  return Sha256Hex(absl::StrJoin(definitions, "\n"));
}

}  // namespace matins
