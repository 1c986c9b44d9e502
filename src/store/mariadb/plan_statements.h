// Plans as statements: what Plan writes, and Resume in its own transaction.
#ifndef MATINS_STORE_MARIADB_PLAN_STATEMENTS_H_
#define MATINS_STORE_MARIADB_PLAN_STATEMENTS_H_

#include <vector>

#include "store/mariadb/finish.h"
#include "store/plan_batch.h"

namespace matins::mariadb {

// Locks the jobs whose revision is as expected, and reads the clock, which of the intents' rows
// exist, and what others wait for: four result sets, for ReadPlanLocked.
std::vector<Statement> LockForPlan(const PlanRequest& request);
struct PlanLocked {
  PlanFacts facts;
  Wakes wakes;  // what the rows that become SKIPPED free
};
// `turns`: the answer to ReadTurns, where tenants are served in turn.
Statement ReadTurns();
// Whether `any` of the tenants that are to take turns has a name.
Turns TurnsOf(const Rows& turns, bool any);
PlanLocked ReadPlanLocked(const PlanRequest& request, const Rows* answers,
                          const Rows* turns = nullptr);
// Once for a batch; none carries more than about `bytes`. The last one's rows are those that were
// held at once.
std::vector<Statement> PlanStatements(PlanBatch& batch, const PlanRequest& request,
                                      const Wakes& wakes, absl::Time now, size_t bytes);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_PLAN_STATEMENTS_H_
