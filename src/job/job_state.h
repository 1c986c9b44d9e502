// What planning reads of a job, and what it wants written: the two halves of one compare-and-set on
// the job's revision. Between them nothing is locked and plan is pure; of two planners of a job one
// wins.
#ifndef MATINS_JOB_JOB_STATE_H_
#define MATINS_JOB_JOB_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// A version of a definition; in force from `from` until the next version's.
struct JobVersion {
  int number = 0;
  absl::Time from;
  std::string definition;  // canonical JSON (job/json.h)
};

// A job's newest version.
struct JobDefinition {
  std::string job;
  int version = 0;
  std::string definition;
};

// The row that planning makes of an intent to insert one. Generation, instants of change and what a
// store keeps beside are the store's.
PeriodRow PlannedRow(const Intent& intent);

// What makes a job look at what it owes (docs/jobs.md, "States").
enum class Trigger { kFire, kReturn, kPerson };

// A stretch of due instants [from, to] that has no rows of its own: more than 100 SKIPPED in a row.
struct SkipSpan {
  absl::Time from;
  absl::Time to;
  std::string first_period;
  std::string last_period;
  int64_t count = 0;
  std::string reason;
  std::string by = "policy";
  bool operator==(const SkipSpan&) const = default;
};

struct Suspension {
  absl::Time from;
  absl::Time to = absl::InfiniteFuture();  // InfiniteFuture: still suspended
  std::string by;
  std::string why;
};

struct JobState {
  std::string job;
  int64_t revision = 0;  // rises with every accepted plan and act, and with a row deleted by hand
  // Ascending and without a hole: those in force at or after min(cursor, gap_from, now), and from
  // the oldest on that a row of `rows` is judged by (VersionsSince). The last is the current one.
  std::vector<JobVersion> versions;
  absl::Time
      first_sight;  // of the job's identity; before it nothing is owed without backfill.start
  absl::Time floor =
      absl::InfinitePast();  // due instants at or below it are settled, with or without rows
  // Each period due at or below it has a row or lies in a span; InfinitePast: never planned. A
  // change of the definition takes it back to just before its instant, and takes back what was
  // planned beyond: PLANNED rows due at or
  // after it that nobody claimed, manual ones aside, go with it.
  absl::Time cursor = absl::InfinitePast();
  // Where looking begins again though the cursor is beyond: the earliest due instant of a period
  // that was reopened by deletion above the floor and has no row since; or, where the clock has
  // been set back far behind the cursor, what planning has not looked at since.
  std::optional<absl::Time> gap_from;
  std::optional<Trigger> pending;  // a trigger other than a fire that waits to be planned
  bool suspended = false;
  // Every row that is not final, and every row due at or after gap_from where that is set; of a job
  // that was never planned every row (another program may have written them). Ascending by due.
  std::vector<PeriodRow> rows;
  std::vector<SkipSpan> spans;  // those that reach beyond min(cursor, gap_from, now)
};

// Of all versions, ascending, those in force at or after `since`, and from the oldest on that a row
// is to be judged by: one that is PLANNED or FAILED and not held. The servers ask the same in SQL.
std::vector<JobVersion> VersionsSince(std::vector<JobVersion> all, absl::Time since,
                                      const std::vector<PeriodRow>& rows);

// One job's plan, to be written only if `expected_revision` still stands.
struct PlanWrite {
  std::string job;
  int64_t expected_revision = 0;
  std::vector<Intent> intents;  // in due order
  std::vector<SkipSpan> spans;
  absl::Time cursor;         // never below the old one
  absl::Time next_look;      // when planning must look at the job again: just before the next fire
  bool gaps_filled = false;  // gap_from is settled by these intents, and becomes `next_gap`
  std::optional<absl::Time> next_gap;  // above what was looked at; unset: no gap is left
  bool triggered = false;              // a trigger was taken: its pending mark is cleared
  std::optional<Act> act;  // a person's act, recorded in job_event in the same transaction
  bool act_told = false;   // the verb that writes this records it, in words of its own
  std::string act_kind;    // what job_event calls it; empty: "run", "skip" or "backfill"
};

}  // namespace matins

#endif  // MATINS_JOB_JOB_STATE_H_
