// Batches of rows named by tickets, each row answered by itself: one locked row must not cost the
// others their lease, and one that the database will not take must not cost them their write.
#ifndef MATINS_STORE_BATCHES_H_
#define MATINS_STORE_BATCHES_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "job/values.h"

namespace matins {

enum class Locking { kSkip, kWait };

inline constexpr char kBusy[] = "busy";  // Refusal's word for a row that another has locked

// How a database's errors are told apart.
struct BatchErrors {
  bool (*is_row_error)(const absl::Status&);  // it will not take this row, whoever asks
  bool (*is_lock_wait)(const absl::Status&);  // somebody kept a row locked for too long
};

template <typename Batch, typename Refuse>
absl::Status RunSplit(std::vector<size_t> part, Batch& batch, Refuse& refuse,
                      const BatchErrors& errors) {
  const absl::Status status = batch(part, Locking::kSkip);
  if (status.ok() || !errors.is_row_error(status)) return status;
  if (part.size() == 1) {
    refuse(part[0], absl::StrCat("row: ", status.message()));
    return absl::OkStatus();
  }
  const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  RETURN_IF_ERROR(RunSplit({part.begin(), middle}, batch, refuse, errors));
  return RunSplit({middle, part.end()}, batch, refuse, errors);
}

// Runs `batch` (indexes of requests -> status; it puts each request's answer away by itself) over
// all requests: in key order, no key twice in one batch; rows that somebody else had locked again
// alone with a bounded wait; a batch that fails for one row's sake in halves, until that row is
// alone. `why` answers the word a request got; `refuse` gives a request its word.
template <typename Batch, typename Why, typename Refuse>
absl::Status RunBatches(const std::vector<PeriodKey>& keys, Batch batch, Why why, Refuse refuse,
                        const BatchErrors& errors) {
  std::vector<size_t> left(keys.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  // In key order, so that everybody locks in one order.
  std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  while (!left.empty()) {
    std::vector<size_t> now, later;
    for (const size_t i : left) {
      const bool again = !now.empty() && keys[now.back()] == keys[i];
      (again ? later : now).push_back(i);
    }
    RETURN_IF_ERROR(RunSplit(now, batch, refuse, errors));
    for (const size_t i : now) {
      if (why(i) != kBusy) continue;
      const absl::Status alone = batch({i}, Locking::kWait);
      // Nobody else's answer is lost for a row that stays locked.
      if (!alone.ok() && (!errors.is_lock_wait(alone) || keys.size() == 1)) return alone;
    }
    left = std::move(later);
  }
  return absl::OkStatus();
}

}  // namespace matins

#endif  // MATINS_STORE_BATCHES_H_
