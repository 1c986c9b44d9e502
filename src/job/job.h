// A job: the named definition of what runs, when, for which slice of business time, and what
// happens when it could not (docs/jobs.md). Plain values; ParseJobFile (job/parse.h) is what makes
// valid ones.
#ifndef MATINS_JOB_JOB_H_
#define MATINS_JOB_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "schedule/calendar.h"
#include "schedule/period.h"
#include "schedule/schedule.h"

namespace matins {

// What becomes of periods that were due while nobody could run them (I14). There is no default.
enum class Misfire { kSkip, kLatest, kEach };
// What a due period does while another of its job runs.
enum class Overlap { kForbid, kAllow, kReplace, kQueue };
// What a lost lease does to the period.
enum class Recovery { kRerun, kResume, kHold };
// Who writes DONE: the node after the run ended well, or the job itself in its own transaction
// (docs/fencing.md).
enum class CommitBy { kNode, kJob };
// kStrict: N+1 never starts before N is DONE or SKIPPED (I16).
enum class Order { kNone, kStrict };
enum class LockScope { kJob, kPeriod, kKey };
// Who is asked first whether the lock is free. The store holds it either way, and gives the fence;
// Redis is a quick door before it (docs/locks.md, I22).
enum class LockProvider { kStore, kRedis };
// How the expanded keys of locks are kept and shown.
enum class Mask { kNone, kHash };
// What an in-process handler's node does when the lease is lost: refuse its result, or end the
// process.
enum class OnLeaseLost { kRefuse, kAbortProcess };

struct Backfill {
  // Periods whose biz_date is before this day are not owed; unset: those due before first sight.
  std::optional<absl::CivilDay> start;
  std::optional<int> max_periods =
      30;  // the newest N owed stay; nothing: all ("unlimited" in a file)
  absl::Duration max_age = absl::InfiniteDuration();
  absl::Duration source_window = absl::InfiniteDuration();
  std::optional<int> max_parallel = 1;  // back-fill runs of the job at a time; nothing: unlimited
  Order order = Order::kNone;           // the parser's default: strict under each
  bool operator==(const Backfill&) const = default;
};

struct LockSpec {
  LockScope scope = LockScope::kJob;
  std::string key;  // kKey: the template, e.g. "settle-{{biz_date}}"
  absl::Duration ttl = absl::Seconds(30);
  LockProvider provider = LockProvider::kStore;
  bool operator==(const LockSpec&) const = default;
};

struct Retry {
  int attempts = 1;  // tries at one trigger
  absl::Duration backoff_min = absl::Seconds(30);
  absl::Duration backoff_max = absl::Minutes(10);
  bool operator==(const Retry&) const = default;
};

// A job's deadline for the audit: the next such local time of day after due, or a length after due.
struct DoneBy {
  std::optional<absl::Duration> time_of_day;  // since local midnight
  std::optional<absl::Duration> after_due;
  bool operator==(const DoneBy&) const = default;
};

struct EnvValue {
  std::string text;  // or, where `file` is set, read from that file when the run starts
  std::string file;
  bool operator==(const EnvValue&) const = default;
};

// kExec: what a call of `matins exec` is given, by that call alone (docs/exec.md); no node runs it.
enum class RunKind { kCommand, kShell, kHandler, kExec };
struct RunSpec {
  RunKind kind = RunKind::kHandler;
  std::vector<std::string> command;  // kCommand: argv, with {{templates}}
  std::string shell;    // kShell: given to /bin/sh -c; values come by the environment alone
  std::string handler;  // kHandler: the registered name
  bool operator==(const RunSpec&) const = default;
};

struct After {
  std::string job;  // waits for the same biz_date of this job to be DONE
  bool operator==(const After&) const = default;
};

// A calendar as a version of a job carries it, so that each node judges by the same days whatever
// files it has.
struct CalendarData {
  std::string days;  // Calendar::Parse's list form, canonical: equal days, equal bytes
  std::optional<absl::CivilDay> until;
  bool operator==(const CalendarData&) const = default;
};

struct Job {
  std::string name;  // 1 to 64 bytes, compared as bytes
  std::string tenant;
  // Exactly one of `schedule` and `at`.
  std::string schedule;          // as written
  std::optional<absl::Time> at;  // a one-off
  Dialect dialect = Dialect::kAuto;
  std::string timezone = "UTC";  // IANA
  DstRule dst;
  PeriodKind period = PeriodKind::kFire;
  BizShift biz_date;
  std::string calendar;        // a name; empty: none
  CalendarData calendar_data;  // of `calendar`; empty where that is
  Misfire misfire = Misfire::kSkip;
  Backfill backfill;
  Overlap overlap = Overlap::kForbid;
  absl::Duration start_deadline = absl::Seconds(60);
  DoneBy done_by;
  std::string audit = "0 9 * * *";  // when the audit looks at the job, in its zone
  // The channels that are told of it (job/alerts.h); nothing: those that the file has for all.
  std::optional<std::vector<std::string>> alerts;
  LockSpec lock;
  Mask mask = Mask::kNone;
  std::optional<int> limit;  // runs of this job at a time; nothing: no limit
  std::string limit_key;     // its runs count against this key (a template); empty: against none
  absl::Duration timeout = absl::Hours(2);
  absl::Duration grace = absl::Seconds(10);
  Retry retry;
  Recovery recovery = Recovery::kRerun;
  int max_lost = 5;
  absl::Duration stale_after = absl::Hours(2);
  CommitBy commit = CommitBy::kNode;
  OnLeaseLost on_lease_lost = OnLeaseLost::kRefuse;
  std::vector<After> after;
  absl::Duration spread = absl::ZeroDuration();
  std::vector<std::string> nodes;  // labels; a node needs all of them
  int priority = 0;                // greater runs first among what is due
  std::map<std::string, EnvValue> env;
  std::string dir;
  std::string user;
  std::optional<int> umask;
  int64_t output_keep_bytes = 256 * 1024;
  int history_succeeded = 3;
  int history_failed = 5;
  bool suspend = false;  // K8s' word in a file: applied as a suspension with its own reason
  RunSpec run;
  std::optional<RunSpec> check;
  bool operator==(const Job&) const = default;
};

// A job and what its words mean: the parsed schedule, zone and calendar. Built once a version, then
// pure.
struct ResolvedJob {
  Job job;
  Schedule schedule;
  PeriodRule period_rule;
  std::optional<Calendar> calendar;  // days left out and put in
};

}  // namespace matins

#endif  // MATINS_JOB_JOB_H_
