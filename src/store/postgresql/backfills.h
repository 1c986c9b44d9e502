// Back-fills in PostgreSQL: a START that has rows of some locks those back-fills' rows, in the
// order of their ids and after all else, and reads and counts in later statements.
#ifndef MATINS_STORE_POSTGRESQL_BACKFILLS_H_
#define MATINS_STORE_POSTGRESQL_BACKFILLS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "store/postgresql/session.h"

namespace matins::postgresql {

// The answers but the first are for ReadBackfillFacts (store/server_rows.h); the last is the clock
// behind the locks.
std::vector<Statement> LookAtBackfills(const Session& session, const std::set<int64_t>& ids);

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_BACKFILLS_H_
