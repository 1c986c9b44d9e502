// What Extend, Checkpoint, Finish and Reap have in common: rows named by keys, locked in key order,
// judged by the clock that is read once they are locked.
#ifndef MATINS_STORE_MARIADB_TICKET_H_
#define MATINS_STORE_MARIADB_TICKET_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "store/batches.h"
#include "store/mariadb/session.h"

namespace matins::mariadb {

inline constexpr BatchErrors kBatchErrors = {IsRowError, IsLockWait};

// A JSON array of the keys, each once, in key order: the order in which rows are locked.
std::string KeysInOrder(std::vector<PeriodKey> keys);

// Locks rows (RowColumns()) in the order of the array; skips those that others have locked, or
// waits for them where the call's deadline leaves room to.
Statement LockRows(const Session& session, absl::string_view keys_json, Locking locking);

// The clock, whether it stepped, and the epoch: after the statement that locks, so that the time is
// that behind the lock (I4).
Statement ReadClock();
struct Clock {
  absl::Time now;
  bool stepped = false;  // to everybody
  bool frozen = false;   // to nodes: it stepped, or has jumped forward and no tick has judged that
  int64_t epoch = 0;
};
Clock ClockOf(const Rows& rows);

struct LockedRows {
  Clock clock;
  std::map<PeriodKey, AttemptRow> rows;
  std::set<PeriodKey> busy;  // there, and locked by another
  std::vector<Rows> more;    // the answers to `also`

  const AttemptRow* Find(const PeriodKey& key) const {
    const auto row = rows.find(key);
    return row == rows.end() ? nullptr : &row->second;
  }
};
// Begins a transaction, locks and reads. Where it waits, the fault point `before_lock` lies between
// its beginning and the statement that locks.
absl::StatusOr<LockedRows> LockTickets(Session& session, const std::vector<PeriodKey>& keys,
                                       Locking locking, absl::string_view before_lock,
                                       const std::vector<Statement>& also = {});

// Refusal's word for a ticket; "done" where the job itself wrote DONE under it.
absl::StatusOr<std::vector<std::string>> Refusals(Session& session, const LockedRows& locked,
                                                  const std::vector<Ticket>& tickets, Asked asked);

// Ends the transaction: the fault point `before_commit`, the writes and the commit.
absl::StatusOr<std::vector<Rows>> CommitAt(Session& session, absl::string_view before_commit,
                                           const std::vector<Statement>& writes);

// Fences, "behind @matins_fence": the number of the i-th is @matins_fence + i, from 0. From one
// store-wide source that only rises, and that no rollback takes back (I6).
std::vector<Statement> TakeFences(size_t count);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_TICKET_H_
