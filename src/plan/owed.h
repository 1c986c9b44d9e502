// What the schedule expects of a job since planning last looked: enumerated by the versions in
// force, never materialised beyond a bound.
#ifndef MATINS_PLAN_OWED_H_
#define MATINS_PLAN_OWED_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plan/fires.h"
#include "plan/plan.h"

namespace matins {

// A period that the schedule expects and that has neither a row nor a span.
struct NewPeriod {
  Fire fire;  // its first: the period is due then
  int version = 0;
  std::optional<absl::Time> previous;  // the fire before it
  // A row or a span lies between it and the new period before it.
  bool apart = false;
};

// The rows of a state by key, the spans by instant.
class Known {
 public:
  explicit Known(const JobState& state);
  const PeriodRow* Row(absl::string_view period) const;
  bool HasRowDue(absl::Time due) const;
  // The end of the span that holds `due`.
  std::optional<absl::Time> SpanEnd(absl::Time due) const;

 private:
  absl::flat_hash_map<std::string, const PeriodRow*> rows_;
  absl::flat_hash_map<int64_t, int> dues_;
  std::vector<SkipSpan> spans_;
};

struct Expected {
  std::vector<NewPeriod> due;    // by now, oldest first
  std::vector<NewPeriod> ahead;  // after now, by now + ahead
  absl::Time reached;            // every fire at or before it has been looked at
  bool complete = true;          // false: more are due than one plan takes; the rest comes next
  // New periods that are due by now beyond `due` (not complete), counted as far as any cap reaches.
  int64_t beyond = 0;
  absl::Time next_fire = absl::InfiniteFuture();  // the first after now + ahead
  // Why it stopped before now + ahead: the calendar's coverage ends. OK: it did not.
  absl::Status stopped;
  absl::Time stopped_at = absl::InfiniteFuture();
};

// At most this many new periods in one plan.
inline constexpr int kMostNew = 100'000;

// Where looking begins (exclusive): after the cursor, or before a gap; never before first sight,
// backfill.start or the floor.
absl::StatusOr<absl::Time> FirstLook(const PlanInput& input, const Fires& fires);

// Sets the write's cursor and gap for one that settles all up to `reached`. Where the cursor lies
// beyond, a gap moves on and is not forgotten: rows may be deleted whose instant is still to come
// by a clock that was set back.
void SetReached(const PlanInput& input, absl::Time reached, PlanWrite& write);

absl::StatusOr<Expected> Enumerate(const PlanInput& input, const Fires& fires, const Known& known,
                                   absl::Time after);

// The instant just before the first fire whose period is not wholly before `day`: none of an
// earlier fire has a biz_date of `day` or later.
absl::Time BeforeBizDate(const ResolvedJob& job, absl::CivilDay day);

// The period of a fire. OutOfRange or InvalidArgument where a shift by business days leaves the
// calendar.
absl::StatusOr<Period> PeriodAt(const Fires& fires, const Fire& fire, int version,
                                std::optional<absl::Time> previous);

// InvalidArgument that says which calendar ended, and when.
absl::Status CalendarEnded(const ResolvedJob& job, const Fire& fire);

}  // namespace matins

#endif  // MATINS_PLAN_OWED_H_
