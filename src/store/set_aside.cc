#include "store/set_aside.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/hash.h"

namespace matins {
namespace {

constexpr size_t kLongestLabels = 500;

absl::Duration SpreadOf(const PeriodKey& key) {
  const uint64_t hash = Fnv1a(absl::StrCat(key.job, "/", key.period));
  return kAsideFor * static_cast<int64_t>(hash >> 40) / (int64_t{1} << 24);
}

std::string TagText(int64_t tag) { return absl::StrFormat("%0*d", kTagDigits, tag); }

}  // namespace

SetAside AsideOf(const PeriodKey& key, absl::string_view labels, int64_t start_tag, absl::Time now,
                 absl::Duration soon) {
  if (labels.size() > kLongestLabels) return {now + soon, ""};
  const absl::Time look_at = now + kAsideFor + SpreadOf(key);
  if (labels.empty()) return {look_at, ""};
  return {look_at, absl::StrCat(kAside, labels, "/", TagText(start_tag))};
}

absl::string_view AsideListOf(absl::string_view waits_for) {
  return waits_for.substr(0, waits_for.rfind('/'));
}

absl::string_view LabelsOfAside(absl::string_view list) {
  return list.substr(absl::string_view(kAside).size());
}

std::string AsideFrom(absl::string_view list, bool tagged) {
  return absl::StrCat(list, "/", tagged ? TagText(1) : "");
}

std::string AsideEnd(absl::string_view list) { return absl::StrCat(list, "0"); }  // '/' + 1

}  // namespace matins
