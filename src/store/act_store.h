// What people do to a store: definitions, acts, and what they read of it. Each act is recorded in
// job_event with who and why, in its own transaction. The rules of store.h hold here too.
#ifndef MATINS_STORE_ACT_STORE_H_
#define MATINS_STORE_ACT_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/job_state.h"
#include "job/limits.h"
#include "job/values.h"
#include "store/alert_rules.h"
#include "store/drill.h"

namespace matins {

struct Definition {
  Job job;
  std::string json;  // canonical (job/json.h); equal bytes are the same version
};

struct ApplyRequest {
  std::vector<Definition> jobs;
  std::string
      source;  // what the set is called, e.g. the file's name; jobs of other sources are left alone
  std::string digest;  // of the whole file; one that was superseded is refused without `force`
  bool force = false;
  bool prune = false;      // jobs of this source that are missing from it are deleted
  bool take_over = false;  // a job that another source has becomes this one's; else all is refused
  Act act;
};
struct ApplyAnswer {
  std::vector<std::string> added, changed, unchanged, pruned;
  std::vector<std::string> missing;  // would have been pruned
};

struct JobRow {
  std::string name;
  int version = 0;
  std::string definition;
  std::string source;
  absl::Time first_sight;
  absl::Time floor = absl::InfinitePast();
  absl::Time cursor = absl::InfinitePast();
  absl::Time next_look = absl::InfiniteFuture();
  std::optional<absl::Time> gap_from;
  std::optional<Suspension> suspension;
  int64_t revision = 0;
  absl::Time last_success = absl::InfinitePast();
  std::string last_result;  // status and reason of the newest attempt
  absl::Duration worst_duration = absl::ZeroDuration();
};

struct RunRow {  // an attempt: job_run, or one that is still running
  PeriodKey key;
  int generation = 1;
  int64_t fence = 0;
  int attempt = 0;
  std::string node;
  std::string status;  // RUNNING, DONE, FAILED, LOST, RETURNED, REPLACED, CANCELLED
  std::string reason, message, result;
  std::optional<int> exit_code, signal;
  absl::Time due, planned_at, dispatched_at, claimed_at, started_at, checkpointed_at,
      finished_at;  // InfinitePast: never
  bool backfill = false, manual = false;
  int64_t output_bytes = 0;
};

struct EventRow {
  int64_t id = 0;
  absl::Time at;
  std::string kind;  // applied, suspended, resumed, renamed, deleted, reopened, run, backfill,
                     // skip, cancel, clock, ...
  std::string job, period;
  int generation = 0;
  std::string who, why, detail;  // detail: JSON
};

struct NodeRow {
  std::string name;
  std::vector<std::string> labels;
  absl::Time started_at, seen_at;
  absl::Duration clock_offset;  // the node's wall clock less the store's
  bool left = false;
  int running = 0;
};

// A lock that is held: by a running attempt, or as what one left whose fence was burnt or whose row
// was deleted while it lived.
struct LockRow {
  std::string key;  // as it is kept, masked where the job says so; "period/JOB/PERIOD" where the
                    // period's own row is the lock
  PeriodKey run;
  int64_t fence = 0;
  std::string node;                           // empty: a leftover's
  absl::Time since = absl::InfinitePast();    // InfinitePast: a leftover's
  absl::Time until = absl::InfiniteFuture();  // the lease's end
  bool leftover = false;
  int64_t renewals = 0;  // heartbeats that extended this attempt's lease; of a leftover 0
};

struct RowFilter {
  std::string job;                         // empty: all
  std::optional<absl::CivilDay> from, to;  // biz_date, both included
  std::optional<std::string> period;
  std::optional<PeriodStatus> status;
  int limit = 1000;
  bool newest_first = false;
};

struct RunFilter {
  std::string job;
  std::optional<std::string> period;
  std::optional<int64_t> fence;
  int limit = 50;  // newest first
};

struct OutputRow {
  std::string head, tail;
  int64_t bytes = 0;
  bool running = false;
};

struct StoreStatus {
  std::string kind;  // "sqlite", "postgresql"
  std::string version;
  int schema = 0;
  absl::Time now;
  int64_t epoch = 0;
  bool frozen = false;
  std::string frozen_why;
  std::string journal;  // "runs" or "full"
  int64_t jobs = 0, planned = 0, running = 0, failed = 0, held = 0;
  std::vector<std::string> warnings;  // settings that weaken a promise
};

// ---- the audit's ----

// What the audit reads of definitions and locks, in one snapshot; rows and nodes it reads by the
// verbs that people have.
struct AuditFacts {
  absl::Time now;                                            // the store's
  int64_t last_event = 0;                                    // the newest; each act writes one
  std::map<std::string, std::vector<JobVersion>> versions;   // by job, ascending
  std::map<std::string, std::vector<Suspension>> suspended;  // ended ones too, ascending
  std::map<std::string, std::vector<SkipSpan>> spans;        // ascending
  // A lock of a run whose fence was burnt or whose row was deleted.
  struct Lock {
    std::string lock_key;
    PeriodKey key;
    int64_t fence = 0;
    absl::Time until = absl::InfinitePast();
  };
  std::vector<Lock> locks;
  // Generations with more than one accepted result (I1).
  struct Double {
    PeriodKey key;
    int generation = 1;
    int count = 0;
  };
  std::vector<Double> doubles;
};

// One audit: job_audit. `beat` and `due` are its identity: of any number of nodes one makes it.
struct AuditRow {
  int64_t id = 0;
  std::string beat;  // which of the auditors (audit/beats.h)
  absl::Time due;    // the beat's instant
  std::string by;    // "node:NAME" or a person
  absl::Time started_at = absl::InfinitePast();
  absl::Time finished_at = absl::InfinitePast();  // InfinitePast: it has not ended
  int64_t expected = 0, done = 0, findings = 0, alarms = 0;
  bool canary = false;  // a miss that was planted for this audit was found by it
  std::string detail;   // JSON
};

// Limits beside a job's own (I24).
struct SetLimitsRequest {
  std::vector<LimitRule> set;
  std::vector<LimitRule> clear;  // by kind and name
  // Not empty: `set` is all that this file says of limits. It takes effect where the file says
  // something else than when it was last applied; what a person has changed since stays otherwise.
  std::string source;
  Act act;
};
struct LimitRow {
  LimitRule rule;
  std::string source;  // the file, or empty: set by hand
  std::string by;
  absl::Time at;
};
struct LimitUse {
  LimitKind kind = LimitKind::kGlobal;
  std::string name;     // the tenant or key itself, never a pattern
  int64_t taken = 0;    // slots: runs, and `left`
  int64_t left = 0;     // of them, those of runs whose row was deleted or burnt while they lived
  int64_t waiting = 0;  // rows that START has put off for want of this
};
struct LimitsView {
  std::vector<LimitRow> rules;  // sorted by kind and name
  std::vector<LimitUse> uses;   // of what a rule speaks of or a run says; sorted
};

// ---- alerts ----

// What a node that sends alerts reads at each look, in one snapshot.
struct AlertFacts {
  absl::Time now;                            // the store's
  absl::Time looked = absl::InfinitePast();  // AlertChanges::looked as last written
  std::string frozen_why;                    // the clock stepped (I8); empty: it goes as it should
  std::vector<AlertTrouble> troubles;        // at or after AlertLook::since, ascending by kind
  std::vector<AuditRow> audits;              // ended since, by nodes; ascending by end
  std::vector<AlertMadeGood> made_good;      // of alerts that stand: their rows say so
  std::vector<AlertMessageDue> due;          // channels with messages to send, and since when
};

struct AlertClaim {
  std::string by;  // fresh for each claim
  std::string channel;
  int limit = 1000;
};
struct AlertClaimed {
  absl::Time now;
  std::vector<AlertRow> rows;  // the longest due first, as they are now: claimed for kAlertLease
};

// A back-fill that a person asked for: job_backfill. Its periods are the rows that name it; one
// that another act opens again belongs to it no more.
struct BackfillTerms {
  std::string job;
  absl::CivilDay from, to;  // biz_dates, both included
  std::string reprocess;    // "missing", "failed", "all"
  // At most so many of its periods run at a time, over all nodes, in place of the job's
  // backfill.max_parallel; unset: that.
  std::optional<int> max_parallel;
  std::string window;  // "19:00-07:00" of `zone` (job/local_window.h); empty: at any time
  std::string zone;
  // What comes after what is computed again is computed again too, of each job in order.
  bool cascade = false;
};

struct OpenBackfillRequest {
  BackfillTerms terms;
  PlanWrite write;                // of terms.job; its rows that are not SKIPPED belong to it
  std::vector<PeriodKey> reopen;  // of any jobs; final ones, as Reopen takes them
  Act act;
};

struct BackfillRow {
  int64_t id = 0;
  BackfillTerms terms;
  BackfillState state = BackfillState::kActive;
  Act act;  // who asked for it, and why
  absl::Time opened_at;
  Act changed;  // who paused, resumed or cancelled it last
  absl::Time changed_at = absl::InfinitePast();
  int64_t periods = 0;  // with which it was opened
  // Of those that are there and belong to it.
  int64_t planned = 0, running = 0, done = 0, failed = 0, skipped = 0;
  bool open() const { return planned + running + failed > 0; }
};

class ActStore {
 public:
  virtual ~ActStore() = default;

