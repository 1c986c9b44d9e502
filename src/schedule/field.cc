#include "schedule/field.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace matins {
namespace {

absl::Status FieldError(const FieldForm& form, absl::string_view item, absl::string_view what,
                        absl::string_view mend) {
  return BadInput(absl::StrCat(form.name, " '", item, "'"), what, mend);
}

// The values from `first` to `last`, every `step`-th; round the end where last < first.
uint64_t Values(const FieldForm& form, int first, int last, int step) {
  uint64_t bits = 0;
  const int count = form.max - form.min + 1;
  const int length = last >= first ? last - first + 1 : last - first + 1 + count;
  for (int k = 0; k < length; k += step) bits |= uint64_t{1} << ((first + k - form.min) % count);
  return bits;
}

absl::StatusOr<int> ParseStep(const FieldForm& form, absl::string_view text,
                              absl::string_view item) {
  const std::string mend = absl::StrCat("write a step of 1-", form.largest);
  if (text.empty()) return FieldError(form, item, "has no step after '/'", mend);
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    return FieldError(form, item, absl::StrCat("has the step '", text, "', which is no number"),
                      mend);
  }
  const int step = ParseSmall(text, 9999);
  if (step == 0) return FieldError(form, item, "has a step of 0", mend);
  if (step < 0 || step > form.largest) {
    return FieldError(form, item, "has a step larger than the field",
                      absl::StrCat(mend, "; a longer rhythm is written \"@every 90m\""));
  }
  return step;
}

absl::StatusOr<uint64_t> ParseRange(const FieldForm& form, absl::string_view base,
                                    absl::string_view item, int step, bool stepped) {
  const size_t dash = base.find('-');
  if (dash == absl::string_view::npos) {
    ASSIGN_OR_RETURN(const int value, ParseValue(form, base, item));
    const int last = stepped ? std::max(form.max, value) : value;
    return Values(form, value, last, step);
  }
  const absl::string_view left = base.substr(0, dash);
  const absl::string_view right = base.substr(dash + 1);
  if (left.empty() || right.empty() || absl::StrContains(right, '-')) {
    return FieldError(form, item, "is no range",
                      absl::StrCat("write first-last within ", FieldRange(form)));
  }
  ASSIGN_OR_RETURN(int first, ParseValue(form, left, item));
  ASSIGN_OR_RETURN(const int last, ParseValue(form, right, item));
  // A range that begins at the second name of Sunday begins at the first.
  if (first > form.max && last <= form.max) first -= form.max - form.min + 1;
  if (last < first && !form.wraps) {
    return FieldError(form, item, "ends before it begins", "write the smaller one first");
  }
  return Values(form, first, last, step);
}

}  // namespace

int ParseSmall(absl::string_view digits, int most) {
  if (digits.empty() || digits.size() > 9) return -1;
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) return -1;
  int value;
  return absl::SimpleAtoi(digits, &value) && value <= most ? value : -1;
}

std::string FieldRange(const FieldForm& form) {
  std::string range = absl::StrCat(form.min, "-", form.largest);
  if (!form.names.empty()) {
    absl::StrAppend(&range, " or ", form.names.front(), "-", form.names.back());
  }
  return range;
}

absl::StatusOr<int> ParseValue(const FieldForm& form, absl::string_view text,
                               absl::string_view what) {
  const std::string mend = absl::StrCat("write ", FieldRange(form));
  if (!text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    const int value = ParseSmall(text, form.largest);
    if (value >= form.min) return value;
    return FieldError(form, what, absl::StrCat(text, " is out of range"), mend);
  }
  for (size_t i = 0; i < form.names.size(); ++i) {
    if (absl::EqualsIgnoreCase(text, form.names[i])) return form.min + static_cast<int>(i);
  }
  if (text.empty()) return FieldError(form, what, "has an empty item", mend);
  return FieldError(
      form, what,
      absl::StrCat("'", text, "' is no ", form.names.empty() ? "number" : "number or name"), mend);
}

absl::StatusOr<FieldSet> ParseField(const FieldForm& form, absl::string_view text) {
  FieldSet set;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    if (item.empty()) {
      return FieldError(form, text, "has an empty item in its list", "take the extra comma out");
    }
    const size_t slash = item.find('/');
    const bool stepped = slash != absl::string_view::npos;
    const absl::string_view base = item.substr(0, slash);
    int step = 1;
    if (stepped) {
      ASSIGN_OR_RETURN(step, ParseStep(form, item.substr(slash + 1), item));
    }
    const bool whole = item.size() == text.size();
    if (base == "*") {
      set.star = whole;
      set.bits |= Values(form, form.min, form.max, step);
      continue;
    }
    ASSIGN_OR_RETURN(const uint64_t bits, ParseRange(form, base, item, step, stepped));
    set.bits |= bits;
    set.zero_step = whole && stepped && ParseSmall(base, 0) == 0;
  }
  return set;
}

}  // namespace matins
