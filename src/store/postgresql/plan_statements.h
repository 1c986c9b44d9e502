// Plans as statements: what Plan writes, and Resume in its own transaction.
#ifndef MATINS_STORE_POSTGRESQL_PLAN_STATEMENTS_H_
#define MATINS_STORE_POSTGRESQL_PLAN_STATEMENTS_H_

#include <vector>

#include "store/plan_batch.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// Locks the jobs whose revision is as expected, and reads which of the intents' rows exist, and the
// clock: three result sets, for ReadPlanFacts; a fourth by ReadTurns, where tenants are served in
// turn.
std::vector<Statement> LockForPlan(const Session& session, const PlanRequest& request);
Statement ReadTurns(const Session& session, const PlanRequest& request);
PlanFacts ReadPlanFacts(const Rows& locked, const Rows& existing, const Rows& clock,
                        const Rows* turns);
// Once for a batch. The first one's rows are those that were held at once.
std::vector<Statement> PlanStatements(const Session& session, PlanBatch& batch);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_PLAN_STATEMENTS_H_
