// The way back from a slice of business time to the fire that it is due at.
#ifndef MATINS_PLAN_FIND_FIRE_H_
#define MATINS_PLAN_FIND_FIRE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "plan/fires.h"
#include "plan/owed.h"

namespace matins {

// The first fire whose period has a biz_date of `day` or later; nothing: none comes.
absl::StatusOr<std::optional<DatedFire>> FirstFireOfDay(const Fires& fires, absl::CivilDay day);

// The first fire of `period`, or, where it has none, the first of any later period.
struct FoundFire {
  std::optional<DatedFire> fire;
  bool exact = false;  // it is the period's own
};
absl::StatusOr<FoundFire> FirstFireOf(const Fires& fires, const Period& period);

}  // namespace matins

#endif  // MATINS_PLAN_FIND_FIRE_H_
