// What a tick decides of the store's clock and of the return of nodes: pure, from what was read
// behind the mark's lock (I8).
#ifndef MATINS_STORE_CLOCK_RULES_H_
#define MATINS_STORE_CLOCK_RULES_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "store/store.h"

namespace matins {

// The clock's mark as it stands in the store; InfinitePast: none yet.
struct ClockMark {
  absl::Time raw = absl::InfinitePast();  // what the machine's clock says now
  absl::Time hwm = absl::InfinitePast();  // the high-water mark
  absl::Time frozen_at = absl::InfinitePast(), last_raw = absl::InfinitePast();
  absl::Time return_last = absl::InfinitePast(), return_due = absl::InfinitePast();
  absl::Duration return_wait;
  std::string frozen_why;              // empty: not frozen
  std::optional<absl::Duration> boot;  // this node's CLOCK_BOOTTIME at its last tick, at `seen`
  absl::Time seen = absl::InfinitePast();
  bool witness = false;  // a node that has not left was there when the mark was set
};

struct ClockVerdict {
  enum class Kind {
    kForward,  // the mark becomes `raw`, where that is later
    kFreeze,   // a step: `why`; frozen_at and last_raw become `raw`
    kFrozen,   // goes on: last_raw becomes `raw`
    kRestart,  // stepped again while frozen: frozen_at becomes `raw` too, steady from anew
    kWait,     // nothing is written: a new node leaves a jump to one that was there before it
    kSettle,   // steady for long enough: burn what lives, and go on by the clock as it is
  };
  Kind kind = Kind::kForward;
  std::string why;
};
ClockVerdict JudgeClock(const ClockMark& mark, const TickRequest& request);

// The first node after a time without any makes jobs look at what they owe; one that comes too soon
// after the last is given when its pause, which grows, is over.
struct ReturnVerdict {
  bool returned = false;  // now: return_last becomes now, return_wait `wait`, none is due
  absl::Duration wait;
  std::optional<absl::Time> due;  // not yet: return_due becomes this
};
ReturnVerdict JudgeReturn(const ClockMark& mark, absl::Time now, bool nobody_was_here);

}  // namespace matins

#endif  // MATINS_STORE_CLOCK_RULES_H_
