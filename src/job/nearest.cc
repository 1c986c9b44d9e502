#include "job/nearest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace matins {
namespace {

std::string Plain(absl::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(word), {{"_", ""}, {"-", ""}, {" ", ""}});
}

// Letters put in, left out or changed, and neighbours that changed places.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before = row;
    row = next;
  }
  return row[b.size()];
}

}  // namespace

std::string Nearest(absl::string_view word, absl::Span<const std::string> words) {
  if (word.size() > 64) return "";
  const std::string plain = Plain(word);
  std::string best;
  size_t best_distance = std::max<size_t>(1, plain.size() / 3) + 1;
  for (const std::string& candidate : words) {
    if (plain.size() >= 3 && absl::StartsWith(Plain(candidate), plain)) return candidate;
    const size_t distance = Distance(plain, Plain(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string MendWord(absl::string_view word, absl::Span<const std::string> words) {
  const std::string near = Nearest(word, words);
  if (!near.empty()) return absl::StrCat("did you mean '", near, "'?");
  return absl::StrCat("write one of: ", absl::StrJoin(words, ", "));
}

}  // namespace matins
