// Rows that exist already, at a trigger: what is judged, what gets new attempts, what is left.
#ifndef MATINS_PLAN_JUDGE_ROWS_H_
#define MATINS_PLAN_JUDGE_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "plan/fires.h"
#include "plan/owed.h"
#include "plan/plan.h"

namespace matins {

// Neither DONE nor SKIPPED.
bool IsGap(const PeriodRow& row);

// Planned ahead under a version that was replaced before the row was due, and the schedule in force
// then has no fire in its period (I15).
bool IsOutsideSchedule(const Fires& fires, const PeriodRow& row);

class RowJudge {
 public:
  // `triggered`: by the store's return or a person, apart from fires.
  RowJudge(const PlanInput& input, const Fires& fires, bool triggered);

  // What is to become of a row that is owed and has `newer` owed ones after it; nothing: it is
  // left.
  //  - RUNNING and FAILED(held) are left; so is PLANNED after an attempt: lost or in backoff, its
  //    attempts of this trigger are not used up.
  //  - FAILED is judged at the first trigger after it failed, and gets new attempts where it stays.
  //  - A person's row is not judged.
  absl::StatusOr<std::optional<Intent>> Judge(const PeriodRow& row, int64_t newer) const;

  // The newest fire by now of a new period: several fires in one period are triggers of it.
  absl::StatusOr<absl::Time> LastTrigger(const NewPeriod& period) const;

 private:
  absl::StatusOr<std::optional<Intent>> JudgePlanned(const PeriodRow& row, int64_t newer) const;
  absl::StatusOr<std::optional<Intent>> JudgeFailed(const PeriodRow& row, int64_t newer) const;
  absl::Time LastTrigger(const std::string& period, absl::Time due) const;
  // Until when the row is on time.
  absl::Time OnTime(const PeriodRow& row, const ResolvedJob& job) const;
  absl::StatusOr<Intent> Skip(const PeriodRow& row, absl::string_view reason) const;

  const absl::Time now_;
  const Fires& fires_;
  const bool triggered_;
  absl::Time newest_fire_ = absl::InfinitePast();
  absl::flat_hash_map<std::string, absl::Time> recent_;  // period -> its newest fire by now
};

}  // namespace matins

#endif  // MATINS_PLAN_JUDGE_ROWS_H_
