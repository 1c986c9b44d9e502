// The fires of a job over all its versions: each instant belongs to the version in force then.
#ifndef MATINS_PLAN_FIRES_H_
#define MATINS_PLAN_FIRES_H_

#include <optional>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/fault.h"
#include "plan/plan.h"

namespace matins {

struct DatedFire {
  Fire fire;
  int version = 0;      // index into the versions
  bool covered = true;  // false: the calendar does not know the day (calendar_fires.h)
};

// Versions are intervals of instants: one is in force from its `from` until a later one's; the
// first also before its own, for what backfill.start asks of the time before first sight. Where the
// store's clock was set back between two changes, the later one begins before the other: that one's
// time is not to come any more. Keeps the span it was given.
class Fires {
 public:
  explicit Fires(absl::Span<const VersionInForce> versions)
      : versions_(IsMutant(Mutant::kNewestVersion) ? versions.last(1) : versions) {}

  std::optional<DatedFire> Next(absl::Time after) const;
  std::optional<DatedFire> Previous(absl::Time before) const;
  // The version in force at `t`, as an index.
  int InForce(absl::Time t) const;
  // The version with that number; where it is not among those given, the one in force at `due`.
  int IndexOf(int number, absl::Time due) const;
  const VersionInForce& version(int index) const { return versions_[index]; }
  const ResolvedJob& job(int index) const { return *versions_[index].job; }
  const ResolvedJob& current() const { return *versions_.back().job; }
  int size() const { return static_cast<int>(versions_.size()); }

 private:
  absl::Time End(int index) const;
  absl::Span<const VersionInForce> versions_;
};

}  // namespace matins

#endif  // MATINS_PLAN_FIRES_H_
