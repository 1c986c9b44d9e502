// A zone's clock changes laid out once, so that a search over them reads an array instead of asking
// the zone database.
#ifndef MATINS_SCHEDULE_ZONE_TABLE_H_
#define MATINS_SCHEDULE_ZONE_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace matins {

// A stretch of real time with one offset. It begins at `start` and ends where the next one begins.
struct Segment {
  int64_t start = 0;   // seconds since 1970-01-01T00:00:00Z
  int32_t offset = 0;  // local = utc + offset, in seconds
  int32_t jump = 0;    // offset less the offset before it: > 0 a gap, < 0 an overlap; first: 0

  int64_t local_start() const { return start + offset; }
  // What the clock on the wall would have shown at `start` without the change.
  int64_t local_before() const { return start + offset - jump; }
};

// Immutable once built; covers 1970 to 2200, the rules past the last written change included.
class ZoneTable {
 public:
  explicit ZoneTable(const absl::TimeZone& zone);

  // The table of `zone`, shared by all that use it and kept for the life of the process.
  // Thread-safe.
  static const ZoneTable& Of(const absl::TimeZone& zone);

  int size() const { return static_cast<int>(segments_.size()) - 1; }
  // `index` up to size(), where an endless last segment begins after all that matters.
  const Segment& at(int index) const { return segments_[index]; }
  // The segment that contains the instant `utc`, clamped to the table.
  int IndexOf(int64_t utc) const;

 private:
  // One entry a bucket of about 48 days: the segment at the bucket's start.
  static constexpr int kBucketBits = 22;
  std::vector<Segment> segments_;
  std::vector<uint16_t> buckets_;
};

}  // namespace matins

#endif  // MATINS_SCHEDULE_ZONE_TABLE_H_
