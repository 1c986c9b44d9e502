// The questions before going live, answered by experiment and measurement (docs/preflight.md). What
// was not measured is never a pass.
#ifndef MATINS_OPS_PREFLIGHT_H_
#define MATINS_OPS_PREFLIGHT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "ops/session.h"
#include "store/act_store.h"

namespace matins {

enum class PreflightLevel { kPass, kWarn, kFail };
absl::string_view PreflightWord(PreflightLevel level);  // "pass", "warn", "fail"

struct PreflightCheck {
  std::string job;  // empty: of the store and its nodes
  std::string question;
  PreflightLevel level = PreflightLevel::kWarn;
  std::string measured;  // the figure itself, or what is not known
  std::string mend;      // empty where it passed
};

struct PreflightReport {
  std::vector<PreflightCheck> checks;
  int passed = 0, warned = 0, failed = 0;
};

struct PreflightRequest {
  std::string job;  // empty: all
  std::string store_url;
  std::string redis_url;  // empty: none is configured
};

// Takes and gives back a lock of its own (`matins-preflight`); writes nothing else.
// NotFound: no such job.
absl::StatusOr<PreflightReport> Preflight(Session& session, const PreflightRequest& request);

// ---- the parts, for preflight.cc and its test ----

// The longest that a node, or its store, stood still (TickRequest::stood_still).
struct StoodStill {
  absl::Duration length;
  absl::Time at;     // when it was told
  std::string node;  // "node:db1/1f0c22ab"
};

// What is known of a job; pure questions are asked of it.
struct JobFacts {
  JobRow row;
  std::optional<ResolvedJob> job;   // set
  absl::Time version_from;          // of the current version; InfinitePast: the first
  std::vector<RunRow> runs;         // newest first
  std::vector<DrillRow> drills;     // newest first
  std::vector<AuditRow> audits;     // newest first, of all beats
  std::optional<StoodStill> still;  // of any node; nothing: none is known
  absl::Time now;
};
std::vector<PreflightCheck> CheckJob(const JobFacts& facts);
// Of events, newest first; those before `since` say nothing any more.
std::optional<StoodStill> LongestStoodStill(const std::vector<EventRow>& events, absl::Time since);

// Question one, by experiment: two holders with two values; what the other one holds is neither
// taken nor released by who does not hold it, and fences rise. `provider`: "store" or "redis".
PreflightCheck CheckLock(const PreflightRequest& request, absl::string_view provider);

// Who starts the jobs: with kExec, calls of `matins exec` alone (docs/exec.md), and no node is
// needed; who audits then is a call of `matins audit`.
enum class StartedBy { kNodes, kExec };
inline constexpr char kAuditByCron[] =
    "a crontab line of its own, on another host: 0 9 * * * matins audit";
std::vector<PreflightCheck> CheckNodes(const std::vector<NodeRow>& nodes, const StoreStatus& status,
                                       StartedBy started_by);
PreflightCheck CheckAudits(const std::vector<AuditRow>& audits, absl::Time now,
                           StartedBy started_by);

}  // namespace matins

#endif  // MATINS_OPS_PREFLIGHT_H_
