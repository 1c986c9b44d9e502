// The store: where everything that Matins promises is written down. Set-based verbs, each one
// transaction (or a few short ones), each under the caller's deadline; no connection or transaction
// stays open while work runs.
//
// Rules that hold for every verb here and in act_store.h:
//  - Lock first, clock second. A verb that decides about a lease locks the rows, then reads the
//  store's clock itself
//    (`matins_now()`); none takes a time from outside (I4, I23).
//  - A verb's answer has one entry an argument, in the arguments' order. An entry that is refused
//  changes nothing.
//  - Rows are taken in key order. Extend, Finish and Reap skip locked rows and try those again
//  alone, so that one locked
//    row does not cost the others their lease. A batch that fails for one row's sake is split until
//    that row is alone.
//  - Errors: Unavailable: nothing took effect, may be sent again. InDoubt (base/status.h): may have
//  taken effect, or may
//    still; ask Resolve. DeadlineExceeded is never returned for a call that may have taken effect:
//    that is InDoubt. FailedPrecondition: the schema is missing, newer than this program, or the
//    store breaks a promise. Internal: a bug.
//  - Every accepted change bumps the row's `ver`, sets `op` and `op_at`, and with `journal: full`
//  writes its job_journal
//    row in the same transaction (J).
//
// Implementations: sqlite/, postgresql/, and model/ (in memory, for prediction in tests alone). All
// answer the same (tests/conformance). A Store may be used from one thread at a time; each lane
// opens its own (Database::Open).
#ifndef MATINS_STORE_STORE_H_
#define MATINS_STORE_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job_state.h"
#include "job/values.h"

