// Limits in MariaDB: each START locks the rows of the rules that concern it, in their order, and
// counts in a later statement. Whether there are rules at all is read with a shared lock, which
// STARTs do not mind of each other: who changes a rule waits for those that have counted by the old
// ones, and those that come wait for the change.
#ifndef MATINS_STORE_MARIADB_LIMITS_H_
#define MATINS_STORE_MARIADB_LIMITS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "store/limit_rules.h"
#include "store/mariadb/session.h"
#include "store/mariadb/sql.h"

namespace matins::mariadb {

// The rules as last read, and the number under which they stood: above 0 where there are any.
struct KnownLimits {
  int64_t number = 0;
  LimitBook book;
};
absl::StatusOr<KnownLimits> ReadKnownLimits(Session& session);

// Locks the rows of these rules.
Statement LockLimits(const std::vector<const LimitRule*>& rules);
// Counts what is taken of the limits that `claims` speak of; for ReadLimitCounts
// (store/server_rows.h).
Statement CountSlots(const LimitBook& book, const std::vector<LimitClaim>& claims);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_LIMITS_H_
