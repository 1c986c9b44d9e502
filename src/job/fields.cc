#include "job/fields.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/time.h"

namespace matins {
namespace {

// Decimal, without the forms that YAML versions read differently: 010, 1_000, 0x10, 1e3.
std::optional<int> PlainInt(absl::string_view text) {
  absl::string_view digits = text;
  if (!digits.empty() && digits[0] == '-') digits.remove_prefix(1);
  const bool decimal = !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  int value;
  if (!decimal || (digits.size() > 1 && digits[0] == '0') || !absl::SimpleAtoi(text, &value)) {
    return std::nullopt;
  }
  return value;
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", text.substr(0, 80), text.size() > 80 ? "..." : "", "'");
}

}  // namespace

Fields::Fields(NodePtr map, std::string path, Context* context)
    : map_(std::move(map)), path_(std::move(path)), context_(context) {
  static const auto& empty = *new NodePtr(MapNode({}));
  if (map_ == nullptr || map_->kind == YamlNode::Kind::kNull) {
    map_ = empty;
  } else if (map_->kind != YamlNode::Kind::kMap) {
    context_->failed.insert(path_);
    context_->problems->Error(map_->at,
                              absl::StrCat(path_.empty() ? "" : path_ + ": ",
                                           "a map is wanted here, not ", KindText(*map_)),
                              "write its keys below it, as in 'key: value'");
    map_ = MapNode({});
  }
}

std::string Fields::Path(absl::string_view key) const {
  return path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key);
}

NodePtr Fields::Get(absl::string_view key) {
  known_.push_back(key);
  const Entry* entry = map_->Find(key);
  if (entry == nullptr) return nullptr;
  if (entry->value->kind == YamlNode::Kind::kNull) {
    Error(key, absl::StrCat(Path(key), " has no value"), "give it one, or take the key away");
    return nullptr;
  }
  return entry->value;
}

bool Fields::Has(absl::string_view key) { return Get(key) != nullptr; }

Fields Fields::Map(absl::string_view key) { return Fields(Get(key), Path(key), context_); }

std::string Fields::TextOr(absl::string_view key, std::string fallback) {
  const NodePtr node = Get(key);
  if (node == nullptr) return fallback;
  if (node->kind != YamlNode::Kind::kScalar) {
    Error(key, absl::StrCat(Path(key), " is a text, not ", KindText(*node)),
          "write it in quotes if it begins with { or [");
    return fallback;
  }
  if (node->text.empty()) {
    Error(key, absl::StrCat(Path(key), " is empty"), "give it a value, or take the key away");
    return fallback;
  }
  return node->text;
}

bool Fields::BoolOr(absl::string_view key, bool fallback) {
  const std::string text = TextOr(key, "");
  if (text.empty()) return fallback;
  if (text == "true") return true;
  if (text == "false") return false;
  Error(key, absl::StrCat(Path(key), ": ", Quoted(text), " is neither true nor false"),
        "write true or false; yes, no, on and off mean different things to different YAML readers");
  return fallback;
}

int Fields::IntOr(absl::string_view key, int fallback, int least, int most) {
  const std::string text = TextOr(key, "");
  if (text.empty()) return fallback;
  const std::optional<int> value = PlainInt(text);
  if (value && *value >= least && *value <= most) return *value;
  Error(key,
        absl::StrCat(Path(key), ": ", Quoted(text),
                     value ? " is out of range" : " is not a whole number"),
        absl::StrCat("write one from ", least, " to ", most, ", in plain digits"));
  return fallback;
}

std::optional<int> Fields::CountOr(absl::string_view key, std::optional<int> fallback, int most) {
  const std::string text = TextOr(key, "");
  if (text.empty()) return fallback;
  if (text == "unlimited") return std::nullopt;
  const std::optional<int> value = PlainInt(text);
  if (value && *value >= 1 && *value <= most) return value;
  Error(key, absl::StrCat(Path(key), ": ", Quoted(text), " is no number that it can take"),
        absl::StrCat("write one from 1 to ", most, ", or unlimited"));
  return fallback;
}

absl::Duration Fields::DurationOr(absl::string_view key, absl::Duration fallback,
                                  absl::Duration least, absl::Duration most) {
  const std::string text = TextOr(key, "");
  if (text.empty()) return fallback;
  const absl::StatusOr<absl::Duration> value = ParseDuration(text);
  if (!value.ok()) {
    Error(key, absl::StrCat(Path(key), ": ", value.status().message()), "");
    return fallback;
  }
  if (*value >= least && *value <= most) return *value;
  Error(key, absl::StrCat(Path(key), ": ", Quoted(text), " is out of range"),
        absl::StrCat("write one from ", DurationText(least), " to ", DurationText(most)));
  return fallback;
}

std::vector<std::string> Fields::TextsOr(absl::string_view key, std::vector<std::string> fallback) {
  const NodePtr node = Get(key);
  if (node == nullptr) return fallback;
  if (node->kind == YamlNode::Kind::kScalar) return {node->text};
  if (node->kind != YamlNode::Kind::kList) {
    Error(key, absl::StrCat(Path(key), " is a list of texts, not ", KindText(*node)),
          "write it as [\"one\", \"two\"]");
    return fallback;
  }
  std::vector<std::string> texts;
  for (const NodePtr& item : node->items) {
    if (item->kind == YamlNode::Kind::kScalar) {
      texts.push_back(item->text);
    } else {
      ErrorAt(item->at, key,
              absl::StrCat(Path(key), " is a list of texts; this is ", KindText(*item)),
              "write the text in quotes");
    }
  }
  return texts;
}

void Fields::NotYet(absl::string_view key, absl::string_view mend) {
  known_.push_back(key);
  if (map_->Find(key) == nullptr) return;
  Error(key, absl::StrCat(Path(key), " is not in this version"), mend);
}

Mark Fields::At(absl::string_view key) const {
  const Entry* entry = map_->Find(key);
  return entry == nullptr ? map_->at : entry->at;
}

bool Fields::Failed(absl::string_view key) const { return context_->failed.count(Path(key)) > 0; }

void Fields::Error(absl::string_view key, absl::string_view what, absl::string_view mend) {
  ErrorAt(At(key), key, what, mend);
}

void Fields::ErrorAt(const Mark& at, absl::string_view key, absl::string_view what,
                     absl::string_view mend) {
  context_->failed.insert(Path(key));
  context_->problems->Error(at, what, mend);
}

std::vector<std::string> Fields::Known() const {
  std::vector<std::string> words;
  for (const absl::string_view key : known_) {
    if (std::find(words.begin(), words.end(), key) == words.end()) words.emplace_back(key);
  }
  return words;
}

void Fields::Finish() {
  for (const Entry& entry : map_->entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    context_->problems->Error(entry.at, absl::StrCat("unknown key '", Path(entry.key), "'"),
                              MendWord(entry.key, Known()));
  }
}

}  // namespace matins
