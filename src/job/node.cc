#include "job/node.h"

#include "absl/strings/str_split.h"

namespace matins {
namespace {

NodePtr Scalar(absl::string_view text, Mark at, bool quoted) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.at = std::move(at);
  node.text = std::string(text);
  node.quoted = quoted;
  return std::make_shared<const YamlNode>(std::move(node));
}

}  // namespace

const Entry* YamlNode::Find(absl::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Mark MarkOf(const YamlNode& map, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const YamlNode* node = &map;
    const Entry* entry = nullptr;
    for (const absl::string_view key : absl::StrSplit(path, '.')) {
      entry = node->Find(key);
      if (entry == nullptr) break;
      node = entry->value.get();
    }
    if (entry != nullptr) return entry->at;
  }
  return map.at;
}

absl::string_view KindText(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kScalar:
      return "a text";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kNull:
      break;
  }
  return "nothing";
}

NodePtr TextNode(absl::string_view text, Mark at) { return Scalar(text, std::move(at), true); }

NodePtr PlainNode(absl::string_view text, Mark at) { return Scalar(text, std::move(at), false); }

NodePtr ListNode(std::vector<NodePtr> items) {
  YamlNode node;
  node.kind = YamlNode::Kind::kList;
  node.items = std::move(items);
  return std::make_shared<const YamlNode>(std::move(node));
}

NodePtr MapNode(std::vector<Entry> entries) {
  YamlNode node;
  node.kind = YamlNode::Kind::kMap;
  node.entries = std::move(entries);
  return std::make_shared<const YamlNode>(std::move(node));
}

}  // namespace matins
