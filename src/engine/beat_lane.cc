#include "engine/beat_lane.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fault.h"
#include "engine/launch.h"
#include "engine/timing.h"
#include "engine/witness.h"

namespace matins {

absl::StatusOr<absl::Duration> BeatLane::Turn() {
  const absl::Duration sent = node_.clock.BootNow();
  const std::vector<LiveRunPtr> runs = node_.live.DueBeats(sent);
  if (runs.empty()) return node_.live.NextBeat();
  std::vector<ExtendRequest> requests;
  for (const LiveRunPtr& run : runs) {
    requests.push_back({TicketOf(run->claim), run->job().lock.ttl});
    Testify(node_, "hb", "inv", requests.back().ticket);
  }
  const absl::StatusOr<std::vector<ExtendAnswer>> answers = store().Extend(requests);
  if (!answers.ok()) {
    NotAnswered(runs, answers.status());
    return node_.live.NextBeat();
  }
  MATINS_FAULT_POINT("beat.after_answer");
  const absl::Duration proof = ProofOf(sent, node_.clock.BootNow());
  std::vector<DeadlineMove> moves;
  for (size_t i = 0; i < runs.size(); ++i) {
    const LiveRun& run = *runs[i];
    const ExtendAnswer& answer = (*answers)[i];
    if (answer.refusal.busy()) {
      ++node_.counters.beats_failed;
      Testify(node_, "hb", "info", requests[i].ticket, -1, answer.refusal.why);
      node_.live.BeatAgainAt(run.claim.fence, sent + BeatRetry(run.job().lock.ttl));
      continue;
    }
    if (!answer.refusal.accepted()) {
      Refused(run, answer.refusal);
      continue;
    }
    Testify(node_, "hb", "ok", requests[i].ticket);
    ++node_.counters.beats;
    const int64_t fence = run.claim.fence;
    node_.live.Beaten(fence, proof);
    const Deadline lease = LeaseDeadline(proof, run.job().lock.ttl, run.job().grace);
    moves.push_back({fence, lease});
    if (run.job().check.has_value()) moves.push_back({CheckId(fence), lease});
    if (answer.cancel_asked) {
      node_.Say(event::kCancelAsked, run.claim.key, fence, answer.cancel_why);
      node_.StopRun(run, StopReason::kCancelled, run.job().grace);
    }
  }
  node_.runner.MoveDeadlines(moves);
  return node_.live.NextBeat();
}

void BeatLane::NotAnswered(const std::vector<LiveRunPtr>& runs, const absl::Status& status) {
  ++node_.counters.beats_failed;
  ++node_.counters.store_errors;
  const absl::Duration now = node_.clock.BootNow();
  for (const LiveRunPtr& run : runs) {
    Testify(node_, "hb", "info", TicketOf(run->claim), -1, status.message());
    node_.live.BeatAgainAt(run->claim.fence, now + BeatRetry(run->job().lock.ttl));
  }
}

void BeatLane::Refused(const LiveRun& run, const Refusal& refusal) {
  Testify(node_, "hb", "refused", TicketOf(run.claim), -1, refusal.why);
  // Its end was written while the beat was under way: nobody is an old owner here.
  if (!node_.live.WithholdBeats(run.claim.fence)) return;
  if (refusal.why == "done") {
    // `commit: job`: nothing is left to own. What it still does is bounded by its time-out.
    node_.runner.MoveDeadlines({{run.claim.fence, Deadline{}}});
    return;
  }
  ++node_.counters.zombies_refused;
  node_.Alarm(event::kLeaseLost, run.claim.key, run.claim.fence, refusal.why);
  // The deadline of its last good beat stands as well: whatever grace it has, it is dead before the
  // lease that it believed in would have ended.
  const absl::Duration grace = std::min(run.job().grace, run.job().lock.ttl / 4);
  node_.StopRun(run, StopReason::kLeaseLost, grace);
}

}  // namespace matins
