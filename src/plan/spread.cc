#include "plan/spread.h"

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "job/calendar_fires.h"

namespace matins {

uint64_t StableHash(absl::string_view bytes) {
  uint64_t hash = Fnv1a(bytes);
  // FNV alone leaves the high bits of names that differ at the end alike (SplitMix64's finish).
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

absl::Duration SpreadDelay(const ResolvedJob& job, absl::Time fire) {
  if (job.job.spread <= absl::ZeroDuration()) return absl::ZeroDuration();
  absl::Duration width = job.job.spread;
  if (const std::optional<CalendarFire> next = NextFire(job, fire)) {
    width = std::min(width, next->fire.at - fire);
  }
  const auto us = static_cast<unsigned __int128>(absl::ToInt64Microseconds(width));
  const auto delay = static_cast<int64_t>((us * StableHash(job.job.name)) >> 64);
  return absl::Microseconds(delay);
}

}  // namespace matins