  virtual absl::StatusOr<ApplyAnswer> Apply(const ApplyRequest& request) = 0;
  virtual absl::Status Suspend(absl::string_view job, const Act& act) = 0;
  // Ends the suspension; planning then looks at what is owed. Skipping what was missed is a
  // PlanWrite of its own, in the same transaction where `skip` is given.
  virtual absl::Status Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                              const Act& act) = 0;
  virtual absl::Status Rename(absl::string_view from, absl::string_view to, const Act& act) = 0;
  // The definition goes; rows and runs stay as history. Refused while it runs, without `force`.
  virtual absl::Status Delete(absl::string_view job, bool force, const Act& act) = 0;
  // Opens a new generation of a final period (DONE with --again, SKIPPED, FAILED(held)): PLANNED,
  // checkpoint none, `params`. FailedPrecondition where it is RUNNING, naming the runner.
  virtual absl::Status Reopen(const PeriodKey& key, absl::string_view params, const Act& act) = 0;
  // Writes the plan, opens what is to be opened again, and from then on holds its periods to its
  // terms: all in one transaction, or nothing. Answers its id; 0: the job's revision had moved,
  // look again. FailedPrecondition as Reopen, for any of them. START keeps the terms behind the
  // back-fill's lock (store/backfill_rules.h).
  virtual absl::StatusOr<int64_t> OpenBackfill(const OpenBackfillRequest& request) = 0;
  // Pauses, resumes or cancels: what runs goes on; what waits is not started, is looked at again,
  // or becomes SKIPPED by a person. NotFound; FailedPrecondition where it is cancelled, has ended,
  // or is in that state already.
  virtual absl::Status SetBackfill(int64_t id, BackfillState state, const Act& act) = 0;
  // Newest first. `id` 0: all, `job` empty: of all jobs.
  virtual absl::StatusOr<std::vector<BackfillRow>> ReadBackfills(int64_t id,
                                                                 absl::string_view job) = 0;
  // PLANNED or FAILED (held too) becomes SKIPPED by a person. FailedPrecondition where it runs or
  // is DONE.
  virtual absl::Status Skip(absl::Span<const PeriodKey> keys, const Act& act) = 0;
  // Asks the owner to stop the run (seen by its next Extend). NotFound where no such run is alive.
  virtual absl::Status Cancel(int64_t fence, const Act& act) = 0;
  // Makes the job look at what it owes now: a person's trigger.
  virtual absl::Status TriggerNow(absl::string_view job, const Act& act) = 0;
  virtual absl::Status AcceptClock(const Act& act) = 0;
  // Raises the epoch in every later fence's high bits; answers the new one. After a failover or a
  // restore.
  virtual absl::StatusOr<int64_t> BumpEpoch(const Act& act) = 0;
  virtual absl::Status SetJournal(bool full) = 0;
  // Takes effect at once: every START that has not counted yet counts by the new limits; what runs
  // above a lowered one goes on. Answers whether anything changed. FailedPrecondition: a share of
  // back-fill would stand without a global limit.
  virtual absl::StatusOr<bool> SetLimits(const SetLimitsRequest& request) = 0;
  virtual absl::StatusOr<LimitsView> ReadLimits() = 0;

