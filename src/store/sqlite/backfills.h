// Back-fills in SQLite: everything here stands behind the write lock, which is the lock of each
// back-fill's row too.
#ifndef MATINS_STORE_SQLITE_BACKFILLS_H_
#define MATINS_STORE_SQLITE_BACKFILLS_H_

#include <map>
#include <optional>

#include "absl/time/time.h"
#include "store/backfill_rules.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/rows.h"

namespace matins::sqlite {

// Whether a START may begin a row of a back-fill. Reads each back-fill once, and nothing where no
// row belongs to one.
class BackfillGate {
 public:
  BackfillGate(Connection& db, const Transaction& transaction) : db_(db), now_(transaction.now()) {}
  // Nullptr: its row is gone.
  const BackfillFacts* Find(int64_t id);
  std::optional<BackfillStop> Refuse(const Row& row);
  void Granted(const Row& row);

 private:
  Connection& db_;
  const absl::Time now_;
  std::map<int64_t, std::optional<BackfillFacts>> known_;
};

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_BACKFILLS_H_
