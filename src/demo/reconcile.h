// The reconciliation of one business date: the ledger's payments against the channel's statement
// lines.
//
// Its body is idempotent the way real ones must be: step by step, the step's drafts of the day are
// cleared and computed again; rows that a person works on, and settled ones, are carried over and
// never deleted. Under Matins each step's transaction carries the fence and the step's number
// beside what it writes, and the fence was raised, and that committed, before anything was read
// (docs/fencing.md).
#ifndef MATINS_DEMO_RECONCILE_H_
#define MATINS_DEMO_RECONCILE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/civil_time.h"
#include "demo/sql.h"

namespace matins::demo {

// What speaks for a run in the ledger's own database.
struct Ownership {
  std::string job, period;
  int generation = 1;
  int64_t fence = 0;
};

// The day's reconciliation has this many steps: one a batch of payments, one for lines without a
// payment, one for what came late for the day before, and one that sums up.
int64_t Steps();

// `after_step` is told each committed step's number. Aborted where a newer owner has raised the
// fence: the caller must stop.
absl::Status Reconcile(Sql& sql, const Ownership& owner, absl::CivilDay day,
                       const std::function<void(int64_t)>& after_step);

// The plain way, as a crontab line on every instance would have it: is the day summed up? no:
// compute, book, sum up.
absl::Status ReconcilePlainly(Sql& sql, absl::CivilDay day);

}  // namespace matins::demo

#endif  // MATINS_DEMO_RECONCILE_H_