  virtual absl::StatusOr<std::vector<JobRow>> ReadJobs(absl::string_view name /* empty: all */) = 0;
  // At most `limit` of the jobs whose names come after `after`, in the order of their names' bytes:
  // for those who go through all jobs and keep little of each.
  virtual absl::StatusOr<std::vector<JobDefinition>> ReadDefinitionsAfter(absl::string_view after,
                                                                          int limit) = 0;
  virtual absl::StatusOr<std::vector<PeriodRow>> ReadRows(const RowFilter& filter) = 0;
  virtual absl::StatusOr<std::vector<SkipSpan>> ReadSpans(absl::string_view job) = 0;
  virtual absl::StatusOr<std::vector<RunRow>> ReadRuns(const RunFilter& filter) = 0;
  virtual absl::StatusOr<std::vector<EventRow>> ReadEvents(absl::string_view job, int limit) = 0;
  virtual absl::StatusOr<std::vector<NodeRow>> ReadNodes() = 0;
  // Leases that end in the future, sorted by key.
  virtual absl::StatusOr<std::vector<LockRow>> ReadLocks() = 0;
  virtual absl::StatusOr<OutputRow> ReadOutput(int64_t fence) = 0;
  virtual absl::StatusOr<StoreStatus> ReadStatus() = 0;

