// Small rules and lengths that are the same in every store.
#ifndef MATINS_STORE_RULES_H_
#define MATINS_STORE_RULES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/values.h"

namespace matins {

// The version of the schema that this program reads and writes.
inline constexpr int kSchemaVersion = 9;
// Of a server's call that changes definitions: a large table is indexed or made anew by it.
inline constexpr absl::Duration kDefinitionDeadline = absl::Hours(1);

// An audit that has not ended after so long is taken over by another node.
inline constexpr absl::Duration kAuditGone = absl::Minutes(10);
// How long the row of an audit is kept.
inline constexpr absl::Duration kAuditKept = absl::Hours(24 * 400);

// Where a change of the definition takes the cursor back to: the instant of the change itself is
// the new version's, and has not been looked at by it.
inline absl::Time JustBefore(absl::Time change) { return change - absl::Microseconds(1); }

// How long a held row waits for its node after not_before.
inline constexpr absl::Duration kHoldFor = absl::Seconds(2);
// A node without a Tick for so long counts as gone.
inline constexpr absl::Duration kNodeGone = absl::Seconds(30);
// Among so many that wait for a slot, the oldest first, one is looked for that can start: a slot
// that is freed wakes the oldest whose job is not suspended and has a living node with its labels.
// Where none of them can, the oldest all the same.
inline constexpr int kWakeLook = 200;
// A node that comes so much too late with its tick has stood still, or its store has.
inline constexpr absl::Duration kStoodStill = absl::Seconds(2);
inline constexpr char kStoodStillEvent[] = "stood_still";
std::string StoodStillDetail(absl::Duration length);  // {"ms":2500}
// The clock may step back so far without notice, and forward so far beyond what CLOCK_BOOTTIME
// explains (I8).
inline constexpr absl::Duration kStepBack = absl::Seconds(2);
inline constexpr absl::Duration kStepForward = absl::Hours(1);
// How long a node that cannot judge a jump forward, because it is new, waits for one that can.
inline constexpr absl::Duration kWitnessWait = absl::Seconds(10);
// A trigger by return of the store backs off from the first to the second, so that a crash loop is
// no retry storm; it starts afresh after an hour without one.
inline constexpr absl::Duration kReturnWaitMin = absl::Seconds(30);
inline constexpr absl::Duration kReturnWaitMax = absl::Minutes(10);
inline constexpr absl::Duration kReturnCalm = absl::Hours(1);
// The most that a checkpoint may carry.
inline constexpr size_t kCheckpointBytes = 64 * 1024;
// The epoch stands above this many bits of a fence.
inline constexpr int kEpochShift = 40;

// Whether a node that has the labels `have` may run what wants `wanted`: all of those are there.
bool HasLabels(const std::vector<std::string>& have, const std::vector<std::string>& wanted);

// Whether the clock has jumped forward, beyond its high-water mark, by more than a tick would pass
// over. Until a tick has said what it was, nodes treat the clock as frozen; people, who may come
// when no node has been alive for days, do not (I8).
bool IsUnjudged(absl::Time raw, absl::Time mark);

// What a new node's tick says of such a jump while another, that was there before it, may yet judge
// it.
std::string WaitsForWitness(absl::Time raw, absl::Time mark);

// job_run's status for an attempt that its node ended: "DONE", "RETRY", "FAILED", "CANCELLED" (by
// reason), "RETURNED", "LOST".
absl::string_view RunWord(const Outcome& outcome);

// Whether the outcome tells of a lost attempt, as a dead node's guard writes it: it counts among
// the period's losses.
bool IsLoss(const Outcome& outcome);

// The epoch after `stored`: never below the ten minutes that have gone since 1970, so that two
// restores of one copy, or two failovers that do not know of each other, give no epoch twice (I6).
// 23 bits hold it until 2129.
int64_t NextEpoch(int64_t stored, absl::Time now);

// The number that the fences of an epoch raised at `now` are above: the milliseconds since 2026.
// Two restores of one copy within the same ten minutes get the same epoch; this keeps their fences
// apart as long as fewer than a thousand are given in each second between them.
int64_t FirstNumber(absl::Time now);

// What a job's newest attempt came to, for people: "DONE", "FAILED(exit)".
std::string ResultText(absl::string_view run_word, absl::string_view reason);

// ["a","b"]: for the columns that hold labels.
std::string JsonArray(absl::Span<const std::string> words);

// A value inside a JSON object: quotes, backslashes and control characters escaped.
std::string JsonString(absl::string_view text);

// What becomes of a period whose attempt was taken from its owner by the store itself (a resolved
// no, a clock step): as plan's verdict on a lost lease, from the columns that Apply wrote.
struct LossRule {
  std::string recovery;  // "rerun", "resume", "hold"
  int max_lost = 5;
};
Outcome::Kind LossOf(const LossRule& rule, int losses_before, bool has_checkpoint);

// How long a settled row stays at least: the largest of the cap's periods, the source window and 90
// days; a century where there is no cap.
absl::Duration KeepFor(const Job& job);

}  // namespace matins

#endif  // MATINS_STORE_RULES_H_
