#include "engine/shared_store.h"

#include <utility>

namespace matins {
namespace {

class SharedStore final : public Store {
 public:
  explicit SharedStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override {
    return store_->ReadDue(request);
  }
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override {
    return store_->ReadDefinitions(jobs);
  }
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override {
    return store_->Plan(request);
  }
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override {
    return store_->Hold(request);
  }
  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override {
    return store_->Start(request);
  }
  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override {
    return store_->Replace(newcomers);
  }
  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override {
    return store_->Extend(requests);
  }
  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override {
    return store_->Checkpoint(requests);
  }
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override {
    return store_->Finish(requests);
  }
  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override {
    return store_->Resolve(requests);
  }
  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override {
    return store_->ReadStale(limit);
  }
  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override {
    return store_->Reap(requests);
  }
  absl::Status ReportDead(absl::Span<const Ticket> tickets) override {
    return store_->ReportDead(tickets);
  }
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override {
    return store_->Unhold(node, keys);
  }
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override {
    return store_->Tick(request);
  }
  absl::Status Leave(const NodeId& node) override { return store_->Leave(node); }
  absl::StatusOr<int64_t> Purge(int limit) override { return store_->Purge(limit); }
  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override {
    return store_->PutOutput(ticket, head, tail, bytes);
  }
  Heard AwaitChange(absl::Duration at_most) override { return store_->AwaitChange(at_most); }
  void Interrupt() override { store_->Interrupt(); }

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace

std::unique_ptr<Store> ShareStore(std::shared_ptr<Store> store) {
  return std::make_unique<SharedStore>(std::move(store));
}

}  // namespace matins
