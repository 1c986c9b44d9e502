// What Extend, Checkpoint, Finish and Reap have in common: rows named by tickets, taken in key
// order, judged by the clock that is read once they are locked, each answered by itself.
#ifndef MATINS_STORE_POSTGRESQL_TICKET_H_
#define MATINS_STORE_POSTGRESQL_TICKET_H_

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "job/values.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

enum class Locking { kSkip, kWait };

// "with x (the requests: n, job, period, gen, fence, nonce and `columns`), l (their rows, locked),
// c (the clock `now`, read after the last of them was locked)".
std::string LockedRows(absl::string_view columns, Locking locking);
// An SQL expression over x, l and c: '' where the ticket is current and its lease is alive, else
// the word of Refusal.
enum class Asked { kExtend, kCheckpoint, kFinish };
std::string TicketWhy(Asked asked);
// The same for a request whose row was not locked: "gone", or "busy" where another has it.
extern const char kUnlockedWhy[];

inline constexpr char kBusy[] = "busy";

// Runs `batch` (indexes of requests -> status; it puts each request's answer away by itself) over
// all requests: no key twice in one batch; rows that somebody else had locked again alone with a
// bounded wait; a batch that fails for one row's sake in halves, until that row is alone.
// `why` answers the word a request got; `refuse` gives a request its word.
template <typename Batch, typename Why, typename Refuse>
absl::Status RunBatches(const std::vector<PeriodKey>& keys, Batch batch, Why why, Refuse refuse);

// ---- implementation ----

inline bool IsRowError(const absl::Status& status) {
  const std::string state = SqlStateOf(status);
  return state.starts_with("22") || state.starts_with("23");
}

template <typename Batch, typename Refuse>
absl::Status RunSplit(std::vector<size_t> part, Batch& batch, Refuse& refuse) {
  const absl::Status status = batch(part, Locking::kSkip);
  if (status.ok() || !IsRowError(status)) return status;
  if (part.size() == 1) {
    refuse(part[0], absl::StrCat("row: ", status.message()));
    return absl::OkStatus();
  }
  const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  RETURN_IF_ERROR(RunSplit({part.begin(), middle}, batch, refuse));
  return RunSplit({middle, part.end()}, batch, refuse);
}

template <typename Batch, typename Why, typename Refuse>
absl::Status RunBatches(const std::vector<PeriodKey>& keys, Batch batch, Why why, Refuse refuse) {
  std::vector<size_t> left(keys.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty()) {
    std::set<PeriodKey> seen;
    std::vector<size_t> now, later;
    for (const size_t i : left) (seen.insert(keys[i]).second ? now : later).push_back(i);
    RETURN_IF_ERROR(RunSplit(now, batch, refuse));
    for (const size_t i : now) {
      if (why(i) != kBusy) continue;
      const absl::Status alone = batch({i}, Locking::kWait);
      // Nobody else's answer is lost for a row that stays locked.
      if (!alone.ok() && (SqlStateOf(alone) != "55P03" || keys.size() == 1)) return alone;
    }
    left = std::move(later);
  }
  return absl::OkStatus();
}

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_TICKET_H_
