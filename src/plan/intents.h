// From periods and rows to what planning wants written.
#ifndef MATINS_PLAN_INTENTS_H_
#define MATINS_PLAN_INTENTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plan/fires.h"
#include "plan/owed.h"

namespace matins {

// More than this many SKIPPED in a row for one reason get a span instead of rows.
inline constexpr int kMostSkippedRows = 100;

// A new row, on time: PLANNED, with START's deadline.
absl::StatusOr<Intent> InsertOf(const Fires& fires, absl::string_view job, const NewPeriod& period);

// A change of an existing row; the row's own values, and today's lock and priority.
absl::StatusOr<Intent> ChangeOf(const Fires& fires, Intent::Kind kind, const PeriodRow& row);

// Lock and priority by the current version: a period is judged by the version in force when it was
// due, and run with today's.
absl::Status RunWithToday(const Fires& fires, Intent& intent);

// Collects intents and spans in due order; folds long stretches of SKIPPED.
class Collector {
 public:
  Collector(const Fires& fires, PlanWrite& write) : fires_(fires), write_(write) {}
  // A new period that is SKIPPED at once.
  absl::Status Skip(const NewPeriod& period, absl::string_view reason, absl::string_view by);
  absl::Status Add(Intent intent);
  // To be called before the next one, wherever a row stands between, and at the end.
  absl::Status Flush();

 private:
  const Fires& fires_;
  PlanWrite& write_;
  std::vector<NewPeriod> skipped_;  // at most kMostSkippedRows + 1: the first ones
  NewPeriod last_;
  int64_t count_ = 0;
  std::string reason_;
  std::string by_;
};

}  // namespace matins

#endif  // MATINS_PLAN_INTENTS_H_
