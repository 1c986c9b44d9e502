#include "lab/faulty_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins {

template <typename Answer>
Answer FaultyStore::Through(absl::string_view verb, std::function<Answer()> call) {
  switch (network_.fate(verb)) {
    case CallFate::kFine:
      return call();
    case CallFate::kAway:
      return StoreAwayError(absl::StrCat("lab: ", verb, " was refused"));
    case CallFate::kLostAnswer:
      (void)call();
      break;
    case CallFate::kLate:
      network_.late([call = std::move(call)] { (void)call(); });
      break;
    case CallFate::kLostRequest:
      break;
  }
  return InDoubtError(absl::StrCat("lab: no answer to ", verb));
}

absl::StatusOr<DueJobs> FaultyStore::ReadDue(const ReadDueRequest& request) {
  return Through<absl::StatusOr<DueJobs>>("ReadDue", [&] { return store_->ReadDue(request); });
}

absl::StatusOr<std::vector<JobDefinition>> FaultyStore::ReadDefinitions(
    const std::vector<std::string>& jobs) {
  return Through<absl::StatusOr<std::vector<JobDefinition>>>(
      "ReadDefinitions", [store = store_, jobs] { return store->ReadDefinitions(jobs); });
}

absl::StatusOr<PlanAnswers> FaultyStore::Plan(const PlanRequest& request) {
  return Through<absl::StatusOr<PlanAnswers>>("Plan",
                                              [store = store_, request, &referee = referee_] {
                                                auto answer = store->Plan(request);
                                                if (answer.ok())
                                                  referee.Planned(request.writes, *answer);
                                                return answer;
                                              });
}

absl::StatusOr<HoldAnswer> FaultyStore::Hold(const HoldRequest& request) {
  return Through<absl::StatusOr<HoldAnswer>>(
      "Hold", [store = store_, request] { return store->Hold(request); });
}

absl::StatusOr<StartAnswers> FaultyStore::Start(const StartRequest& request) {
  return Through<absl::StatusOr<StartAnswers>>("Start",
                                               [store = store_, request, &referee = referee_] {
                                                 auto answer = store->Start(request);
                                                 if (answer.ok()) referee.Started(request, *answer);
                                                 return answer;
                                               });
}

absl::StatusOr<std::vector<Ticket>> FaultyStore::Replace(absl::Span<const PeriodKey> newcomers) {
  return Through<absl::StatusOr<std::vector<Ticket>>>(
      "Replace", [store = store_, keys = std::vector<PeriodKey>(newcomers.begin(), newcomers.end()),
                  &referee = referee_] {
        auto answer = store->Replace(keys);
        if (answer.ok()) referee.Replaced(*answer);
        return answer;
      });
}

absl::StatusOr<std::vector<ExtendAnswer>> FaultyStore::Extend(
    absl::Span<const ExtendRequest> requests) {
  return Through<absl::StatusOr<std::vector<ExtendAnswer>>>(
      "Extend",
      [store = store_, copy = std::vector<ExtendRequest>(requests.begin(), requests.end()),
       &referee = referee_] {
        auto answer = store->Extend(copy);
        if (answer.ok()) referee.Extended(copy, *answer);
        return answer;
      });
}

absl::StatusOr<std::vector<Refusal>> FaultyStore::Checkpoint(
    absl::Span<const CheckpointRequest> requests) {
  return Through<absl::StatusOr<std::vector<Refusal>>>(
      "Checkpoint",
      [store = store_, copy = std::vector<CheckpointRequest>(requests.begin(), requests.end()),
       &referee = referee_] {
        auto answer = store->Checkpoint(copy);
        if (answer.ok()) referee.Checkpointed(copy, *answer);
        return answer;
      });
}

absl::StatusOr<std::vector<Refusal>> FaultyStore::Finish(absl::Span<const FinishRequest> requests) {
  return Through<absl::StatusOr<std::vector<Refusal>>>(
      "Finish",
      [store = store_, copy = std::vector<FinishRequest>(requests.begin(), requests.end()),
       &referee = referee_] {
        auto answer = store->Finish(copy);
        if (answer.ok()) referee.Finished(copy, *answer);
        return answer;
      });
}

absl::StatusOr<std::vector<ResolveAnswer>> FaultyStore::Resolve(
    absl::Span<const FinishRequest> requests) {
  return Through<absl::StatusOr<std::vector<ResolveAnswer>>>(
      "Resolve",
      [store = store_, copy = std::vector<FinishRequest>(requests.begin(), requests.end()),
       &referee = referee_] {
        auto answer = store->Resolve(copy);
        if (answer.ok()) referee.Resolved(copy, *answer);
        return answer;
      });
}

absl::StatusOr<std::vector<StaleRun>> FaultyStore::ReadStale(int limit) {
  return Through<absl::StatusOr<std::vector<StaleRun>>>("ReadStale",
                                                        [&] { return store_->ReadStale(limit); });
}

absl::StatusOr<std::vector<bool>> FaultyStore::Reap(absl::Span<const ReapRequest> requests) {
  return Through<absl::StatusOr<std::vector<bool>>>(
      "Reap", [store = store_, copy = std::vector<ReapRequest>(requests.begin(), requests.end()),
               &referee = referee_] {
        auto answer = store->Reap(copy);
        if (answer.ok()) referee.Reaped(copy, *answer);
        return answer;
      });
}

absl::Status FaultyStore::ReportDead(absl::Span<const Ticket> tickets) {
  return Through<absl::Status>(
      "ReportDead", [store = store_, copy = std::vector<Ticket>(tickets.begin(), tickets.end()),
                     &referee = referee_] {
        const absl::Status status = store->ReportDead(copy);
        if (status.ok()) referee.ReportedDead(copy);
        return status;
      });
}

absl::Status FaultyStore::Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) {
  return Through<absl::Status>(
      "Unhold", [store = store_, node, copy = std::vector<PeriodKey>(keys.begin(), keys.end())] {
        return store->Unhold(node, copy);
      });
}

absl::StatusOr<TickAnswer> FaultyStore::Tick(const TickRequest& request) {
  return Through<absl::StatusOr<TickAnswer>>("Tick", [&] {
    auto answer = store_->Tick(request);
    if (answer.ok()) referee_.Ticked(*answer);
    return answer;
  });
}

absl::Status FaultyStore::Leave(const NodeId& node) {
  return Through<absl::Status>("Leave", [&] { return store_->Leave(node); });
}

absl::StatusOr<int64_t> FaultyStore::Purge(int limit) {
  return Through<absl::StatusOr<int64_t>>("Purge", [&] {
    absl::StatusOr<int64_t> gone = store_->Purge(limit);
    if (gone.ok()) referee_.Purged();
    return gone;
  });
}

absl::Status FaultyStore::PutOutput(const Ticket& ticket, absl::string_view head,
                                    absl::string_view tail, int64_t bytes) {
  return Through<absl::Status>("PutOutput",
                               [&] { return store_->PutOutput(ticket, head, tail, bytes); });
}

}  // namespace matins
