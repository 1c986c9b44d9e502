// Back-fills in MariaDB: a START that has rows of some locks those back-fills' rows, in the order
// of their ids and after all else, and reads and counts in later statements.
#ifndef MATINS_STORE_MARIADB_BACKFILLS_H_
#define MATINS_STORE_MARIADB_BACKFILLS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "store/mariadb/session.h"

namespace matins::mariadb {

// The answers but the first are for ReadBackfillFacts (store/server_rows.h); the last is the clock
// behind the locks (ReadClock).
std::vector<Statement> LookAtBackfills(const std::set<int64_t>& ids);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_BACKFILLS_H_
