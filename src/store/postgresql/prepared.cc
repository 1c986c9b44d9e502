#include "store/postgresql/prepared.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"

namespace matins::postgresql {
namespace {

// A text is worth it from this length on: BEGIN and COMMIT are not.
constexpr size_t kShortest = 60;
// The verbs of one connection have some dozens of texts. What comes beyond is sent as it is: a
// server keeps each for as long as the session lasts.
constexpr size_t kMostTexts = 250;

}  // namespace

PreparedStatements::PreparedStatements()
    : prefix_(absl::StrCat("matins_", absl::Hex(SystemRandom().Next(), absl::kZeroPad16), "_")) {}

PreparedStatements::Use PreparedStatements::Next(const std::string& text, bool at_once) {
  if (stopped_ || text.size() < kShortest) return {};
  auto it = names_.find(text);
  if (it == names_.end()) {
    if (names_.size() >= kMostTexts) return {};
    it = names_.try_emplace(text).first;
    if (!at_once) return {};
  }
  std::string& name = it->second;
  if (!name.empty()) return {How::kExecute, name};
  name = absl::StrCat(prefix_, ++count_);
  sent_.push_back(text);
  return {How::kPrepare, name};
}

void PreparedStatements::Confirm() {
  if (!sent_.empty()) sent_.erase(sent_.begin());
}

void PreparedStatements::Settle() {
  for (const std::string& text : sent_) {
    if (const auto it = names_.find(text); it != names_.end()) it->second.clear();
  }
  sent_.clear();
}

void PreparedStatements::Forget() {
  names_.clear();
  sent_.clear();
}

void PreparedStatements::Stop() {
  Forget();
  stopped_ = true;
}

}  // namespace matins::postgresql
