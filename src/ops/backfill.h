// Back-fill: making good what is missing, computing again what was wrong, and what becomes of such
// an act while it goes on (docs/recovery.md).
#ifndef MATINS_OPS_BACKFILL_H_
#define MATINS_OPS_BACKFILL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ops/session.h"
#include "plan/plan.h"

namespace matins {

struct BackfillRequest {
  std::string job;
  absl::CivilDay from, to;  // biz_dates, both included
  Reprocess reprocess = Reprocess::kFailed;
  // And what comes after it: later DONE periods of the job up to the newest, and those of the jobs
  // that come `after` it from the same date on, are opened again, each job's in order.
  bool cascade = false;
  // So many of its periods at a time, over all nodes, in place of the job's backfill.max_parallel.
  std::optional<int> max_parallel;
  std::string window;  // "19:00-07:00": its periods start then only, in the job's zone
  bool dry_run = false;
  std::string reason;  // needed by kAll and by cascade
};
struct BackfillAnswer {
  int64_t id = 0;                  // 0: a dry run, or nothing was to be done
  std::vector<std::string> run;    // the job's periods that will run, oldest first
  std::vector<std::string> later;  // after `to`: of a cascade, among them
  std::vector<PeriodKey> cascade;  // of the jobs that come after it, in order
  // Of a cascade: started by somebody between its look and its opening, so that they still read
  // what is computed again. Those that were DONE by then are opened too; these run.
  std::vector<PeriodRow> stale;
  std::vector<std::string> reopen;  // the job's that are opened again, among them
  std::vector<std::string> left;    // left as they are
  // Past the source's window, so that no run could fill them: SKIPPED(unfillable).
  std::vector<std::string> unfillable;
  absl::Duration source_window;
  std::optional<int> at_a_time;             // nothing: as many as there is room for
  std::string why_at_a_time;                // what says so: "order: strict", "--max-parallel", ...
  absl::Time opens = absl::InfinitePast();  // the window, next; InfinitePast: there is none
};
// One transaction, or nothing. InvalidArgument: dates, window or number; a reason is missing.
// FailedPrecondition: of what a cascade would make stale some runs (it names the run).
absl::StatusOr<BackfillAnswer> BackfillJob(Session& session, const BackfillRequest& request);

// Those of `job` (empty: of all), newest first, with their progress.
absl::StatusOr<std::vector<BackfillRow>> Backfills(Session& session, absl::string_view job);
absl::StatusOr<BackfillRow> ReadBackfill(Session& session, int64_t id);
// "active", "stopped" (at a failure), "paused", "cancelled" or "ended".
std::string ProgressWord(const BackfillRow& row);
// The periods that belong to it, oldest first, its own job's before others'.
absl::StatusOr<std::vector<PeriodRow>> PeriodsOfBackfill(Session& session, const BackfillRow& row);

}  // namespace matins

#endif  // MATINS_OPS_BACKFILL_H_
