// The business fence in the ledger's own database, as `matins fence sql` prints it.
#ifndef MATINS_DEMO_FENCE_H_
#define MATINS_DEMO_FENCE_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "demo/reconcile.h"
#include "demo/sql.h"

namespace matins::demo {

// The fence's table (and functions, where the database has such), where they are missing.
absl::Status MakeFence(Sql& sql);

// Raises the fence for the run's period and commits that, before anything is read. Answers the last
// step that was committed there in this generation; 0: none. Aborted: a newer owner was here.
absl::StatusOr<int64_t> RaiseFence(Sql& sql, const Ownership& owner);

// One transaction: the fence and the step's number first, then `write`, then COMMIT. Aborted, with
// nothing written, where the fence is no longer the run's or the step was done already.
absl::Status InFencedStep(Sql& sql, const Ownership& owner, int64_t step,
                          const std::function<absl::Status()>& write);

}  // namespace matins::demo

#endif  // MATINS_DEMO_FENCE_H_
