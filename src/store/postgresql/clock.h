// The store's clock set right again after a step (I8).
#ifndef MATINS_STORE_POSTGRESQL_CLOCK_H_
#define MATINS_STORE_POSTGRESQL_CLOCK_H_

#include <string>
#include <vector>

#include "store/postgresql/session.h"

namespace matins::postgresql {

// Burns the fences of all live rows, moves what still counts by the old clock to the new one, sets
// the mark to the clock as it is, and ends the freeze; recorded as `who`'s.
std::vector<Statement> SettleClock(const Session& session, const Act& act);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_CLOCK_H_
