// What stood in a period's way while it waited, told from what the store has kept of that time:
// runs and their ends, suspensions, nodes, acts and limits.
#ifndef MATINS_OPS_WHY_THEN_H_
#define MATINS_OPS_WHY_THEN_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/limits.h"
#include "ops/session.h"

namespace matins {

// From the instant at which it might have started until it was claimed, settled, or asked about.
struct Wait {
  absl::Time from, to;
};

// A wait is told of from here on: below it nothing stood in the way but the turn of a lane.
inline constexpr absl::Duration kToldWait = absl::Seconds(2);

// The wait that is behind the row's newest generation; nothing: there was none to speak of, or not
// enough is kept. `runs`: of the period, newest first.
std::optional<Wait> WaitOf(const PeriodRow& row, absl::Span<const RunRow> runs, absl::Time now);

// What was true then, oldest first; empty: nothing that is kept.
absl::StatusOr<std::vector<std::string>> StoodInTheWay(Session& session, const Planned& planned,
                                                       const AuditFacts& facts,
                                                       absl::Span<const NodeRow> nodes,
                                                       const PeriodRow& row, const Wait& wait);

// The store's limits that concern a run of this job and have no room now, and whose runs have it.
absl::StatusOr<std::vector<std::string>> FullLimits(Session& session, const Job& job,
                                                    const PeriodRow& row);

// ---- pure parts ----

// The parts of `wait` in which none of `nodes` with these labels was alive.
std::vector<Wait> WithoutNode(absl::Span<const NodeRow> nodes,
                              const std::vector<std::string>& labels, const Wait& wait);

// A run with what it counts against.
struct CountedRun {
  RunRow run;
  std::string tenant, key;
};
// The rules that a run of `mine` has to keep and that had no room at some instant of the wait, in
// words: "limits.tenant payments 2 was full at ...: recon 2026-10-29 (run 5), ...".
std::vector<std::string> FullThen(absl::Span<const LimitRow> rules, const CountedRun& mine,
                                  absl::Span<const CountedRun> runs, const Wait& wait);

}  // namespace matins

#endif  // MATINS_OPS_WHY_THEN_H_
