#include "job/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "job/utf8.h"

namespace matins {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr size_t kMostLevels = 64;

struct Stop {};  // thrown by the builder alone, to leave yaml-cpp's parser

// Builds the tree from the parser's events, so that yaml-cpp's own loader, which takes the last of
// two equal keys and copies what aliases name, is not used at all.
class Builder final : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const std::string> file, Problems& problems)
      : file_(std::move(file)), problems_(problems) {}

  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node;
    node.at = At(mark);
    Add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      problems_.Error(At(mark), "an alias stands inside the node that it names",
                      "write the value out");
      throw Stop();
    }
    Place(found->second, At(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckTag(mark, tag);
    if (value.find('\0') != std::string::npos) {
      problems_.Error(At(mark), "a NUL in a text", "take it out; no command can be given one");
    }
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.at = At(mark);
    node.text = value;
    node.quoted = tag == "!";
    Add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    std::string key;
    Mark key_at;
    bool has_key = false;
    bool dropped = false;  // the key was refused: its value is read and forgotten
  };

  Mark At(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str") return;
    problems_.Error(At(mark), absl::StrCat("the tag '", tag, "' is not read here"),
                    "leave it out; write texts in quotes");
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    CheckTag(mark, tag);
    if (frames_.size() >= kMostLevels) {
      problems_.Error(At(mark), absl::StrCat("more than ", kMostLevels, " levels deep"),
                      "a job file needs six at most");
      throw Stop();
    }
    Frame frame;
    frame.node.kind = kind;
    frame.node.at = At(mark);
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void Close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Add(std::move(frame.node), frame.anchor);
  }

  void Add(YamlNode node, YAML::anchor_t anchor) {
    const Mark at = node.at;
    auto shared = std::make_shared<const YamlNode>(std::move(node));
    if (anchor != 0) anchors_[anchor] = shared;
    Place(std::move(shared), at);
  }

  void Place(NodePtr node, const Mark& at) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      TakeKey(frame, *node, at);
    } else {
      if (!frame.dropped) frame.node.entries.push_back({frame.key, frame.key_at, std::move(node)});
      frame.has_key = false;
    }
  }

  void TakeKey(Frame& frame, const YamlNode& key, const Mark& at) {
    frame.has_key = true;
    frame.key = key.text;
    frame.key_at = at;
    frame.dropped = true;
    if (key.kind != YamlNode::Kind::kScalar) {
      problems_.Error(at, absl::StrCat("a key is a text, not ", KindText(key)),
                      "{{templates}} and texts that begin with { or [ are written in quotes");
    } else if (key.text == "<<") {
      problems_.Error(at, "merge keys (<<) are not read here",
                      "write the keys out, or put them into defaults:");
    } else if (const Entry* first = frame.node.Find(key.text)) {
      problems_.Error(at,
                      absl::StrCat("'", key.text, "' stands twice; first in line ", first->at.line),
                      "keep one of them");
    } else {
      frame.dropped = false;
    }
  }

  std::shared_ptr<const std::string> file_;
  Problems& problems_;
  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  NodePtr root_;
};

bool IsSpecial(char c) { return absl::StrContains("*&@%`|>!{[", c); }

// "schedule: */5 * * * *" -> the line as it should be; nothing where the text is no such line.
std::string QuotedLine(absl::string_view trimmed) {
  const size_t colon = trimmed.find(": ");
  if (colon == absl::string_view::npos) return "";
  const absl::string_view value = absl::StripAsciiWhitespace(trimmed.substr(colon + 2));
  if (value.empty() || !IsSpecial(value[0]) || absl::StrContains(value, '"')) return "";
  return absl::StrCat(trimmed.substr(0, colon), ": \"", value, "\"");
}

// The mend for a text that is no YAML, from the line and column where the parser stopped.
std::string MendFor(absl::string_view line, int column, absl::string_view reason) {
  const absl::string_view indent = line.substr(0, line.find_first_not_of(" \t"));
  if (absl::StrContains(indent, '\t') || absl::StrContains(reason, "tab")) {
    return "indent with blanks; YAML forbids tabs there";
  }
  const std::string quoted = QuotedLine(absl::StripAsciiWhitespace(line));
  for (int i = column; i >= 0 && i >= column - 1; --i) {
    if (static_cast<size_t>(i) >= line.size() || !IsSpecial(line[i])) continue;
    return absl::StrCat("a text that begins with ", line.substr(i, 1), " is written in quotes",
                        quoted.empty() ? "" : ": ", quoted);
  }
  if (!quoted.empty()) return absl::StrCat("write the text in quotes: ", quoted);
  return "check quotes, brackets and indentation here; a text with ': ' in it is written in quotes";
}

void Explain(const YAML::Exception& e, const std::shared_ptr<const std::string>& file,
             absl::string_view text, Problems& problems) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  const int index = std::max(e.mark.line, 0);
  const absl::string_view line =
      static_cast<size_t>(index) < lines.size() ? lines[index] : absl::string_view();
  problems.Error({file, index + 1, e.mark.column + 1}, absl::StrCat("not YAML: ", e.msg),
                 MendFor(line, e.mark.column, e.msg));
}

}  // namespace

NodePtr ReadYaml(const std::string& file, absl::string_view text, Problems& problems) {
  auto name = std::make_shared<const std::string>(file);
  if (text.size() > kMostBytes) {
    problems.Error({name, 0, 0}, "larger than 1 MiB", "split it and include: the parts");
    return nullptr;
  }
  const size_t bad = std::min(text.find('\0'), FindNotUtf8(text));
  if (bad != absl::string_view::npos) {
    const absl::string_view before = text.substr(0, bad);
    const int line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    problems.Error({name, line, static_cast<int>(bad - (before.rfind('\n') + 1)) + 1},
                   "a byte that is not UTF-8 text", "save the file as UTF-8");
    return nullptr;
  }
  Builder builder(name, problems);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return nullptr;
    Problems later;
    Builder second(name, later);
    if (parser.HandleNextDocument(second) && second.root() != nullptr) {
      problems.Error(second.root()->at, "a second document (after ---)",
                     "keep one document a file and include: the others");
    }
  } catch (const YAML::Exception& e) {
    Explain(e, name, text, problems);
    return nullptr;
  } catch (const Stop&) {
    return nullptr;
  }
  return builder.root();
}

}  // namespace matins
