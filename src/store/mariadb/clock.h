// The store's clock set right again after a step (I8).
#ifndef MATINS_STORE_MARIADB_CLOCK_H_
#define MATINS_STORE_MARIADB_CLOCK_H_

#include "absl/status/statusor.h"
#include "store/mariadb/session.h"

namespace matins::mariadb {

// What a tick and `matins clock accept` lock first: nodes and people take turns on the mark.
Statement LockMark();

// In an open transaction: burns the fences of all live rows, moves what still counts by the old
// clock to the new one, sets the mark to the clock as it is, and ends the freeze; recorded as
// `who`'s. Answers what is to be written.
absl::StatusOr<std::vector<Statement>> SettleClock(Session& session, const Act& act);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_CLOCK_H_
