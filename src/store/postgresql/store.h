// Store over PostgreSQL. READ COMMITTED; each verb locks its rows, then reads the clock in a later
// step of the same statement or in a later statement (I4).
#ifndef MATINS_STORE_POSTGRESQL_STORE_H_
#define MATINS_STORE_POSTGRESQL_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/postgresql/limits.h"
#include "store/postgresql/listener.h"
#include "store/postgresql/session.h"
#include "store/purged.h"
#include "store/store.h"

namespace matins::postgresql {

// What START asks only where there is need, for it costs a server that has not seen the statement a
// millisecond: older periods of strict jobs, jobs in `after`, locks that lost runs left behind.
struct StartAsks {
  bool older = false, after = false, leftovers = false;
  bool any() const { return older || after || leftovers; }
  void Add(StartAsks more) {
    older |= more.older;
    after |= more.after;
    leftovers |= more.leftovers;
  }
};

class PostgresStore final : public Store {
 public:
  PostgresStore(std::unique_ptr<Session> session, std::unique_ptr<Listener> listener);

  void Prepare() override { session_.connection.Connect().IgnoreError(); }
  // plan.cc
  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override;
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override;
  // start.cc
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override;
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override;
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

  Heard AwaitChange(absl::Duration at_most) override { return listener_->Await(at_most); }
  void Interrupt() override { listener_->Interrupt(); }

 private:
  void GetReadyToFinish(const Claim& claim, const NodeId& node);
  absl::Status LookForPriorities();

  const std::unique_ptr<Session> owned_;
  Session& session_;
  KnownLimits limits_;
  StartAsks asks_;                // those that there has been need of
  bool ready_to_finish_ = false;  // GetReadyToFinish was asked for
  bool wakes_ = false;  // rows waited for what ended runs freed, when that was looked at last
  // Tenants are served in turn, as far as was seen last; and START is to look once for rows from
  // before there were tenants.
  bool in_turn_ = false, look_behind_ = false;
  // Whether so many rows are due for other nodes that they fill what START reads, as Hold saw it
  // last; and whether any are set aside, as was seen last.
  bool crowded_ = true, any_aside_ = true;
  bool sets_aside_ = false;  // the last START did, as many as it passes over
  std::unique_ptr<Listener> listener_;
  // Whether any job has a priority, as of that event (-1: it is not known), and when it was asked
  // (CLOCK_BOOTTIME); and the newest event that START has seen.
  struct Priorities {
    int64_t event = -1, seen = -1;
    bool any = false;
    absl::Duration at = -absl::InfiniteDuration();
  };
  Priorities priorities_;
  std::optional<PurgedUpTo> purged_;  // none: there is more
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_STORE_H_
