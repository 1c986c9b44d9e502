// Limits in PostgreSQL: each START locks the rows of the rules that concern it, in their order, and
// counts in a later statement. Whether there are rules at all is read by a statement that START
// sends anyway, which takes a shared lock of job_limit's table: who changes a rule waits for those
// that have counted by the old ones, and those that come wait for the change.
#ifndef MATINS_STORE_POSTGRESQL_LIMITS_H_
#define MATINS_STORE_POSTGRESQL_LIMITS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/limit_rules.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// The rules as last read, and the number under which they stood; 0: none.
struct KnownLimits {
  int64_t number = 0;
  LimitBook book;
};
// SQL: the number that stands now, 0 where there is no rule.
extern const char kLimitsNumber[];
absl::StatusOr<KnownLimits> ReadKnownLimits(Session& session);

// Locks the rows of these rules.
Statement LockLimits(const Session& session, const std::vector<const LimitRule*>& rules);
// Counts what is taken of the limits that `claims` speak of; for ReadLimitCounts
// (store/server_rows.h).
Statement CountSlots(const Session& session, const LimitBook& book,
                     const std::vector<LimitClaim>& claims);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_LIMITS_H_
