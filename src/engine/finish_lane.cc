#include "engine/finish_lane.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "engine/door_keys.h"
#include "engine/launch.h"
#include "engine/outcome.h"
#include "engine/witness.h"
#include "job/words.h"

namespace matins {
namespace {

constexpr size_t kEndsACall = 500;

absl::string_view HistoryType(const Outcome& outcome) {
  // What the job committed itself is no commit of this node: where the row went on since, that its
  // end is refused says nothing of the job's.
  if (outcome.kind == Outcome::Kind::kDoneByJob) return "complete";
  return outcome.kind == Outcome::Kind::kDone ? "commit" : "fail";
}

OutputLimits LimitsOf(const LiveRun& run) {
  if (run.definition == nullptr) return {};
  const int64_t keep = run.job().output_keep_bytes;
  return {keep / 2, keep - keep / 2};
}

}  // namespace

FinishLane::InHand::InHand(LiveRunPtr live_run)
    : run(std::move(live_run)), output(LimitsOf(*run)), checkpoint(run->claim.checkpoint) {}

absl::StatusOr<absl::Duration> FinishLane::Turn() {
  TakeEvents();
  RETURN_IF_ERROR(WriteEnds());
  RETURN_IF_ERROR(ResolveDoubts());
  RETURN_IF_ERROR(ReportDead());
  RETURN_IF_ERROR(AnswerAsks());
  RETURN_IF_ERROR(CopyOutput());
  return NextTurn();
}

absl::Duration FinishLane::NextTurn() const {
  absl::Duration next = absl::InfiniteDuration();
  const absl::Duration ends =
      StartsGoFirst() ? absl::Microseconds(node_.starts_first_us.load()) : node_.clock.BootNow();
  for (const auto& [fence, run] : runs_) {
    if (run.without_say || !run.asks.empty()) return node_.clock.BootNow();
    if (run.outcome.has_value()) next = std::min(next, ends);
    if (run.output.changed()) next = std::min(next, run.next_copy);
  }
  return next;
}

// ---- what runs say
// --------------------------------------------------------------------------------

FinishLane::InHand* FinishLane::Find(int64_t fence) {
  const auto it = runs_.find(fence);
  if (it != runs_.end()) return &it->second;
  LiveRunPtr run = node_.live.Find(fence);
  if (run == nullptr) return nullptr;
  return &runs_.emplace(fence, InHand(std::move(run))).first->second;
}

void FinishLane::TakeEvents() {
  for (EngineNode::NotLaunched& failed : node_.not_launched.TakeAll()) {
    InHand* run = Find(failed.run->claim.fence);
    if (run != nullptr) Complete(*run, OutcomeOf(*failed.run, failed.error, 0));
  }
  for (const RunnerEvent& event : node_.runner.Poll()) TakeEvent(event.run, event);
}

void FinishLane::TakeEvent(int64_t id, const RunnerEvent& event) {
  InHand* found = Find(FenceOfRunId(id));
  if (found == nullptr) return;
  InHand& run = *found;
  const bool is_check = id < 0;
  if (std::holds_alternative<RunStarted>(event.what)) {
    if (is_check) return;
    const absl::Duration at = std::get<RunStarted>(event.what).at;
    run.started_at =
        run.run->claim.claimed_at +
        ((at == absl::ZeroDuration() ? node_.clock.BootNow() : at) - run.run->received);
    run.next_copy = node_.clock.BootNow() + node_.options.output;
    Testify(node_, "start", "ok", TicketOf(run.run->claim), run.run->claim.checkpoint);
    node_.Say(event::kRunStarted, run.run->claim.key, run.run->claim.fence);
  } else if (const auto* asked = std::get_if<RunAsked>(&event.what)) {
    if (is_check) {
      node_.runner.Reply(id, asked->ask,
                         {absl::FailedPreconditionError("a check has nothing to report"), ""});
    } else if (asked->kind == AskKind::kResult) {
      // Kept with the run and written with its end, in the same transaction.
      run.result = asked->payload;
      node_.runner.Reply(id, asked->ask, {absl::OkStatus(), ""});
    } else {
      run.asks.push_back({*asked});
    }
  } else if (const auto* output = std::get_if<RunOutput>(&event.what)) {
    if (!is_check) run.output.Append(*output);
  } else if (const auto* ended = std::get_if<RunEnded>(&event.what)) {
    is_check ? CheckEnded(run, ended, absl::OkStatus()) : Ended(run, *ended);
  } else if (const auto* failed = std::get_if<RunNotStarted>(&event.what)) {
    if (is_check) {
      CheckEnded(run, nullptr, failed->error);
    } else {
      Complete(run, OutcomeOf(*run.run, failed->error, failed->exit_code));
    }
  }
}

void FinishLane::Ended(InHand& run, const RunEnded& ended) {
  node_.Say(event::kRunEnded, run.run->claim.key, run.run->claim.fence, ended.Text());
  Testify(node_, "stop", ended.Succeeded() ? "ok" : "info", TicketOf(run.run->claim), -1,
          ended.Text());
  if (ended.stopped == StopReason::kLeaseLost) ++node_.counters.self_stops;
  run.ended = ended;
  run.tree_dead = ended.tree_dead;
  run.asks.clear();
  if (ended.Succeeded() && run.run->job().check.has_value()) {
    absl::StatusOr<RunRequest> check =
        CheckRequestOf(*run.run, node_.live.LastProof(run.run->claim.fence));
    if (check.ok()) {
      node_.runner.Start(*std::move(check));
      if (node_.stopping) {
        node_.StopRun(*run.run, StopReason::kShutdown, run.run->job().grace);
      }
      return;
    }
  }
  SetOutcome(run);
}

void FinishLane::CheckEnded(InHand& run, const RunEnded* ended, const absl::Status& error) {
  SetOutcome(run);
  if (!run.outcome.has_value()) return;
  if (ended == nullptr || !ended->Succeeded()) {
    // The run itself ended well, and its result stands; that it could not be counted is noted.
    run.outcome->message =
        absl::StrCat("check: ", ended == nullptr ? std::string(error.message()) : ended->Text());
  } else {
    Figures figures = FiguresOf(ended->output.Joined());
    run.outcome->figures = std::move(figures.values);
    if (!figures.note.empty()) run.outcome->message = absl::StrCat("check: ", figures.note);
  }
}

void FinishLane::SetOutcome(InHand& run) {
  std::optional<Outcome> outcome = OutcomeOf(*run.run, *run.ended);
  if (run.run->job().commit == CommitBy::kJob) {
    run.otherwise = WithoutCommit(*run.run, std::move(outcome));
    outcome = DoneByJob(*run.ended);
  }
  if (outcome.has_value()) {
    Complete(run, *std::move(outcome));
  } else {
    run.without_say = true;
  }
}

void FinishLane::Complete(InHand& run, Outcome outcome) {
  outcome.result = run.result;
  outcome.started_at = run.started_at;
  run.outcome = std::move(outcome);
}

// ---- ends
// -----------------------------------------------------------------------------------------

bool FinishLane::StartsGoFirst() const {
  return node_.starts_go_on &&
         absl::ToInt64Microseconds(node_.clock.BootNow()) < node_.starts_first_us;
}

absl::Status FinishLane::WriteEnds() {
  if (StartsGoFirst()) return absl::OkStatus();
  std::vector<InHand*> runs;
  std::vector<FinishRequest> requests;
  for (auto& [fence, run] : runs_) {
    if (!run.outcome.has_value() || run.in_doubt || runs.size() == kEndsACall) continue;
    run.withheld_here = node_.live.WithholdBeats(fence) || run.withheld_here;
    runs.push_back(&run);
    requests.push_back({TicketOf(run.run->claim), *run.outcome, node_.options.id.name});
    Testify(node_, HistoryType(*run.outcome), "inv", requests.back().ticket, -1,
            Word(run.outcome->kind));
  }
  if (runs.empty()) return absl::OkStatus();
  MATINS_FAULT_POINT("finish.before_send");
  const absl::StatusOr<std::vector<Refusal>> answers = store().Finish(requests);
  if (!answers.ok()) {
    WriteFailed(runs, answers.status());
    return answers.status();
  }
  MATINS_FAULT_POINT("finish.after_answer");
  bool busy = false;
  for (size_t i = 0; i < runs.size(); ++i) {
    const Refusal& refusal = (*answers)[i];
    Testify(node_, HistoryType(*runs[i]->outcome), Told(refusal), requests[i].ticket, -1,
            refusal.accepted() ? Word(runs[i]->outcome->kind) : absl::string_view(refusal.why));
    if (refusal.accepted()) {
      Accepted(*runs[i]);
    } else if (refusal.busy()) {
      busy = true;
      // Nothing took effect: it is still ours.
      if (std::exchange(runs[i]->withheld_here, false)) {
        node_.live.AllowBeats(requests[i].ticket.fence);
      }
      continue;
    } else if (!RefusedEnd(*runs[i], refusal)) {
      continue;
    }
    Forget(requests[i].ticket.fence);
  }
  return busy ? RowsBusy() : absl::OkStatus();
}

absl::Status FinishLane::RowsBusy() {
  return absl::UnavailableError("rows are locked by another transaction");
}

void FinishLane::WriteFailed(const std::vector<InHand*>& runs, const absl::Status& status) {
  const bool in_doubt = IsInDoubt(status);
  for (InHand* run : runs) {
    const Ticket ticket = TicketOf(run->run->claim);
    Testify(node_, HistoryType(*run->outcome), "info", ticket, -1, status.message());
    if (in_doubt) {
      ++node_.counters.finishes_in_doubt;
      node_.Say(event::kFinishInDoubt, ticket.key, ticket.fence, std::string(status.message()));
      run->in_doubt = true;
    } else if (std::exchange(run->withheld_here, false)) {
      // Nothing took effect: it is still ours, and stays so while the store is away.
      node_.live.AllowBeats(ticket.fence);
    }
  }
}

absl::Status FinishLane::ResolveDoubts() {
  std::vector<InHand*> runs;
  std::vector<FinishRequest> requests;
  for (auto& [fence, run] : runs_) {
    if (!run.in_doubt || runs.size() == kEndsACall) continue;
    runs.push_back(&run);
    requests.push_back({TicketOf(run.run->claim), *run.outcome, node_.options.id.name});
    Testify(node_, "resolve", "inv", requests.back().ticket);
  }
  if (runs.empty()) return absl::OkStatus();
  MATINS_FAULT_POINT("finish.in_doubt");
  ASSIGN_OR_RETURN(const std::vector<ResolveAnswer> answers, store().Resolve(requests));
  for (size_t i = 0; i < runs.size(); ++i) {
    const bool yes = answers[i].kind == ResolveAnswer::Kind::kCommitted;
    const Ticket& ticket = requests[i].ticket;
    Testify(node_, "resolve", yes ? "yes" : "no", ticket, -1, Word(runs[i]->outcome->kind));
    node_.Say(event::kResolved, ticket.key, ticket.fence, yes ? "yes" : "no");
    ++(yes ? node_.counters.resolved_yes : node_.counters.resolved_no);
    if (yes) Accepted(*runs[i]);
    Forget(ticket.fence);
  }
  return absl::OkStatus();
}

void FinishLane::Accepted(InHand& run) {
  ++node_.counters.finished;
  const Outcome& outcome = *run.outcome;
  std::string how(Word(outcome.kind));
  if (!outcome.reason.empty()) absl::StrAppend(&how, ", ", outcome.reason);
  if (!outcome.message.empty()) absl::StrAppend(&how, ": ", outcome.message);
  if (!node_.events.Listens()) return;
  node_.events.OnEvent({.name = event::kFinished,
                        .key = run.run->claim.key,
                        .fence = run.run->claim.fence,
                        .detail = std::move(how),
                        .outcome = &outcome});
}

bool FinishLane::RefusedEnd(InHand& run, const Refusal& refusal) {
  if (refusal.why == "no_commit") {
    if (run.otherwise.has_value()) {
      Complete(run, *std::exchange(run.otherwise, std::nullopt));
    } else {
      run.outcome.reset();
      run.without_say = true;
    }
    return false;
  }
  ++node_.counters.zombies_refused;
  node_.Alarm(event::kZombieRefused, run.run->claim.key, run.run->claim.fence, refusal.why);
  run.outcome.reset();
  run.without_say = true;
  return false;
}

absl::Status FinishLane::ReportDead() {
  std::vector<Ticket> dead;
  for (auto it = runs_.begin(); it != runs_.end();) {
    const InHand& run = it->second;
    ++it;
    if (!run.without_say) continue;
    // What may still be alive keeps its lock until the lease and its grace have passed.
    if (run.tree_dead) {
      dead.push_back(TicketOf(run.run->claim));
    } else {
      Forget(run.run->claim.fence);
    }
  }
  if (dead.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(store().ReportDead(dead));
  for (const Ticket& ticket : dead) Forget(ticket.fence);
  return absl::OkStatus();
}

void FinishLane::Forget(int64_t fence) {
  if (const LiveRunPtr run = node_.door == nullptr ? nullptr : node_.live.Find(fence);
      run != nullptr && run->definition != nullptr) {
    node_.door->Leave({DoorKeyOf(*run->definition, run->claim.key.period)});
  }
  runs_.erase(fence);
  node_.live.Remove(fence);
  // A slot is free, and what waited for this period may be due.
  node_.freed = true;
  node_.Ring(LaneKind::kStart);
}

}  // namespace matins
