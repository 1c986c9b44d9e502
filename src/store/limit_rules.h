// Which limits hold for a run, and whether there is room below them: pure, the same in every store
// (I24). A run's slot is its running row itself, so that it is given back by whatever ends the run;
// the slot of one whose row was deleted or burnt while its lease lived is a row of job_slot, until
// its tree is dead or that lease has ended.
#ifndef MATINS_STORE_LIMIT_RULES_H_
#define MATINS_STORE_LIMIT_RULES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/limits.h"
#include "store/act_store.h"

namespace matins {

// What a run counts against.
struct LimitClaim {
  std::string tenant, key;  // empty: none
  bool backfill = false;
};

// The rules in force, as read from job_limit.
class LimitBook {
 public:
  LimitBook() = default;
  explicit LimitBook(std::vector<LimitRule> rules);

  bool empty() const { return rules_.empty(); }
  const std::vector<LimitRule>& rules() const { return rules_; }
  // The nearest rule: the whole name, else the longest "PREFIX*"; nullptr: none holds.
  const LimitRule* Find(LimitKind kind, absl::string_view name) const;
  // Back-fill runs at a time; nothing: no limit.
  std::optional<int64_t> MostBackfills() const;
  // The rules that a run with these claims has to keep, in the order in which their rows are
  // locked.
  std::vector<const LimitRule*> Concerning(const std::vector<LimitClaim>& claims) const;

 private:
  std::vector<LimitRule> rules_;  // sorted
};

// Slots that are taken, counted behind the locks of the rules.
struct LimitCounts {
  int64_t alive = 0;
  int64_t backfills = 0;
  std::map<std::string, int64_t> tenants, keys;

  void Add(const LimitClaim& claim, int64_t runs = 1);
};

struct Full {
  std::string blocker;    // for people: "limits.tenant payments 4"
  std::string waits_for;  // "tenant/payments", "key/NAME", "backfill_share", "global"
};
// The first limit that has no room for one more; nothing: it may run.
std::optional<Full> FirstFull(const LimitBook& book, const LimitCounts& counts,
                              const LimitClaim& claim);

// What a request comes to, from the rows as they stand.
struct LimitChange {
  std::vector<LimitRule> gone, put;  // removed, and then written anew; both empty: nothing changes
  std::string said;                  // kept for the request's source (LimitsSaidKey)
  std::string detail;                // for job_event: JSON
  bool any = false;                  // rules are left after it
  bool empty() const { return gone.empty() && put.empty(); }
};
absl::StatusOr<LimitChange> ChangeLimits(const std::vector<LimitRow>& rows,
                                         const std::optional<std::string>& said,
                                         const SetLimitsRequest& request);
// The name in matins_meta under which a file's last word is kept.
std::string LimitsSaidKey(absl::string_view source);
// The number in matins_meta ("limits") by which START sees a change: it rises, and is above 0 where
// there are rules.
int64_t NextLimitsNumber(int64_t last, bool any);

// `uses` as counted -> the view: uses of rules that nobody uses are there too.
LimitsView ViewOf(std::vector<LimitRow> rules, std::vector<LimitUse> uses);

}  // namespace matins

#endif  // MATINS_STORE_LIMIT_RULES_H_
