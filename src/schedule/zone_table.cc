#include "schedule/zone_table.h"

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/civil_time.h"
#include "schedule/month_table.h"

namespace matins {
namespace {

constexpr int64_t kTableStart = -2 * kDaySeconds;

int64_t TableEnd() {
  static const int64_t end =
      absl::CivilSecond(kLastYear + 1) - absl::CivilSecond(1970) + 2 * kDaySeconds;
  return end;
}

// The instant of a change, from the two local times that it joins.
absl::Time ChangeInstant(const absl::TimeZone& zone,
                         const absl::TimeZone::CivilTransition& change) {
  if (change.from < change.to) return zone.At(change.from).trans;
  if (change.from > change.to) return zone.At(change.to).trans;
  return zone.At(change.from).pre;  // only the name changes
}

}  // namespace

ZoneTable::ZoneTable(const absl::TimeZone& zone) {
  absl::Time at = absl::FromUnixSeconds(kTableStart);
  segments_.push_back({kTableStart, zone.At(at).offset, 0});
  absl::TimeZone::CivilTransition change;
  while (zone.NextTransition(at, &change)) {
    at = ChangeInstant(zone, change);
    const int64_t start = absl::ToUnixSeconds(at);
    if (start >= TableEnd()) break;
    const int32_t offset = zone.At(at).offset;
    const int32_t jump = offset - segments_.back().offset;
    if (jump != 0) segments_.push_back({start, offset, jump});
  }
  segments_.push_back({TableEnd(), segments_.back().offset, 0});

  const int64_t buckets = ((TableEnd() - kTableStart) >> kBucketBits) + 1;
  size_t segment = 0;
  for (int64_t b = 0; b < buckets; ++b) {
    const int64_t start = kTableStart + (b << kBucketBits);
    while (segment + 2 < segments_.size() && segments_[segment + 1].start <= start) ++segment;
    buckets_.push_back(static_cast<uint16_t>(segment));
  }
}

const ZoneTable& ZoneTable::Of(const absl::TimeZone& zone) {
  static absl::Mutex mutex(absl::kConstInit);
  static auto* const tables = new absl::flat_hash_map<std::string, std::unique_ptr<ZoneTable>>();
  const std::string name = zone.name();
  absl::MutexLock lock(&mutex);
  std::unique_ptr<ZoneTable>& table = (*tables)[name];
  if (table == nullptr) table = std::make_unique<ZoneTable>(zone);
  return *table;
}

int ZoneTable::IndexOf(int64_t utc) const {
  if (utc < kTableStart) return 0;
  const size_t bucket = static_cast<size_t>((utc - kTableStart) >> kBucketBits);
  if (bucket >= buckets_.size()) return size() - 1;
  int index = buckets_[bucket];
  while (index + 1 < size() && segments_[index + 1].start <= utc) ++index;
  return index;
}

}  // namespace matins
