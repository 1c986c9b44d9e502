// What a Scheduler is given and what it answers; scheduler.h says "start here".
#ifndef MATINS_TYPES_H_
#define MATINS_TYPES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {
// Only a name for the linker: these types and the engine's own never meet.
inline namespace api {

class TestClock;

// Something a scheduler says of itself, for a log. The names are those of ARCHITECTURE.md:
// "claimed", "finished", "lease_lost", "store_away", ...
struct SchedulerEvent {
  std::string name;
  bool alarm = false;  // a person should know at once
  std::string job;     // empty where it is about no period
  std::string period;
  int64_t fence = 0;
  std::string detail;
};

struct SchedulerOptions {
  // sqlite:PATH for one machine, or postgresql://user@host/database?schema=matins. Nodes with the
  // same store work together. The schema is made, or brought up to date, by Open. Empty is taken
  // with a TestClock alone: a SQLite file of its own, gone with the scheduler.
  std::string store;
  // Of this node. A job with `nodes: [x]` runs only where x is among them. A job with a handler
  // needs none: only nodes that were given its handler run it.
  std::vector<std::string> labels;
  // Runs of this node at a time; 1 or more. Handlers that end soon share a few threads; one that
  // waits has a thread to itself, so this is also the most threads. Where a `command` runs a
  // process, fewer are better.
  int slots = 2000;
  int global_limit = 0;  // runs in the whole store at a time; 0: none
  // When this node audits all jobs of the store, cron in UTC. Empty: "37 * * * *".
  std::string audit;
  // redis://HOST:6379, asked before the store's lock by jobs with `lock: { provider: redis }`.
  // Empty: the store's lock alone. Not with a TestClock.
  std::string redis;
  // Stands in every recorded act. Empty: "program:USER@HOST".
  std::string who;
  // Called from any thread, many at a time; quick, and never back into the scheduler.
  std::function<void(const SchedulerEvent&)> on_event;
  // The installed `matins`, an absolute path: with it, the lease of a `command` whose program died
  // is given back at once instead of when it ends.
  std::string matins_program;
  // For the sockets of `command` and `shell` runs; absolute, at most 48 bytes. Empty: below
  // $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, or the temporary folder.
  std::string runtime_folder;
  // For tests: time passes only by it, and work is done only by Scheduler::Step. Outlives the
  // scheduler. Needs a SQLite store, whose clock is the machine's.
  TestClock* clock = nullptr;
};

struct ApplyOptions {
  // What this set of jobs is called; jobs of other sets are left alone. Empty: "program" for a
  // text, "program/NAME" for a single job.
  std::string source;
  bool force = false;      // also a set that was superseded by a later one
  bool prune = false;      // jobs of this source that are missing from the set are deleted
  bool take_over = false;  // jobs of another source become this one's, instead of a refusal
};

struct Applied {
  std::vector<std::string> added, changed, unchanged, pruned;
  std::vector<std::string> missing;   // of this source, not in the set, and left alone
  std::vector<std::string> warnings;  // a line each: what, where, and the mend
};

// A run that a person or a program asks for, whatever the schedule says.
struct ByHand {
  std::string job;
  std::string date;  // a biz_date or a period's key; empty: the newest period that is due
  std::map<std::string, std::string> params;
  bool again = false;  // a DONE period is opened once more: a new generation
  std::string reason;  // required with `again`
};

// Where a period stands: its row in the store.
struct PeriodState {
  enum class Status { kPlanned, kRunning, kDone, kFailed, kSkipped };
  std::string job;
  std::string period;
  absl::CivilDay biz_date;
  Status status = Status::kPlanned;
  bool held = false;   // FAILED(held): final until a person acts
  std::string reason;  // why it was skipped, or how its last attempt ended; empty for DONE
  int generation = 1;
  int attempts = 0;        // used up at this trigger
  int64_t fence = 0;       // of its last attempt: the run's id; 0: never claimed
  int64_t checkpoint = 0;  // the last accepted of this generation; 0: none
  std::string node;        // its owner, or the last one
  absl::Time due;
  absl::Time finished_at = absl::InfinitePast();
  // DONE, SKIPPED, or FAILED with no attempt to come at this trigger.
  bool ended() const { return status != Status::kPlanned && status != Status::kRunning; }
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_TYPES_H_