namespace matins {

// A node's incarnation: a new one at each start of the process.
struct NodeId {
  std::string name;  // unique a process start: "host/5f2c..."
  std::vector<std::string> labels;
};

// ---- planning ----

struct ReadDueRequest {
  absl::Duration ahead = absl::Seconds(5);  // jobs whose next look is due by now + ahead
  // Of more that are due than this, half are those that have been due for longest and half those
  // that came due last: what comes due during a long backlog does not wait for its end.
  int limit = 500;
  std::vector<std::string> jobs;  // not empty: these, due or not
  bool by_node = false;  // to a node a jump forward that no tick has judged yet is frozen too (I8)
};

struct DueJobs {
  absl::Time now;       // the store's, read once; planning's only time
  bool frozen = false;  // the clock stepped: plan and reap nothing (I8)
  std::vector<JobState> jobs;
  absl::Time next_look = absl::InfiniteFuture();  // the earliest of the jobs not answered
};

// What a job means now, without what planning needs besides.
struct PlanRequest {
  std::vector<PlanWrite> writes;
  // Rows inserted PLANNED that may start by now + hold_ahead are held by this node (dispatched), at
  // most `hold_at_most`, where the node has the job's labels; empty name: none.
  NodeId hold_by;
  absl::Duration hold_ahead = absl::Seconds(5);
  int hold_at_most = 0;
};

struct HeldRow {
  PeriodKey key;
  absl::Time not_before;  // START at this instant of the store's clock, not earlier
  int priority = 0;
};

struct PlanAnswer {
  bool written =
      false;  // false: the revision had moved, or another planner has the job; look again
  std::vector<HeldRow> held;
};

struct PlanAnswers {
  absl::Time now;
  std::vector<PlanAnswer> jobs;
};

// ---- holding and starting ----

struct HoldRequest {
  NodeId node;
  // Rows that may start by now + ahead. None that was put off before it is looked at again.
  absl::Duration ahead = absl::Seconds(5);
  int limit = 100;  // no more than the node's free slots
  bool due = true;  // also those that are due already; without, START is to take them (also_due)
};

struct HoldAnswer {
  absl::Time now;
  std::vector<HeldRow> rows;                       // held until not_before + 2 s (`held_until`)
  absl::Time next_start = absl::InfiniteFuture();  // the earliest look beyond `ahead`
  absl::Time next_look = absl::InfiniteFuture();   // the earliest within it at what was put off
  bool due = false;  // something is due that this node could run and nobody holds
};

struct StartRequest {
  NodeId node;
  int64_t nonce = 0;  // fresh at random for each call; stands beside each fence of this call
  std::vector<PeriodKey> keys;  // held by this node, or free: any PLANNED row may be named
  int also_due = 0;             // and up to so many more rows that are due and held by nobody
  int global_limit = 0;         // runs alive in the store at a time; 0: none
  // Grants nothing after this instant of the store's clock (kGap): the node's planning has looked
  // at what is owed shortly before it, and what fell due since may leave no room for an older
  // period (I14, I17).
  absl::Time not_after = absl::InfiniteFuture();
  // But to a job whose own next look became due less than this ago, or is yet to become due:
  // planning looks so far ahead, and knows of all that is due of that job by now. Nothing: to none.
  std::optional<absl::Duration> looks_ahead;
  absl::Duration put_off = absl::Seconds(
      5);  // refused rows are looked at again after this, or when something frees them
};

enum class StartResult {
  kStarted,
  kTaken,   // running, final, held by another, or no longer there
  kNotDue,  // by the store's clock (I15)
  kMissed,  // past its start deadline and not tried yet: plan the job again, to have it judged
  kSuspended,
  kBlocked,   // an older period is neither DONE nor SKIPPED (I16)
  kGap,       // an older period's row was deleted, or planning is behind: plan the job again
  kAfter,     // a job named in `after` is not DONE for this biz_date
  kBusy,      // its lock is held (job_lock, or a running row with the same lock key)
  kFull,      // job limit, max_parallel or global limit
  kOldLease,  // the lease of a run that was burnt or whose row was deleted still lives (I7)
  kLabels,    // this node lacks a label
  kFrozen,    // the clock stepped (I8)
  kBackfill,  // its back-fill is paused, shut, stopped at a failure, or has no room
};

struct StartAnswer {
  StartResult result = StartResult::kTaken;
  PeriodKey key;
  std::optional<Claim> claim;  // kStarted
  std::string blocker;         // for people: the period, lock or limit in the way
};

struct StartAnswers {
  absl::Time now;
  bool more = false;              // more rows may be due than `also_due` took; ask again at once
  std::vector<StartAnswer> rows;  // those of `keys` in order, then those of `also_due`
};

// ---- while it runs ----

struct Refusal {
  // Empty: accepted. "fence": not the current fence and nonce, or not running. "lease": the lease
  // had ended. "deadline": run_until has passed. "checkpoint": not greater than the last. "gone":
  // the row was deleted. "no_commit": kDoneByJob, but the job has not written DONE. "done": a beat
  // or checkpoint after the job itself wrote DONE under this very fence: nothing is left to own,
  // and nothing is wrong. "busy": another transaction has the row locked for longer than the call
  // may wait; the lease stands as it stood, ask again. "row: ...": the database will not take this
  // row, and says why; asking again gives the same.
  std::string why;
  bool accepted() const { return why.empty(); }
  // Says nothing about the lease: another transaction has the row; ask again.
  bool busy() const { return why == "busy"; }
};

struct ExtendRequest {
  Ticket ticket;
  absl::Duration ttl;
};
struct ExtendAnswer {
  Refusal refusal;
  absl::Time now;
  absl::Time lease_until;     // never earlier than before, never past run_until (I5)
  bool cancel_asked = false;  // a person asked to cancel the run
  std::string cancel_why;
};

struct CheckpointRequest {
  Ticket ticket;
  int64_t number = 0;  // > 0 and greater than the last accepted of this generation (I10)
  std::string data;    // up to 64 KiB
};

struct FinishRequest {
  Ticket ticket;
  Outcome outcome;
  std::string node;
};

// The answer to an unknown outcome: locks the row. kDone where DONE stands by this fence and nonce;
// where the lease lives the same conditional completion is made now; otherwise a *no*, which burns
// the fence so that a late COMMIT must fail (I9).
struct ResolveAnswer {
  enum class Kind { kCommitted, kNotCommitted };
  Kind kind = Kind::kNotCommitted;
};

// ---- when it is lost ----

struct StaleRun {
  PeriodRow row;
  absl::Duration stale_for;
  bool without_lease = false;  // RUNNING as other programs write it, past the job's stale_after
};

struct ReapRequest {
  Ticket ticket;  // of the dead owner; its condition is repeated in the UPDATE
  Outcome::Kind to = Outcome::Kind::kReturned;  // kReturned (PLANNED), kHeld or kFailed
  std::string reason;                           // lost, held, stale
  std::string node;                             // who reaps
};

// ---- clock and nodes ----

struct TickRequest {
  NodeId node;
  absl::Duration boot;                    // the node's CLOCK_BOOTTIME now
  absl::Duration asking;                  // by that clock, since its first tick that was answered
  absl::Time wall;                        // shown as offset, decides nothing (I23)
  int64_t clock_settle_us = 300'000'000;  // 5 min
  std::string planner;                    // what the node plans with: its program and zone data
  absl::Duration idle_ahead = absl::Seconds(10);  // how far ahead nothing is to come for `idle`
  // The node had come to rest and works again: those who wait in AwaitChange are told, as they are
  // of an act.
  bool stirs = false;
  // By how much a tick came later than it was meant to, at worst since that was last told: the node
  // stood still, or the store did not answer. From kStoodStill on it is kept, as an act of the
  // node's (`stood_still` in job_event), which says what leases have to bear.
  absl::Duration stood_still;
};

struct TickAnswer {
  absl::Time now;
  bool frozen = false;
  std::string frozen_why;  // "the store's clock went back by 3.2 s at ..."
  // This tick found no other node alive since the last, and set a trigger by return for each job to
  // which that says anything: it has a FAILED period that is not held. Where `planner` is not that
  // of the last return, or the clock has been settled since, for every job: what another program,
  // other zone data or another clock made of their next looks may be wrong.
  bool returned = false;
  int64_t epoch = 0;
  int live_nodes = 0;
  // Nothing runs, in the whole store, and neither a job nor a row that waits is to be looked at by
  // now + idle_ahead. Whatever nodes ask for when they poll would be answered by nothing. False
  // where this tick has set triggers, or has settled the clock.
  bool idle = false;
  // The store's schema. Newer than kSchemaVersion (rules.h): a newer program has migrated it, by
  // whose rules this one knows nothing; then no verb plans, holds, starts or reaps for nodes any
  // more, as if the clock were frozen. What runs is extended and finished as before.
  int schema = 0;
};

// What AwaitChange has to say.
enum class Heard {
  kNothing,  // nothing was told, and what is told next will be heard
  kWritten,  // the store was written to, by anybody and for whatever reason: a node's tick too
  kTold,     // somebody has told those who wait of something to do
  kDeaf,     // changes may be missed: polling alone finds them
};

class Store {
 public:
  virtual ~Store() = default;

