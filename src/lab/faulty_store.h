// A store whose network fails: calls that never arrive, answers that never come back, and calls
// that take effect long after their caller gave up. Every true answer is shown to the referee.
#ifndef MATINS_LAB_FAULTY_STORE_H_
#define MATINS_LAB_FAULTY_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lab/referee.h"
#include "store/store.h"

namespace matins {

// What the network does to one call.
enum class CallFate {
  kFine,
  kAway,         // refused: the caller knows that nothing took effect
  kLostRequest,  // never arrives: the caller does not know
  kLostAnswer,   // takes effect: the caller does not know
  kLate,         // takes effect later: the caller does not know. Only where Network::late is set
};

struct Network {
  std::function<CallFate(absl::string_view verb)> fate;
  // Keeps a call that is to take effect later.
  std::function<void(std::function<void()>)> late;
};

class FaultyStore : public Store {
 public:
  // `network` and `referee` outlive it.
  FaultyStore(std::unique_ptr<Store> store, Network& network, Referee& referee)
      : store_(std::move(store)), network_(network), referee_(referee) {}

  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override;
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override;
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override;
  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override;
  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override;
  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override;
  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override;
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override;
  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override;
  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override;
  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override;
  absl::Status ReportDead(absl::Span<const Ticket> tickets) override;
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override;
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override;
  absl::Status Leave(const NodeId& node) override;
  absl::StatusOr<int64_t> Purge(int limit) override;
  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override;
  Heard AwaitChange(absl::Duration at_most) override { return store_->AwaitChange(at_most); }
  void Interrupt() override { store_->Interrupt(); }

 private:
  // `call` makes the call and shows its answer to the referee.
  template <typename Answer>
  Answer Through(absl::string_view verb, std::function<Answer()> call);

  const std::shared_ptr<Store> store_;  // shared with calls that are late
  Network& network_;
  Referee& referee_;
};

}  // namespace matins

#endif  // MATINS_LAB_FAULTY_STORE_H_
