// All that the model remembers, and the few changes that several verbs share. One mutex guards it
// all: each verb is one step.
#ifndef MATINS_STORE_MODEL_STATE_H_
#define MATINS_STORE_MODEL_STATE_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "store/act_store.h"
#include "store/attempt.h"
#include "store/store.h"

namespace matins::model {

constexpr absl::Time kPast = absl::InfinitePast();
constexpr absl::Time kNever = absl::InfiniteFuture();

struct ModelRow : AttemptRow {
  std::string waits_for;  // the limit that had no room
  absl::Time look_at = kPast;
  std::string checkpoint_data;
  int64_t renewals = 0;  // of this attempt
  int64_t number = 0;    // rises with each row that is inserted: SQLite's rowid
};

inline bool IsOpen(const ModelRow& row) {
  return row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kRunning ||
         row.status == PeriodStatus::kFailed;
}

struct ModelJob {
  Job job;  // of the current version
  JobRow row;
  std::vector<JobVersion> versions;
  std::optional<Trigger> pending;
  bool deleted = false;
  std::vector<SkipSpan> spans;
  std::vector<Suspension> suspended;  // ended ones too
};

struct Lock {
  PeriodKey key;
  int64_t fence = 0;
  absl::Time until;
};

// Of a run that may live on, though its row no longer says so.
struct Slot {
  PeriodKey key;
  std::string tenant, limit_key;
  bool backfill = false;
  absl::Time until;
};

struct Drill {
  DrillRow row;
  std::vector<ModelRow> was;
};

struct ModelNode {
  NodeRow row;
  absl::Duration boot;
};

struct Reopened {
  int generation = 1;
  int64_t fence = 0;
  absl::Time wait_until = kPast;
};

struct Ending {
  Outcome outcome;
  std::string run_word;
  bool loss = false;
  bool burn = false;
  bool skip = false;
  absl::Time wait_until = kPast;
};

// The turns that are taken when a write begins: the least of the rows that are served next, and the
// greatest of each tenant.
struct TurnsBefore {
  bool used = false;
  int64_t next = 1;
  std::map<std::string, int64_t> last;

  int64_t Take(const std::string& tenant);  // a further one of the tenant; 0 where there are none
};

struct State {
  absl::Mutex mutex;
  std::function<absl::Time()> clock;
  int64_t changes = 0;
  int64_t epoch = 1, fences = 0;
  int64_t inserted = 0;
  bool journal_full = false;

  std::map<std::string, ModelJob> jobs;
  std::map<PeriodKey, ModelRow> rows;
  std::map<int64_t, RunRow> runs;  // ended attempts by fence
  std::map<int64_t, OutputRow> outputs;
  std::vector<EventRow> events;
  std::vector<AuditRow> audits;
  std::vector<Drill> drills;
  std::vector<FigureRow> figures;  // as they were given
  std::vector<AlertRow> alerts;
  std::vector<SilenceRow> silences;  // newest first
  int64_t alert_ids = 0, silence_ids = 0;
  absl::Time alerts_looked = kPast;
  std::map<int64_t, BackfillRow> backfills;  // without the counts of their periods
  std::map<PeriodKey, Reopened> reopened;    // the newest of each period
  std::map<std::string, Lock> locks;
  std::map<int64_t, Slot> slots;  // by fence
  std::map<std::pair<LimitKind, std::string>, LimitRow> limits;
  std::map<std::string, std::string> limits_said;  // source -> its last word
  std::map<std::string, ModelNode> nodes;
  std::set<std::pair<std::string, std::string>> sources;  // (source, digest) ever applied
  std::map<std::string, std::string> current;             // source -> digest

  absl::Time mark = kPast;
  bool frozen = false;
  std::string frozen_why;
  absl::Time raw_seen, steady_from;
  absl::Time return_last = kPast, return_due = kNever;
  absl::Duration return_wait;
  std::optional<std::string> return_planner;

  absl::Time Raw() const;  // whole microseconds
  absl::Time Now() const { return std::max(Raw(), mark); }
  bool Frozen() const;
  bool FrozenToNodes() const;
  int64_t NextFence();
  ModelJob* FindJob(absl::string_view name);  // nullptr: none, or deleted
  ModelRow* FindRow(const PeriodKey& key);
  bool OwnedBy(const ModelRow& row, const Ticket& ticket) const;
  std::string RefusalOf(const ModelRow* row, const Ticket& ticket) const;
  void EndAttempt(ModelRow& row, const Ending& ending);
  void WriteRun(const ModelRow& row, const Ending& ending);
  Ending TakenBack(const ModelRow& row) const;
  void Wake(const std::string& job, absl::CivilDay day, const std::string& lock_key, bool done);
  // As a write of rows of these tenants finds them.
  TurnsBefore TurnsNow(const std::set<std::string>& tenants) const;
  void LeaveSlot(const ModelRow& row, absl::Time until);
  // Whether a living node may run it now.
  bool AnyNodeFor(const std::string& job);
  // Of the planned rows that wait the oldest of the first that a living node may run, or else the
  // oldest.
  void WakeOne(const std::function<bool(const ModelRow&)>& waits);
  void WakeForSlot(const std::string& tenant, const std::string& limit_key, bool backfill);
  void AddEvent(EventRow event);
  void TakeBackHeld(absl::string_view job);
  bool WritePlan(const PlanWrite& write, const NodeId* hold_by, absl::Duration ahead, int* room,
                 std::vector<HeldRow>* held);
  void SettleClock(const Act& act);
};

std::unique_ptr<Store> NewStore(std::shared_ptr<State> state);
std::unique_ptr<ActStore> NewActs(std::shared_ptr<State> state);

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_STATE_H_
