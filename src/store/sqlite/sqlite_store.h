// The store's verbs on SQLite. One BEGIN IMMEDIATE transaction a call for the whole span: SQLite's
// write lock is the row lock of every row, and the clock is read once behind it.
#ifndef MATINS_STORE_SQLITE_SQLITE_STORE_H_
#define MATINS_STORE_SQLITE_SQLITE_STORE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "store/purged.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/watch.h"
#include "store/store.h"
#include "store/turns.h"

namespace matins::sqlite {

// What the order of due rows goes by.
struct DueOrder {
  bool priorities = false;  // some job has one
  bool turns = false;       // tenants are served in turn
};

class SqliteStore final : public Store {
 public:
  using OpenConnection = std::function<absl::StatusOr<std::unique_ptr<Connection>>()>;
  SqliteStore(std::unique_ptr<Connection> db, OpenConnection open_watcher)
      : db_(std::move(db)), open_watcher_(std::move(open_watcher)) {}
  ~SqliteStore() override;

  // plan.cc
  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override;
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override;
  // start.cc
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override;
  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override;
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override;
  // run.cc
  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override;
  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override;
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override;
  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override;
  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override;
  // reap.cc
  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override;
  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override;
  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override;
  absl::Status ReportDead(absl::Span<const Ticket> tickets) override;
  // clock.cc
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override;
  absl::Status Leave(const NodeId& node) override;
  Heard AwaitChange(absl::Duration at_most) override;
  void Interrupt() override;
  // purge.cc
  absl::StatusOr<int64_t> Purge(int limit) override;

 private:
  std::unique_ptr<Connection> db_;
  OpenConnection open_watcher_;
  // AwaitChange's. The connection is never inside a transaction; both null before the first call.
  std::unique_ptr<Connection> watcher_;
  absl::Mutex watch_mutex_;  // for Interrupt: all else is the caller's
  std::unique_ptr<WriteWatch> watch_;
  CommitLooks looks_;
  int64_t seen_changes_ = 0;
  int64_t seen_version_ = 0;
  std::atomic<bool> interrupted_ = false;
  // Whether any job has a priority, as of that event: an act's, which is written with it.
  DueOrder OrderOfDue();
  int64_t priority_event_ = -1;
  bool any_priority_ = false;
  std::optional<PurgedUpTo> purged_;  // none: there is more
};

// One PlanWrite inside a transaction: false where its revision no longer stands. Rows planned that
// may be held at once are held while `*room` lasts.
struct HoldAtOnce {
  const NodeId* node = nullptr;
  absl::Duration ahead = absl::ZeroDuration();
  int room = 0;
};
bool WritePlan(Connection& db, absl::Time now, const PlanWrite& write, HoldAtOnce* hold,
               std::vector<HeldRow>* held);

// The turns of the tenants whose rows these are, before they wait again; none in a store without
// tenants.
Turns TurnsOfRows(Connection& db, absl::Time now, absl::Span<const PeriodKey> keys);

// Burns the fences of all live rows, sets the mark to the clock, and goes on (I8).
void SettleClock(Connection& db, Transaction& transaction, absl::string_view who,
                 absl::string_view why);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_SQLITE_STORE_H_