  // Connects ahead of the first verb, where connecting takes long. What stands in the way is said
  // by that verb.
  virtual void Prepare() {}
  // Jobs that planning must look at, and all that it needs to know of them.
  virtual absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) = 0;
  // Those of `jobs` that are there and not deleted, in any order.
  virtual absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) = 0;
  // Writes plans; one job's plan is all or nothing. Rows that exist already are left as they are
  // (I0).
  virtual absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) = 0;
  virtual absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) = 0;
  virtual absl::StatusOr<StartAnswers> Start(const StartRequest& request) = 0;
  // overlap: replace. For each waiting period: burns the fence of its job's running one, which
  // becomes SKIPPED(replaced), and leaves its lock until lease end + grace, or until ReportDead.
  // Answers the tickets that were burnt.
  virtual absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) = 0;
  virtual absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) = 0;
  virtual absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) = 0;
  // The attempt's end, its job_run row, output and figures, in one transaction. Wakes what waited
  // for it.
  virtual absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) = 0;
  virtual absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) = 0;
  virtual absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) = 0;
  // Answers whether each was taken. A lost attempt gets its job_run row; the period's losses rise
  // by one.
  virtual absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) = 0;
  // The whole tree of an attempt whose lease was burnt is dead: its leftover lock goes.
  virtual absl::Status ReportDead(absl::Span<const Ticket> tickets) = 0;
  // Rows that this node holds and will not start.
  virtual absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) = 0;
  // The node's sign of life; advances the clock's high-water mark, notices steps, and settles or
  // freezes (I8). A jump forward of more than an hour is judged by a node that ticked before it;
  // one that has not, while another that has not left was there at the mark, leaves mark and clock
  // alone and answers frozen, until that one has judged or kWitnessWait has passed. Says too
  // whether all is idle, so that a node may rest (engine/node.h).
  virtual absl::StatusOr<TickAnswer> Tick(const TickRequest& request) = 0;
  // The node has stopped in order.
  virtual absl::Status Leave(const NodeId& node) = 0;
  // Moves floors, drops history beyond `history:`, rows and spans below the floor, and settled
  // rows' checkpoints, at most about `limit` rows of a kind a call. Answers how many went.
  virtual absl::StatusOr<int64_t> Purge(int limit) = 0;
  // Live output of a run, replaced as it grows (for `logs -f`); refused quietly when the ticket is
  // not current.
  virtual absl::Status PutOutput(const Ticket& ticket, absl::string_view head,
                                 absl::string_view tail, int64_t bytes) = 0;
  // Returns when something may have become due or changed, or after `at_most`. A hint alone:
  // polling makes it correct.
  virtual Heard AwaitChange(absl::Duration at_most) = 0;
  // Ends an AwaitChange from another thread: the one verb that may be called so.
  virtual void Interrupt() = 0;
};

}  // namespace matins

#endif  // MATINS_STORE_STORE_H_
