// From the local times that match to the instants that fire: the rule for clock changes
// (docs/schedules.md) over a zone's table.
#ifndef MATINS_SCHEDULE_FIRE_SEARCH_H_
#define MATINS_SCHEDULE_FIRE_SEARCH_H_

#include <cstdint>
#include <optional>

#include "schedule/pattern.h"
#include "schedule/schedule.h"
#include "schedule/zone_table.h"

namespace matins {

// Changes longer than this (a zone that leaves out a day) move no fire and repeat none.
inline constexpr int32_t kMostJumpSeconds = 3 * 3600;

struct FoundFire {
  int64_t at = 0;       // seconds since 1970-01-01T00:00:00Z
  int64_t nominal = 0;  // local seconds
};

class FireSearch {
 public:
  // All must outlive the search.
  FireSearch(const Matcher& matcher, const ZoneTable& zone, DstRule dst)
      : matcher_(matcher), zone_(zone), dst_(dst), interval_(matcher.pattern().interval) {}

  // The first fire after the instant `after`, none from `end` on.
  std::optional<FoundFire> Next(int64_t after, int64_t end) const;
  // The instant of the last fire at or before `last`; none before 1970.
  std::optional<int64_t> Previous(int64_t last) const;

 private:
  struct Range {
    int64_t first;
    int64_t end;
  };
  // The local times of segment `i` at which it fires by its own clock.
  Range OwnTimes(int i) const;
  // Whether matches inside the gap before this segment fire after it.
  bool MovesGap(const Segment& segment) const;
  bool Repeats(const Segment& segment) const;
  // The missing local times that `segment` has to make good; shifted, only what fits into it.
  Range MissingTimes(int i) const;

  const Matcher& matcher_;
  const ZoneTable& zone_;
  const DstRule dst_;
  const bool interval_;
};

}  // namespace matins

#endif  // MATINS_SCHEDULE_FIRE_SEARCH_H_
