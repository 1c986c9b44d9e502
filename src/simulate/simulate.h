// What a set of jobs would have done between two instants: what runs, is late, skipped or made
// good, and where periods pile up. Planning is the one that ships (src/plan), START and all else
// the store in memory that predicts every store's answers (src/store/model): nothing is worked out
// a second time here but the passing of time. No process runs, and nothing is written anywhere.
#ifndef MATINS_SIMULATE_SIMULATE_H_
#define MATINS_SIMULATE_SIMULATE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "job/limits.h"
#include "job/values.h"

namespace matins {

// No node is alive from `from` to `to`; what runs then is lost.
struct Outage {
  absl::Time from, to;
};

struct SimulateRequest {
  std::vector<Job> jobs;
  std::vector<LimitRule> limits;
  absl::Time from, to;  // the jobs are first seen at `from`
  std::vector<Outage> outages;
  // How long a job's runs take, in turn; a job without: `otherwise`.
  std::map<std::string, std::vector<absl::Duration>> durations;
  absl::Duration otherwise = absl::Seconds(1);
  int slots = 64;  // runs at a time
};

struct SimulatedPeriod {
  PeriodKey key;
  absl::CivilDay biz_date;
  absl::Time due;
  absl::Time started = absl::InfinitePast();   // the last attempt's; InfinitePast: never
  absl::Time finished = absl::InfinitePast();  // DONE, FAILED or SKIPPED then
  PeriodStatus status = PeriodStatus::kPlanned;
  std::string reason;
  bool backfill = false;  // it was missed, and made good
  bool late = false;      // not DONE by its deadline (done_by)
  int attempts = 0, lost = 0;
};

// A stretch of more than 100 SKIPPED that has no periods of its own.
struct SimulatedSpan {
  std::string job, first_period, last_period, reason;
  absl::Time from, to;
  int64_t count = 0;
};

// Two or more due periods of a job waited all the while.
struct Pile {
  std::string job;
  absl::Time from, to;
  int most = 0;
};

struct SimulatedJob {
  std::string name;
  int64_t due = 0, done = 0, late = 0, backfilled = 0, failed = 0, lost = 0, open = 0;
  std::map<std::string, int64_t> skipped;              // by reason
  absl::Duration longest_wait = absl::ZeroDuration();  // from due to the first start
  std::string problem;                                 // why planning stopped: its calendar ended
};

struct SimulateReport {
  std::vector<SimulatedPeriod> periods;  // by due, then job
  std::vector<SimulatedSpan> spans;
  std::vector<SimulatedJob> jobs;  // by name
  std::vector<Pile> piles;         // by start
  int most_running = 0;
  absl::Time most_running_at = absl::InfinitePast();
};

// InvalidArgument: to is not after from, an outage lies outside or is upside down, a job cannot be
// resolved. Deterministic.
absl::StatusOr<SimulateReport> SimulateJobs(const SimulateRequest& request);

// The parts of a report that follow from its periods and spans: jobs, piles.
void SummariseSimulation(const std::map<std::string, ResolvedJob>& jobs, absl::Time end,
                         SimulateReport* report);

}  // namespace matins

#endif  // MATINS_SIMULATE_SIMULATE_H_
