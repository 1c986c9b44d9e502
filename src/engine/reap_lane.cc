#include "engine/reap_lane.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "engine/witness.h"
#include "plan/plan.h"

namespace matins {
namespace {

constexpr int kRunsATurn = 500;

}  // namespace

absl::StatusOr<absl::Duration> ReapLane::Turn() {
  const absl::Duration next = node_.NextPoll(node_.options.sweep);
  if (node_.frozen || IsMutant(Mutant::kNoReap)) return next;
  ASSIGN_OR_RETURN(const std::vector<StaleRun> stale, store().ReadStale(kRunsATurn));
  if (stale.empty()) return next;
  std::vector<ReapRequest> requests;
  for (const StaleRun& run : stale) {
    ASSIGN_OR_RETURN(ReapRequest request, Judge(run));
    Testify(node_, "reap", "inv", request.ticket, -1, request.reason);
    requests.push_back(std::move(request));
  }
  MATINS_FAULT_POINT("reap.before_write");
  ASSIGN_OR_RETURN(const std::vector<bool> taken, store().Reap(requests));
  for (size_t i = 0; i < requests.size(); ++i) {
    const Ticket& ticket = requests[i].ticket;
    Testify(node_, "reap", taken[i] ? "ok" : "refused", ticket, -1, requests[i].reason);
    if (!taken[i]) continue;
    ++node_.counters.reaped;
    node_.Alarm(event::kReaped, ticket.key, ticket.fence,
                absl::StrCat("of node ", stale[i].row.node, ", ", requests[i].reason));
    // A period that failed for good may free or block others, and its job's plan says which.
    node_.look_again.Put(ticket.key.job);
  }
  node_.freed = true;
  node_.Ring(LaneKind::kPlan);
  node_.Ring(LaneKind::kStart);
  return stale.size() == kRunsATurn ? node_.clock.BootNow() : next;
}

absl::StatusOr<ReapRequest> ReapLane::Judge(const StaleRun& stale) {
  ReapRequest request;
  request.ticket = {stale.row.key, stale.row.generation, stale.row.fence, stale.row.nonce};
  request.node = node_.options.id.name;
  if (stale.without_lease) {
    request.to = Outcome::Kind::kFailed;
    request.reason = reason::kStale;
    return request;
  }
  const absl::StatusOr<DefinitionPtr> definition =
      node_.definitions.Current(store(), stale.row.key.job, 0);
  // A job that was deleted, or whose definition this program cannot read, is judged by the
  // defaults; one that could not be asked for is judged later.
  const bool gone =
      absl::IsNotFound(definition.status()) || absl::IsInvalidArgument(definition.status());
  if (!definition.ok() && !gone) return definition.status();
  const LossVerdict verdict = AfterLoss(definition.ok() ? (*definition)->job : Job(), stale.row);
  request.to = verdict.to;
  request.reason = verdict.reason;
  return request;
}

}  // namespace matins
