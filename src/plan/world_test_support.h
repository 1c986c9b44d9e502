// A job's life in memory, for tests of planning: what a store would keep, and no more.
#ifndef MATINS_PLAN_WORLD_TEST_SUPPORT_H_
#define MATINS_PLAN_WORLD_TEST_SUPPORT_H_

#include <deque>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plan/plan.h"

namespace matins {

// So that a failed expectation can be read.
void PrintTo(const Intent& intent, std::ostream* out);

// "2026-11-29T02:00:00Z"; a wrong one ends the test program.
absl::Time At(absl::string_view text);
absl::TimeZone Zone(absl::string_view name);
// A job "j" with this schedule, misfire each unless changed. Aborts where the schedule is wrong.
Job JobOf(absl::string_view schedule, absl::string_view timezone = "UTC");
ResolvedJob Resolved(const Job& job, absl::string_view calendar_days = "",
                     std::optional<absl::CivilDay> calendar_until = std::nullopt);

class World {
 public:
  World(ResolvedJob job, absl::Time first_sight);
  // A new version, in force from `from`.
  void Change(ResolvedJob job, absl::Time from);

  // The state as a store answers it: open rows, and all from gap_from on.
  JobState State() const;
  // For planning at `now`; good until the next call.
  PlanInput Input(absl::Time now, std::optional<Trigger> trigger = {});
  absl::StatusOr<PlanWrite> TryPlan(absl::Time now, std::optional<Trigger> trigger = {});
  // Plans and writes until the job need not be looked at again before now; answers all of it.
  PlanWrite Plan(absl::Time now, std::optional<Trigger> trigger = {});
  // Plans at each instant that planning asked for, up to `until`.
  void PlanUntil(absl::Time until);
  void Write(const PlanWrite& write, absl::Time now);

  // What runs do, by period.
  void Run(absl::string_view period, absl::Time at);
  void Done(absl::string_view period, absl::Time at);
  void Fail(absl::string_view period, absl::Time at, bool held = false);
  void Lose(absl::string_view period);
  void Delete(absl::string_view period);

  const PeriodRow& Row(absl::string_view period) const;
  // "PLANNED", "PLANNED backfill", "SKIPPED cap", "none".
  std::string Told(absl::string_view period) const;
  // Periods in due order with that text.
  std::vector<std::string> Periods(absl::string_view told) const;
  int64_t Count(absl::string_view told) const;  // spans included

  std::map<std::string, PeriodRow, std::less<>> rows;
  std::vector<SkipSpan> spans;
  JobState state;
  absl::Time next_look = absl::InfinitePast();
  absl::Duration ahead = absl::Seconds(5);

 private:
  PeriodRow& Mutable(absl::string_view period);
  void WriteIntent(const Intent& intent, absl::Time now);

  std::deque<ResolvedJob> jobs_;
  std::vector<VersionInForce> versions_;
  JobState read_;
};

}  // namespace matins

#endif  // MATINS_PLAN_WORLD_TEST_SUPPORT_H_
