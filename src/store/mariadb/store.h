// Store over MariaDB. READ COMMITTED; each verb locks its rows, reads the clock in a later
// statement (I4), and decides in between: what it writes is in its second packet.
#ifndef MATINS_STORE_MARIADB_STORE_H_
#define MATINS_STORE_MARIADB_STORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "store/mariadb/limits.h"
#include "store/mariadb/session.h"
#include "store/start_rules.h"
#include "store/store.h"

namespace matins::mariadb {

// What START saw last, by which it asks no more than it has to.
struct StartMemory {
  // Tenants are served in turn; and it is to look once for rows from before there were tenants.
  bool in_turn = false, look_behind = false;
  bool asks_after = false;  // some job waits for others
  // So many rows are due for other nodes that they fill what START reads, as Hold saw it last; and
  // some are set aside.
  bool crowded = true, any_aside = true;
  // Whether some job has a priority, and the newest event when that was asked.
  bool any_priority = false;
  int64_t priorities_event = -1;
  absl::Duration priorities_until;  // boot
  int reach = 1;  // so many times what is wanted is chosen, past what other nodes have locked
};

class MariadbStore final : public Store {
 public:
  explicit MariadbStore(ConnectionOptions options) : session_(std::move(options)) {}

  // plan.cc
  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override;
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override;
  // hold.cc
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override;
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override;
  // start.cc
  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override;
  // run.cc
  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override;
  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override;
  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override;
  // finish.cc
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override;
  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override;
  // reap.cc
  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override;
  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override;
  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override;
  absl::Status ReportDead(absl::Span<const Ticket> tickets) override;
  // clock.cc
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override;
  absl::Status Leave(const NodeId& node) override;
  // purge.cc
  absl::StatusOr<int64_t> Purge(int limit) override;
  // store.cc: MariaDB tells nobody of changes, so they are looked for.
  Heard AwaitChange(absl::Duration at_most) override;
  void Interrupt() override;

 private:
  // Nothing where the store does not answer.
  std::optional<std::string> ChangeMark();
  absl::Status Count(StartFacts& facts);
  // The back-fills that the rows belong to, behind the locks of their rows.
  absl::Status LookAtTheirBackfills(StartFacts& facts);

  Session session_;
  KnownLimits limits_;
  StartMemory start_;
  std::string seen_;  // what AwaitChange saw last
  absl::Mutex mutex_;
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_STORE_H_
