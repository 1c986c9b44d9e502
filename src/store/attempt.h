// How attempts are spoken for, and how they end: rules over a locked row and the clock that was
// read behind the lock. Pure.
#ifndef MATINS_STORE_ATTEMPT_H_
#define MATINS_STORE_ATTEMPT_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/act_store.h"
#include "store/rules.h"
#include "store/store.h"

namespace matins {

// A row of job_watermark with all that the ends of attempts need of it.
struct AttemptRow : PeriodRow {
  std::string lock_key, tenant, limit_key;
  int priority = 0;
  int64_t start_tag = 0;  // turns.h; 0: none
  absl::Time planned_at = absl::InfinitePast();
  absl::Time dispatched_at = absl::InfinitePast();
  absl::Time checkpointed_at = absl::InfinitePast();
  std::string cancel_why;
  bool cancel_asked = false;
};

// Whether `ticket` is the row's current one (I3).
bool OwnedBy(const PeriodRow& row, const Ticket& ticket);
// Whether DONE stands by this very attempt.
bool DoneBy(const PeriodRow& row, const Ticket& ticket);
// The word of Refusal; empty where `ticket` speaks for the row at `now` (I3, I4). `row` is nullptr
// where there is none.
enum class Asked { kExtend, kCheckpoint, kFinish };
std::string RefusalOf(const PeriodRow* row, const Ticket& ticket, absl::Time now, Asked asked);

// How an attempt leaves its owner.
struct Ending {
  Outcome outcome;
  std::string run_word;  // job_run.status
  const char* op = "";   // the journal's word
  bool loss = false;     // counts as a lost lease; uses up no retry
  bool burn = false;     // a new fence, so that whatever the old owner still sends is refused
  bool skip = false;     // SKIPPED (replaced) in place of what the outcome says
  absl::Time wait_until = absl::InfinitePast();  // nobody may claim before it (I7)
};
// As its node says.
Ending EndingOf(const Outcome& outcome);
// The store itself takes a live row back (a resolved no, a clock step): as a lost lease, and nobody
// may claim before its end. `rule`: nothing where the job is gone.
Ending TakenBack(const PeriodRow& row, const std::optional<LossRule>& rule, absl::Time now);
// A newer period takes its place (overlap: replace).
Ending ReplacedBy(absl::string_view period);

// What the row becomes.
struct AfterEnd {
  PeriodStatus status = PeriodStatus::kDone;
  bool held = false;
  std::string reason;
  absl::Time not_before;
  int attempts = 0, losses = 0;
  bool burn = false;
  bool final = true;  // it is not tried again by itself: finished_at is now
};
AfterEnd EndOf(const AttemptRow& row, const Ending& ending, absl::Time now);

// Since when the row is dead, so that anybody may take it back: the end of its lease; of a row that
// another program left RUNNING, without a lease, so long after it was seen as the job says. Nothing
// where no such instant can be told.
std::optional<absl::Time> DeadSince(const PeriodRow& row,
                                    const std::optional<absl::Duration>& stale_after);
// The condition under which a run was found stale, asked again behind the lock (I1, I2).
bool MayReap(const PeriodRow& row, const Ticket& ticket,
             const std::optional<absl::Duration>& stale_after, absl::Time now);
Ending ReapedBy(const ReapRequest& request);

// What a claim takes from its row as it is; the rest is the grant's.
Claim ClaimFrom(const PeriodRow& row);
// The attempt that is RUNNING in `row`, as lists of attempts show it.
RunRow RunOf(const AttemptRow& row);

// A started_at that lies within the attempt, or InfinitePast.
absl::Time StartedWithin(const AttemptRow& row, absl::Time started, absl::Time now);

// The answer to an unknown outcome, from the locked row and the attempt's own row in job_run (I9).
enum class ResolveVerdict {
  kYes,
  kNo,
  kComplete,  // yes, once the same conditional completion has been made now
  kBurn,      // no, once the fence has been burnt
};
ResolveVerdict JudgeResolve(const FinishRequest& request, const PeriodRow* row,
                            const std::optional<std::string>& run_status, absl::Time now);

}  // namespace matins

#endif  // MATINS_STORE_ATTEMPT_H_
