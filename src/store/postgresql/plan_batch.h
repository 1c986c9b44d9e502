// Plans as statements: what Plan writes, and Resume in its own transaction.
#ifndef MATINS_STORE_POSTGRESQL_PLAN_BATCH_H_
#define MATINS_STORE_POSTGRESQL_PLAN_BATCH_H_

#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "store/postgresql/session.h"
#include "store/store.h"

namespace matins::postgresql {

// Locks the jobs whose revision is as expected, and reads which of the intents' rows exist, and the
// clock: three result sets, for PlanBatch.
std::vector<Statement> LockForPlan(const Session& session, const PlanRequest& request);

// What a request's accepted writes come to, as the parameters of a few statements. Of two writes
// for one job the first is accepted.
class PlanBatch {
 public:
  PlanBatch(const PlanRequest& request, const Rows& locked, const Rows& existing, absl::Time now);
  // Once. The first one's rows are those that were held at once.
  std::vector<Statement> Statements(const Session& session);
  std::vector<bool> written;  // of each of the request's writes

 private:
  void AddWrite(const PlanWrite& write);
  void AddIntent(const Intent& intent, absl::string_view node);

  JsonRows inserts_, jobs_, spans_, acts_, skipped_;
  std::vector<JsonRows> updates_;
  std::map<PeriodKey, size_t> rounds_;
  int hold_left_;
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_PLAN_BATCH_H_
