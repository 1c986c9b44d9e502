// What stands in a job file or a stored definition: a tree of raw texts with their places. Values
// get their types from the field that reads them, never from their look: `no` is a country where a
// name is wanted, 022 is octal where a umask is, 1:30 is never a number.
#ifndef MATINS_JOB_NODE_H_
#define MATINS_JOB_NODE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "job/problem.h"

namespace matins {

struct YamlNode;
// Shared, so that an alias costs nothing, however often it is used.
using NodePtr = std::shared_ptr<const YamlNode>;

struct Entry {
  std::string key;
  Mark at;  // of the key
  NodePtr value;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  Mark at;
  std::string text;     // kScalar, exactly as written, quotes and escapes resolved
  bool quoted = false;  // kScalar
  std::vector<NodePtr> items;
  std::vector<Entry> entries;  // in the order written; no key twice

  const Entry* Find(absl::string_view key) const;
};

// Where the first of `paths` ("backfill.order") stands that is there; else where `map` begins.
Mark MarkOf(const YamlNode& map, const std::vector<std::string>& paths);

// "a text", "a list", "a map", "nothing": for messages.
absl::string_view KindText(const YamlNode& node);

NodePtr TextNode(absl::string_view text, Mark at = {});
// A number or a boolean.
NodePtr PlainNode(absl::string_view text, Mark at = {});
NodePtr ListNode(std::vector<NodePtr> items);
NodePtr MapNode(std::vector<Entry> entries);

}  // namespace matins

#endif  // MATINS_JOB_NODE_H_
