#include "job/words.h"

namespace matins {

// Each table stands in the order of its enum; words_test holds the two together.
#define MATINS_WORDS(E, ...)                                     \
  template <>                                                    \
  absl::Span<const absl::string_view> Words<E>() {               \
    static constexpr absl::string_view kWords[] = {__VA_ARGS__}; \
    return kWords;                                               \
  }

MATINS_WORDS(PeriodStatus, "PLANNED", "RUNNING", "DONE", "FAILED", "SKIPPED")
MATINS_WORDS(BackfillState, "active", "paused", "cancelled")
MATINS_WORDS(Trigger, "fire", "return", "person")
MATINS_WORDS(Outcome::Kind, "done", "done_by_job", "retry", "failed", "held", "returned")
MATINS_WORDS(Misfire, "skip", "latest", "each")
MATINS_WORDS(Overlap, "forbid", "allow", "replace", "queue")
MATINS_WORDS(Recovery, "rerun", "resume", "hold")
MATINS_WORDS(CommitBy, "node", "job")
MATINS_WORDS(Order, "none", "strict")
MATINS_WORDS(LockScope, "job", "period", "key")
MATINS_WORDS(LockProvider, "store", "redis")
MATINS_WORDS(Mask, "none", "hash")
MATINS_WORDS(LimitKind, "global", "tenant", "key", "backfill_share")
MATINS_WORDS(OnLeaseLost, "refuse", "abort_process")
MATINS_WORDS(RunKind, "command", "shell", "handler", "exec")
MATINS_WORDS(PeriodKind, "fire", "hour", "day", "week", "month")
MATINS_WORDS(Dialect, "auto", "vixie5", "seconds6", "quartz", "oncalendar")
MATINS_WORDS(GapRule, "next", "skip", "shift")
MATINS_WORDS(OverlapRule, "first", "second", "both")

#undef MATINS_WORDS

}  // namespace matins
