// The finish lane's answers to runs, and its copies of their output.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "engine/finish_lane.h"
#include "engine/launch.h"
#include "engine/timing.h"
#include "engine/witness.h"
#include "store/rules.h"

namespace matins {

absl::Status FinishLane::AnswerAsks() {
  std::vector<InHand*> checkpoints;
  std::vector<InHand*> fences;
  for (auto& [fence, run] : runs_) {
    if (run.asks.empty() || run.ended.has_value()) continue;
    if (RefuseUnusable(run)) continue;
    (run.asks.front().what.kind == AskKind::kCheckpoint ? checkpoints : fences).push_back(&run);
  }
  if (!checkpoints.empty()) RETURN_IF_ERROR(AnswerCheckpoints(checkpoints));
  if (!fences.empty()) RETURN_IF_ERROR(AnswerFences(fences));
  return absl::OkStatus();
}

// One that no store takes is answered here, so that it does not stand in the others' way.
bool FinishLane::RefuseUnusable(InHand& run) {
  const RunAsked& asked = run.asks.front().what;
  if (asked.kind != AskKind::kCheckpoint) return false;
  if (asked.number > 0 && asked.payload.size() <= kCheckpointBytes) return false;
  RunAnswer answer;
  answer.status = absl::InvalidArgumentError(absl::StrCat(
      "checkpoint ", asked.number, " of ", asked.payload.size(), " bytes is not taken: ",
      "number them from 1, with at most ", kCheckpointBytes, " bytes; keep more elsewhere"));
  node_.runner.Reply(run.run->claim.fence, asked.ask, std::move(answer));
  run.asks.pop_front();
  return true;
}

absl::Status FinishLane::AnswerCheckpoints(const std::vector<InHand*>& runs) {
  std::vector<CheckpointRequest> requests;
  for (const InHand* run : runs) {
    const RunAsked& asked = run->asks.front().what;
    requests.push_back({TicketOf(run->run->claim), asked.number, asked.payload});
    Testify(node_, "ckpt", "inv", requests.back().ticket, asked.number);
  }
  const absl::StatusOr<std::vector<Refusal>> answers = store().Checkpoint(requests);
  if (!answers.ok()) {
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i]->asks.front().in_doubt |= IsInDoubt(answers.status());
      Testify(node_, "ckpt", "info", requests[i].ticket, requests[i].number);
    }
    return answers.status();
  }
  MATINS_FAULT_POINT("checkpoint.after_answer");
  bool busy = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    InHand& run = *runs[i];
    Refusal refusal = (*answers)[i];
    const int64_t number = requests[i].number;
    // Sent before without an answer: only this run writes its checkpoints, so "not greater" says
    // that the first call took effect.
    if (refusal.why == "checkpoint" && run.asks.front().in_doubt && number > run.checkpoint) {
      refusal.why.clear();
    }
    Testify(node_, "ckpt", Told(refusal), requests[i].ticket, number, refusal.why);
    if (refusal.busy()) {
      busy = true;  // the ask stays, and is sent again
      continue;
    }
    if (refusal.accepted()) {
      run.checkpoint = std::max(run.checkpoint, number);
      ++node_.counters.checkpoints;
      node_.Say(event::kCheckpoint, run.run->claim.key, run.run->claim.fence, absl::StrCat(number));
    }
    Answered(run, refusal, "");
  }
  return busy ? RowsBusy() : absl::OkStatus();
}

// Whoever asks for its fence is about to write under it: the store is asked whether it still holds.
absl::Status FinishLane::AnswerFences(const std::vector<InHand*>& runs) {
  std::vector<ExtendRequest> requests;
  for (const InHand* run : runs) {
    requests.push_back({TicketOf(run->run->claim), run->run->job().lock.ttl});
    Testify(node_, "hb", "inv", requests.back().ticket);
  }
  const absl::Duration sent = node_.clock.BootNow();
  const absl::StatusOr<std::vector<ExtendAnswer>> answers = store().Extend(requests);
  if (!answers.ok()) {
    for (const ExtendRequest& request : requests) Testify(node_, "hb", "info", request.ticket);
    return answers.status();
  }
  std::vector<DeadlineMove> moves;
  bool busy = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Refusal& refusal = (*answers)[i].refusal;
    const LiveRun& run = *runs[i]->run;
    Testify(node_, "hb", Told(refusal), requests[i].ticket, -1, refusal.why);
    if (refusal.busy()) {
      busy = true;
      continue;
    }
    if (refusal.accepted()) {
      node_.live.Beaten(run.claim.fence, sent);
      moves.push_back({run.claim.fence, LeaseDeadline(sent, run.job().lock.ttl, run.job().grace)});
    }
    Answered(*runs[i], refusal, absl::StrCat(run.claim.fence));
  }
  node_.runner.MoveDeadlines(moves);
  return busy ? RowsBusy() : absl::OkStatus();
}

void FinishLane::Answered(InHand& run, const Refusal& refusal, const std::string& text) {
  const RunAsked asked = std::move(run.asks.front().what);
  run.asks.pop_front();
  const LiveRun& live = *run.run;
  RunAnswer answer;
  if (refusal.accepted()) {
    answer.text = text;
  } else if (refusal.why == "done") {
    answer.status = absl::FailedPreconditionError(
        "the job has written DONE itself; nothing more is recorded for it");
  } else if (refusal.why == "checkpoint") {
    answer.status = absl::InvalidArgumentError(
        absl::StrCat("checkpoint ", asked.number, " is not above the last one, ", run.checkpoint,
                     "; give a greater number"));
  } else {
    ++node_.counters.zombies_refused;
    node_.Alarm(event::kZombieRefused, live.claim.key, live.claim.fence, refusal.why);
    answer.status = absl::FailedPreconditionError(
        absl::StrCat("run ", live.claim.fence, " no longer owns ", live.claim.key.job, " ",
                     live.claim.key.period, " (", refusal.why, "); stop and write nothing more"));
  }
  node_.runner.Reply(live.claim.fence, asked.ask, std::move(answer));
}

absl::Status FinishLane::CopyOutput() {
  const absl::Duration now = node_.clock.BootNow();
  for (auto& [fence, run] : runs_) {
    if (run.ended.has_value() || now < run.next_copy || !run.output.TakeChanged()) continue;
    run.next_copy = now + node_.options.output;
    RETURN_IF_ERROR(store().PutOutput(TicketOf(run.run->claim), run.output.head(),
                                      run.output.tail(), run.output.bytes()));
  }
  return absl::OkStatus();
}

}  // namespace matins
