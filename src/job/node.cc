#include "job/node.h"

#include "absl/strings/str_split.h"

namespace matins {
namespace {

NodePtr Scalar(absl::string_view text, Mark at, bool quoted) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.at = std::move(at);
  node.text = std::string(text);
  node.quoted = quoted;
  return std::make_shared<const Node>(std::move(node));
}

}  // namespace

const Entry* Node::Find(absl::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Mark MarkOf(const Node& map, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const Node* node = &map;
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

absl::string_view KindText(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kScalar:
      return "a text";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kNull:
      break;
  }
  return "nothing";
}

NodePtr TextNode(absl::string_view text, Mark at) { return Scalar(text, std::move(at), true); }

NodePtr PlainNode(absl::string_view text, Mark at) { return Scalar(text, std::move(at), false); }

NodePtr ListNode(std::vector<NodePtr> items) {
  Node node;
  node.kind = Node::Kind::kList;
  node.items = std::move(items);
  return std::make_shared<const Node>(std::move(node));
}

NodePtr MapNode(std::vector<Entry> entries) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.entries = std::move(entries);
  return std::make_shared<const Node>(std::move(node));
}

}  // namespace matins