  virtual absl::StatusOr<AuditFacts> ReadAuditFacts(absl::string_view job /* empty: all */) = 0;
  // Takes the audit of a beat's instant for `by`, and answers its id; 0: another has it, or has
  // made it. One that began kAuditGone ago and has not ended is taken over. The lock on its row is
  // what decides, and whose it is is read back, not inferred from a count.
  virtual absl::StatusOr<int64_t> BeginAudit(absl::string_view beat, absl::Time due,
                                             absl::string_view by) = 0;
  // Writes what the audit `row.id` came to. NotFound where another has taken it over. Rows older
  // than kAuditKept go.
  virtual absl::Status EndAudit(const AuditRow& row) = 0;
  // Newest first by `due`; `beat` empty: of all.
  virtual absl::StatusOr<std::vector<AuditRow>> ReadAudits(absl::string_view beat, int limit) = 0;

  // Deletes the periods and keeps what they were, in one transaction; answers the drill's id.
  // NotFound: no such job. FailedPrecondition: another drill of the job is not over. Aborted: a
  // period is not what the request says.
  virtual absl::StatusOr<int64_t> BeginDrill(const BeginDrillRequest& request) = 0;
  // The owner's sign of life. FailedPrecondition where the lease has ended or the drill is over.
  virtual absl::Status ExtendDrill(int64_t id, absl::Duration lease) = 0;
  // FailedPrecondition: as MayEndDrill.
  virtual absl::StatusOr<EndDrillAnswer> EndDrill(const EndDrillRequest& request) = 0;
  // Newest first.
  virtual absl::StatusOr<std::vector<DrillRow>> ReadDrills(absl::string_view job /* empty: all */,
                                                           int limit) = 0;
  // Of all generations, by fence and name.
  virtual absl::StatusOr<std::vector<FigureRow>> ReadFigures(const PeriodKey& key) = 0;

  virtual absl::StatusOr<AlertFacts> ReadAlertFacts(const AlertLook& look) = 0;
  // All in one transaction, by the rules of alert_rules.h. Of two that raise the same one adds a
  // row.
  virtual absl::StatusOr<AlertCounts> PutAlerts(const AlertChanges& changes) = 0;
  // Takes what is due in a channel and not silenced, for kAlertLease: of any number of nodes one
  // has a message.
  virtual absl::StatusOr<AlertClaimed> ClaimAlerts(const AlertClaim& claim) = 0;
  // Answers for each whether it was still `by`'s.
  virtual absl::StatusOr<std::vector<bool>> EndAlerts(absl::string_view by,
                                                      absl::Span<const AlertSent> sent) = 0;
  // What stands first, then the newest.
  virtual absl::StatusOr<std::vector<AlertRow>> ReadAlerts(const AlertFilter& filter) = 0;
  // No more reminders of it, in any channel; that it is made good is told all the same. NotFound:
  // no such alert stands.
  virtual absl::Status AckAlert(int64_t id, const Act& act) = 0;
  // From now on, for `length`. NotFound where the job is none.
  virtual absl::StatusOr<int64_t> Silence(absl::string_view job /* empty: all */,
                                          absl::Duration length, const Act& act) = 0;
  virtual absl::Status Unsilence(int64_t id, const Act& act) = 0;
  virtual absl::StatusOr<std::vector<SilenceRow>> ReadSilences() = 0;  // newest first
  // An act of the system that changes no row: job_event has it, with `who` and `why`.
  virtual absl::Status Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                              absl::string_view detail) = 0;
};

}  // namespace matins

#endif  // MATINS_STORE_ACT_STORE_H_
