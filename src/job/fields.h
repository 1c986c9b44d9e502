// Reads the keys of one map: each value by the type of its field, each mistake reported at its
// place, each key that nobody asked for refused at the end.
#ifndef MATINS_JOB_FIELDS_H_
#define MATINS_JOB_FIELDS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/nearest.h"
#include "job/node.h"
#include "job/problem.h"
#include "job/words.h"

namespace matins {

// Every getter answers `fallback` where the key is absent, and where its value is wrong (which is
// then reported, and remembered in `failed`).
class Fields {
 public:
  // What is shared by a job's maps: where problems go, and the paths ("backfill.order") that had
  // one.
  struct Context {
    Problems* problems = nullptr;
    std::set<std::string> failed;
  };

  // `path` stands before the keys of a nested map: "backfill". A node that is no map is reported,
  // and read as an empty one.
  Fields(NodePtr map, std::string path, Context* context);

  // The key's value, which is taken note of as known (every `key` lives as long as this); null
  // where the key is absent. A key without a value ("timeout:") is reported and counts as absent.
  NodePtr Get(absl::string_view key);
  bool Has(absl::string_view key);
  // The nested map, empty where the key is absent.
  Fields Map(absl::string_view key);

  std::string TextOr(absl::string_view key, std::string fallback);
  bool BoolOr(absl::string_view key, bool fallback);
  int IntOr(absl::string_view key, int fallback, int least, int most);
  // A number, or "unlimited", which is nothing.
  std::optional<int> CountOr(absl::string_view key, std::optional<int> fallback, int most);
  absl::Duration DurationOr(absl::string_view key, absl::Duration fallback, absl::Duration least,
                            absl::Duration most);
  // A list of texts; a single text is a list of one.
  std::vector<std::string> TextsOr(absl::string_view key, std::vector<std::string> fallback);
  template <typename E>
  E WordOr(absl::string_view key, E fallback) {
    const std::string text = TextOr(key, "");
    if (text.empty()) return fallback;
    if (const std::optional<E> word = FromWord<E>(text)) return *word;
    const std::vector<std::string> words(Words<E>().begin(), Words<E>().end());
    Error(key, absl::StrCat(Path(key), ": '", text, "' is none of its words"),
          MendWord(text, words));
    return fallback;
  }
  // What `parse` (text -> StatusOr<T>) makes of the text; its message is the problem.
  template <typename T, typename Parse>
  T ParsedOr(absl::string_view key, T fallback, Parse parse) {
    if (!Has(key)) return fallback;
    const std::string text = TextOr(key, "");
    if (Failed(key)) return fallback;
    auto value = parse(text);
    if (value.ok()) return *std::move(value);
    Error(key, absl::StrCat(Path(key), ": ", value.status().message()), "");
    return fallback;
  }

  // A key of a later version: refused where it stands, never ignored.
  void NotYet(absl::string_view key, absl::string_view mend);

  // Where a key stands ("order", of this map); the map itself where the key is absent.
  Mark At(absl::string_view key) const;
  std::string Path(absl::string_view key) const;
  const std::string& path() const { return path_; }
  bool Failed(absl::string_view key) const;
  void Error(absl::string_view key, absl::string_view what, absl::string_view mend);
  void ErrorAt(const Mark& at, absl::string_view key, absl::string_view what,
               absl::string_view mend);
  bool empty() const { return map_->entries.empty(); }
  // Reports the keys that were not asked for.
  void Finish();

 private:
  std::vector<std::string> Known() const;  // each once

  NodePtr map_;
  std::string path_;
  Context* context_;
  absl::InlinedVector<absl::string_view, 24> known_;  // in the order asked for, some of them twice
};

}  // namespace matins

#endif  // MATINS_JOB_FIELDS_H_
