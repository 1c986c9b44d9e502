// What START asks of a period that belongs to a back-fill (OpenBackfill), from what was read behind
// the lock of the back-fill's row: pure, the same in every store. Whoever changes its state waits
// for the STARTs that have counted, and those that come later see the change.
#ifndef MATINS_STORE_BACKFILL_RULES_H_
#define MATINS_STORE_BACKFILL_RULES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/act_store.h"
#include "store/store.h"

namespace matins {

struct BackfillFacts {
  BackfillTerms terms;
  BackfillState state = BackfillState::kActive;
  std::string changed_by;
  // Its runs that are alive, and those that may live on though their row no longer says so.
  int64_t running = 0;
  std::string failed;  // one of its periods that has failed, "JOB PERIOD"; empty: none
  // Of each job the due instant of its oldest period that is neither DONE nor SKIPPED; where it
  // cascades.
  std::map<std::string, absl::Time> oldest;
};

struct BackfillStop {
  std::string blocker;                        // for people
  absl::Time look_at = absl::InfinitePast();  // InfinitePast: after the request's put_off
};

// What keeps `row` of back-fill `id` from starting now; nothing: it may, as far as this goes. It is
// paused or cancelled; it stopped at a failure; its window is shut; it goes in order, and an older
// period comes first; so many run already. With a window it cannot read nothing starts.
std::optional<BackfillStop> StopOf(int64_t id, const BackfillFacts& facts, const PeriodRow& row,
                                   absl::Time now);

// Refusals of SetBackfill: OK, or what stands in the way with its mend.
absl::Status NoBackfill(int64_t id);
absl::Status MaySetBackfill(const BackfillRow& row, BackfillState state);
// job_event's kind and detail of the acts.
absl::string_view BackfillEvent(BackfillState state);
std::string BackfillDetail(int64_t id, const BackfillTerms& terms, int64_t periods);
// What a period says that was cancelled with its back-fill.
std::string CancelledReason(int64_t id, const Act& act);
// How many periods it is opened with.
int64_t PeriodsOf(const OpenBackfillRequest& request);
// The keys that belong to it, in their order.
std::vector<PeriodKey> KeysOf(const OpenBackfillRequest& request);

}  // namespace matins

#endif  // MATINS_STORE_BACKFILL_RULES_H_
