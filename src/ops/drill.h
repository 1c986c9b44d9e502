// A drill: the newest DONE periods of a job are deleted, its next trigger fills them again, and
// what comes out is compared with what was there (docs/drill.md). Whether back-fill works is then
// known, not hoped.
#ifndef MATINS_OPS_DRILL_H_
#define MATINS_OPS_DRILL_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ops/exec.h"
#include "ops/session.h"

namespace matins {

struct DrillRequest {
  std::string job;
  int days = 3;  // periods, whatever their kind
  std::string reason;
  absl::Duration timeout = absl::Hours(1);
  // Fill them by this process, which is a node of the job alone meanwhile, beside any that serve.
  bool here = false;
  // What this process runs, of a job that calls of `matins exec` run: that job alone needs it.
  ExecProgram program;
  std::vector<std::string> labels;  // of this node
  std::string store_url;            // for its guards
};

using DrillFigures = std::vector<std::pair<std::string, double>>;

struct DrilledPeriod {
  std::string period;
  std::string status;  // as it stood when the drill looked last, "gone" where there is no row
  int64_t old_run = 0, run = 0;
  DrillFigures old_figures, figures;
  std::string evidence;  // what says that it did work: "result {...}", "checkpoint 42"
  std::string problem;   // empty: this one passed
};

struct DrillReport {
  int64_t id = 0;
  std::string job;
  bool passed = false;
  std::string problem;  // what ended it, beside the periods' own; empty: nothing
  std::vector<DrilledPeriod> periods;
  std::vector<std::string> put_back, running, left;  // EndDrillAnswer's
  absl::Duration took;
};
std::string DrillReportJson(const DrillReport& report);

// Passes only if each period is DONE again by an attempt that says what it did, and each figure of
// its check is what it was. What was not filled is put back, also where a signal ends the wait.
// FailedPrecondition, with nothing deleted: the job is not `misfire: each`, has no check, is
// suspended, has a FAILED period or fewer DONE ones with figures than are
// asked for; planning would not fill them all (cap, age, source window); no living node could run
// it and `here` is not set; it is run by calls of exec and `program` is empty, or the other way
// about; another drill of it is under way.
absl::StatusOr<DrillReport> Drill(Session& session, const DrillRequest& request, ExecHost& host);

// What drills that died have left undone, of `job` or (empty) of all.
struct RestoredDrill {
  DrillRow drill;
  EndDrillAnswer answer;
  // Its owner lives; nothing was changed.
  bool under_way = false;
};
absl::StatusOr<std::vector<RestoredDrill>> RestoreDrills(ActStore& acts, absl::string_view job,
                                                         const Act& act);
// Runs of the job whose lease has ended are taken back, as a node would do: where none is alive
// nobody else does, and what is RUNNING is not put back.
absl::Status ReapRunsOf(Session& session, absl::string_view job);
// "drill 7 of recon had died: 2026-11-27, 2026-11-28 put back".
std::string RestoredText(const RestoredDrill& restored);

}  // namespace matins

#endif  // MATINS_OPS_DRILL_H_
