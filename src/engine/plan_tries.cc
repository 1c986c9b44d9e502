#include "engine/plan_tries.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace matins {
namespace {

constexpr int kMost = 140;
constexpr int64_t kFirstPauseUs = 2'000;
constexpr int64_t kLongestPauseUs = 100'000;

}  // namespace

bool PlanTries::Next() {
  if (tries_ >= kMost) return false;
  if (++tries_ <= 2) return true;
  const int64_t most = std::min(kFirstPauseUs << std::min(tries_ - 3, 10), kLongestPauseUs);
  absl::SleepFor(absl::Microseconds(most / 2 + static_cast<int64_t>(random_.Below(most / 2))));
  return true;
}

absl::Status PlanTries::GaveUp(absl::string_view job) const {
  return absl::AbortedError(absl::StrCat("job '", job,
                                         "' was planned by another at the same moment, ", tries_,
                                         " times over; nothing was changed, try again"));
}

}  // namespace matins
