// Limits in SQLite: everything here stands behind the write lock, which is the lock of each limit's
// row too.
#ifndef MATINS_STORE_SQLITE_LIMITS_H_
#define MATINS_STORE_SQLITE_LIMITS_H_

#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "store/limit_rules.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/rows.h"

namespace matins::sqlite {

// Whether a START has room for a run below the store's limits. Reads only what it is asked about,
// and nothing at all in a store without limits.
class LimitGate {
 public:
  LimitGate(Connection& db, const Transaction& transaction);
  std::optional<Full> Refuse(const Row& row);
  void Granted(const Row& row) {
    if (!book_.empty()) counts_.Add(ClaimOf(row));
  }

 private:
  static LimitClaim ClaimOf(const Row& row) { return {row.tenant, row.limit_key, row.backfill}; }
  void Count(const LimitClaim& claim);

  Connection& db_;
  const absl::Time now_;
  LimitBook book_;
  LimitCounts counts_;
  bool counted_ = false;
  std::set<std::string> known_;  // "tenant/NAME", "key/NAME" that are in counts_
};

// The slot of a run that may live on, though its row no longer says so, until `until`.
void LeaveSlot(Connection& db, const Row& row, absl::Time until);
// Of an attempt whose tree is dead; answers whether there was one.
bool DropSlot(Connection& db, absl::Time now, const PeriodKey& key, int64_t fence);
// One of those that wait for each limit that `row` counted against.
void WakeForSlot(Connection& db, absl::Time now, const Row& row);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_LIMITS_H_
