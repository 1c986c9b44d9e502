// Tenants are served in turn (I24): planning gives each row that waits a start tag, one after that
// of its tenant's last, and never before the row that is served next; START takes what is due in
// the order of the tags. So a tenant that comes stands at the head, and each of its further rows
// one turn behind, however long another's backlog is. Jobs without a tenant are one tenant more. A
// store in which no job has a tenant has no tags. Pure.
#ifndef MATINS_STORE_TURNS_H_
#define MATINS_STORE_TURNS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/fault.h"
#include "store/store.h"

namespace matins {

// Rows that are looked at by then count as waiting for their turn.
inline constexpr absl::Duration kTurnAhead = absl::Seconds(5);

// Whether a batch asks for tags in a store that has none yet.
inline bool NamesTenant(const PlanRequest& request) {
  return std::any_of(request.writes.begin(), request.writes.end(), [](const PlanWrite& write) {
    return std::any_of(write.intents.begin(), write.intents.end(),
                       [](const Intent& intent) { return !intent.tenant.empty(); });
  });
}

class Turns {
 public:
  Turns() = default;  // tags are not used
  // `next`: the least tag of those that wait; nothing: none does. `last`: the greatest of each
  // tenant's that wait.
  Turns(std::optional<int64_t> next, std::map<std::string, int64_t> last)
      : used_(!IsMutant(Mutant::kNoTurns)), next_(next.value_or(1)), last_(std::move(last)) {}

  // The tag of a further row of the tenant; 0 where tags are not used. A row that is there already
  // takes none.
  int64_t Take(const std::string& tenant) {
    if (!used_) return 0;
    last_[tenant] = Next(tenant);
    return last_[tenant];
  }
  // The one that would be taken.
  int64_t Next(const std::string& tenant) const {
    const auto last = last_.find(tenant);
    return used_ ? std::max(next_, last == last_.end() ? 0 : last->second + 1) : 0;
  }

 private:
  bool used_ = false;
  int64_t next_ = 1;
  std::map<std::string, int64_t> last_;
};

}  // namespace matins

#endif  // MATINS_STORE_TURNS_H_
