// What Extend, Checkpoint, Finish and Reap have in common: rows named by tickets, taken in key
// order, judged by the clock that is read once they are locked, each answered by itself.
#ifndef MATINS_STORE_POSTGRESQL_TICKET_H_
#define MATINS_STORE_POSTGRESQL_TICKET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "store/batches.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// "with x (the requests: n, job, period, gen, fence, nonce and `columns`), l (their rows, locked),
// c (the clock `now`, read after the last of them was locked)".
std::string LockedRows(absl::string_view columns, Locking locking);
// The same for requests that are in key order, "select n, job, ..." (ColumnRows::Take), and of the
// rows only those columns that TicketWhy asks for and `columns`, of a table named r.
std::string LockedRowsOf(absl::string_view requests, absl::string_view columns, Locking locking);
// An SQL expression over x, l and c: '' where the ticket is current and its lease is alive, else
// the word of Refusal.
enum class Asked { kExtend, kCheckpoint, kFinish };
std::string TicketWhy(Asked asked);
// The same for a request whose row was not locked: "gone", or "busy" where another has it.
extern const char kUnlockedWhy[];

inline bool IsRowError(const absl::Status& status) {
  const std::string state = SqlStateOf(status);
  return state.starts_with("22") || state.starts_with("23");
}
inline bool IsLockWait(const absl::Status& status) { return SqlStateOf(status) == "55P03"; }
inline constexpr BatchErrors kBatchErrors = {IsRowError, IsLockWait};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_TICKET_H_
