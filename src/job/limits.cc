#include "job/limits.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "job/nearest.h"
#include "job/words.h"

namespace matins {
namespace {

constexpr size_t kLongestName = 200;

}  // namespace

std::string LimitName(LimitKind kind, absl::string_view name) {
  return name.empty() ? std::string(Word(kind)) : absl::StrCat(Word(kind), "/", name);
}

absl::Status CheckLimitName(LimitKind kind, absl::string_view name) {
  const bool named = kind == LimitKind::kTenant || kind == LimitKind::kKey;
  const std::string what = absl::StrCat("limit ", LimitName(kind, name));
  if (!named) {
    if (name.empty()) return absl::OkStatus();
    return BadInput(what, "takes no name", absl::StrCat("write ", Word(kind)));
  }
  if (name.empty() || name.size() > kLongestName) {
    return BadInput(what, absl::StrCat("a name has 1 to ", kLongestName, " bytes"),
                    absl::StrCat("write ", Word(kind), "/NAME"));
  }
  if (name.find('*') < name.size() - 1) {
    return BadInput(what, "a * stands only at the end, for every name that begins so",
                    "write PREFIX* or the whole name");
  }
  return absl::OkStatus();
}

absl::StatusOr<LimitRule> ParseLimitName(absl::string_view text) {
  const size_t slash = text.find('/');
  const absl::string_view word = text.substr(0, slash);
  LimitRule rule;
  const std::optional<LimitKind> kind = FromWord<LimitKind>(word);
  if (!kind) {
    const std::vector<std::string> words = {"global", "tenant", "key", "backfill_share"};
    return BadInput(absl::StrCat("limit '", text, "'"), "is none",
                    absl::StrCat(MendWord(word, words),
                                 "; as in global, tenant/NAME, key/NAME, backfill_share"));
  }
  rule.kind = *kind;
  if (slash != absl::string_view::npos) rule.name = std::string(text.substr(slash + 1));
  RETURN_IF_ERROR(CheckLimitName(rule.kind, rule.name));
  return rule;
}

absl::StatusOr<int> ParseShare(absl::string_view text) {
  absl::string_view digits = text;
  int share = 0;
  if (absl::ConsumeSuffix(&digits, "%") && digits.size() <= 3 && absl::SimpleAtoi(digits, &share) &&
      share >= 1 && share <= 100 && digits[0] >= '1' && digits[0] <= '9') {
    return share;
  }
  return BadInput(absl::StrCat("'", text, "'"), "is no share", "write one from 1% to 100%");
}

std::string MostText(LimitKind kind, int most) {
  return absl::StrCat(most, kind == LimitKind::kBackfillShare ? "%" : "");
}

}  // namespace matins
