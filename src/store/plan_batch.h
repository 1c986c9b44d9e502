// What a planning request's accepted writes come to, as the parameters of a few statements: Plan
// writes them, and Resume in its own transaction. Pure.
#ifndef MATINS_STORE_PLAN_BATCH_H_
#define MATINS_STORE_PLAN_BATCH_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "store/json_rows.h"
#include "store/store.h"
#include "store/turns.h"

namespace matins {

// What a store reads behind planning's locks.
struct PlanFacts {
  // Jobs whose revision is the expected one and that are locked -> whether this node may hold their
  // rows (it has the labels, and they are not suspended).
  std::map<std::string, bool> usable;
  std::map<std::string, absl::Time> floors;  // of those that have one
  std::set<PeriodKey> there;                 // those of the intents' rows that exist
  Turns turns;
  absl::Time now;
};

// Of two writes for one job the first is accepted; none that wants a row at or below the floor
// without saying that it reopens the period.
class PlanBatch {
 public:
  PlanBatch(const PlanRequest& request, PlanFacts facts, JsonForm form);

  std::vector<bool> written;    // of each of the request's writes
  std::vector<PeriodKey> held;  // by the node at once

  // Periods to be recorded as reopened before `inserts`, each in the generation after the last that
  // is known of it: job, period, who, why.
  JsonRows reopens;
  JsonRows inserts;               // new rows
  std::vector<JsonRows> updates;  // existing rows, a statement each: intents take effect in order
  JsonRows jobs, spans, acts;
  JsonRows skipped;  // keys of rows that become SKIPPED: others may have waited for them

 private:
  void AddWrite(const PlanWrite& write);
  // `there`: the row is in the store already, and stays as it is.
  void AddIntent(const Intent& intent, absl::string_view node, bool there, Turns& turns);

  const JsonForm form_;
  std::map<PeriodKey, size_t> rounds_;
};

}  // namespace matins

#endif  // MATINS_STORE_PLAN_BATCH_H_
