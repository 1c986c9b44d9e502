// A job in code: the same keys as in a job file (docs/jobs.md), by the same rules, with the same
// defaults. What is not set is not written.
#ifndef MATINS_JOB_H_
#define MATINS_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {
inline namespace api {

// The slice of business time that a run is for.
enum class PeriodKind { kFire, kHour, kDay, kWeek, kMonth };
// What becomes of periods that were due while nobody could run them. There is no default.
enum class Misfire { kSkip, kLatest, kEach };
// What a due period does while another of its job runs.
enum class Overlap { kForbid, kAllow, kReplace, kQueue };
// What a lost lease does to the period.
enum class Recovery { kRerun, kResume, kHold };
// Who writes DONE: the node, or the handler in its own transaction (RunContext::WriteDone).
enum class CommitBy { kNode, kJob };
// When a handler does not stop after its lease was lost: refuse all it writes, or end the process.
enum class OnLeaseLost { kRefuse, kAbortProcess };

struct Backfill {
  std::optional<absl::CivilDay> start;  // unset: nothing before the job was first seen
  std::optional<int> max_periods;       // the newest N owed stay; default 30
  std::optional<absl::Duration> max_age;
  std::optional<absl::Duration> source_window;  // how long the data can be had
  std::optional<int> max_parallel;              // default 1
  std::optional<bool> strict;  // N+1 never before N; default: yes under Misfire::kEach
};

struct Retry {
  int attempts = 1;  // at one trigger
  absl::Duration backoff_min = absl::Seconds(30);
  absl::Duration backoff_max = absl::Minutes(10);
};

struct Job {
  std::string name;      // required; up to 64 bytes
  std::string schedule;  // this or `at`: "0 1 * * *", "@daily", "@every 90s", "Mon..Fri 09:00"
  std::optional<absl::Time> at;         // once
  std::optional<std::string> timezone;  // IANA; default UTC, never the host's
  std::optional<PeriodKind> period;     // default kFire
  std::string biz_date;                 // "-1d", "-1h", "-1bd", ...; empty: the fire's own day
  std::optional<Misfire> misfire;       // required
  std::optional<Backfill> backfill;
  std::optional<Overlap> overlap;                // default kForbid
  std::optional<absl::Duration> start_deadline;  // on time until then; default 60 s
  std::optional<absl::Duration> lease;    // lock.ttl: how long a dead owner's period is kept for it
  std::optional<int> limit;               // limits.job: runs of this job at a time
  std::optional<absl::Duration> timeout;  // default 2 h
  std::optional<absl::Duration> grace;    // between being told to stop and being let go; 10 s
  std::optional<Retry> retry;             // default one attempt
  std::optional<Recovery> recovery;       // default kRerun
  std::optional<CommitBy> commit;         // default kNode
  std::optional<OnLeaseLost> on_lease_lost;  // default kRefuse
  std::vector<std::string> after;            // jobs that must be DONE for the same biz_date
  std::vector<std::string> nodes;            // labels that a node needs to run it
  // What to run, one of the three:
  std::string handler;               // a function given to Scheduler::AddHandler
  std::vector<std::string> command;  // a process: its words, which no shell sees
  std::string shell;                 // a line for /bin/sh
  // Any other key of a job file, its value as YAML in one line:
  //   job.more["dst"] = "{ gap: skip }";
  std::map<std::string, std::string> more;
};

// The job as the text of a job file, which Scheduler::Apply and `matins lint` read.
std::string ToYaml(const Job& job);

}  // namespace api
}  // namespace matins

#endif  // MATINS_JOB_H_
