#include "engine/start_lane.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/door_keys.h"
#include "engine/launch.h"
#include "engine/timing.h"
#include "engine/witness.h"

namespace matins {
namespace {

constexpr size_t kMostSaid = 10'000;
// Rows a call: more would make those that come due meanwhile wait for it.
constexpr int kStartsACall = 500;
// A backlog that START could not take (others have it locked, or it stood behind what is due for
// other nodes) is looked at again after this.
constexpr absl::Duration kLookAgain = absl::Milliseconds(5);
// A row that a door keeps waiting is asked about again after this, or when its key is free.
constexpr absl::Duration kDoorAgain = absl::Seconds(1);
constexpr absl::Duration kDoorSoonest = absl::Milliseconds(50);
// What is due at one instant is started before the ends of the first are written, for this long at
// most: ends may be late, starts are what people wait for. A burst begins where nothing was started
// for a while; in a long backlog ends are what frees slots.
constexpr absl::Duration kStartsFirst = absl::Milliseconds(40);
constexpr absl::Duration kBurstAfter = absl::Seconds(1);

absl::string_view ResultText(StartResult result) {
  switch (result) {
    case StartResult::kStarted:
      return "started";
    case StartResult::kTaken:
      return "taken";
    case StartResult::kNotDue:
      return "not due";
    case StartResult::kMissed:
      return "missed";
    case StartResult::kSuspended:
      return "suspended";
    case StartResult::kBlocked:
      return "blocked by an older period";
    case StartResult::kGap:
      return "an older period is a gap";
    case StartResult::kAfter:
      return "waits for another job";
    case StartResult::kBusy:
      return "its lock is held";
    case StartResult::kFull:
      return "a limit is reached";
    case StartResult::kOldLease:
      return "an earlier run of it, taken back or deleted, may be alive until";
    case StartResult::kLabels:
      return "this node lacks a label";
    case StartResult::kFrozen:
      return "the store's clock stepped";
    case StartResult::kBackfill:
      return "its back-fill's terms";
  }
  return "";
}

}  // namespace

// Who drains looks at `starting` after it has set `draining`: one of the two sees the other.
absl::StatusOr<absl::Duration> StartLane::Turn() {
  node_.starting = true;
  const absl::StatusOr<absl::Duration> next = TurnUnlessDraining();
  node_.starting = false;
  return next;
}

absl::StatusOr<absl::Duration> StartLane::TurnUnlessDraining() {
  for (Waiting& waiting : node_.held.TakeAll()) Push(std::move(waiting));
  if (node_.draining || node_.frozen) {
    RETURN_IF_ERROR(GiveBack());
    return node_.draining ? absl::InfiniteDuration() : node_.clock.BootNow() + node_.options.poll;
  }
  // Planning looks first, then rings. Where the node rests, it is not about to by itself.
  if (node_.judged_until_us == 0) {
    if (node_.quiet) node_.Ring(LaneKind::kPlan);
    return node_.clock.BootNow() + node_.options.poll;
  }
  if (node_.freed.exchange(false)) backlog_ = true;
  if (node_.told.exchange(false)) told_ = true;
  // What is due already does not wait for what is due next.
  if (!std::exchange(begun_, true)) {
    backlog_ = true;
    RETURN_IF_ERROR(StartDue());
  }
  if (node_.clock.BootNow() >= next_hold_) RETURN_IF_ERROR(Hold());
  RETURN_IF_ERROR(StartDue());
  // What another has planned is often due in a moment, and nobody tells of it again.
  if (told_ && !backlog_) RETURN_IF_ERROR(Hold());
  // Free slots ring.
  if (AlsoDue(free_slots(), 0) > 0) return node_.clock.BootNow();
  const absl::Duration look = node_.quiet ? next_known_ : next_hold_;
  return heap_.empty() ? look : std::min(look, heap_.top().at);
}

void StartLane::Push(Waiting waiting) {
  heap_.push(std::move(waiting));
  node_.waiting = static_cast<int>(heap_.size());
}

absl::Status StartLane::Hold() {
  HoldRequest request;
  request.node = node_.options.id;
  request.ahead = node_.options.ahead;
  request.limit = node_.free_slots();
  request.due = false;
  if (request.limit == 0) {
    next_hold_ = next_known_ = node_.clock.BootNow() + node_.options.poll;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const HoldAnswer answer, store().Hold(request));
  told_ = false;
  const absl::Duration received = node_.clock.BootNow();
  for (const HeldRow& row : answer.rows) {
    Push({BootAt(row.not_before, answer.now, received), row});
    ++node_.counters.held;
  }
  if (answer.due) backlog_ = true;
  // As many as were asked for: there may be more, for when a slot is free.
  next_known_ = BootAt(std::min(answer.next_start - node_.options.ahead, answer.next_look),
                       answer.now, received + absl::Milliseconds(1));
  next_hold_ = std::min(next_known_, received + node_.options.poll);
  return absl::OkStatus();
}

int StartLane::AlsoDue(int free, int named) {
  const int room = std::min(free, kStartsACall) - named;
  if (!backlog_ || room <= 0) return 0;
  // A call costs the store about as much as a hundred rows: a long backlog is taken in large parts.
  const int worth = std::min(kStartsACall, node_.options.slots) / 2;
  return many_ && free < worth ? 0 : room;
}

absl::Status StartLane::StartDue() {
  std::vector<Waiting> due;
  std::vector<Waiting> no_slot;
  const absl::Duration now = node_.clock.BootNow();
  const int free = free_slots();
  while (!heap_.empty() && heap_.top().at <= now && due.size() < kStartsACall) {
    (static_cast<int>(due.size()) < free ? due : no_slot).push_back(heap_.top());
    heap_.pop();
  }
  node_.waiting = static_cast<int>(heap_.size());
  if (node_.door != nullptr) AskDoor(due);
  const int also = AlsoDue(free, static_cast<int>(due.size()));
  if (!due.empty() || also > 0) RETURN_IF_ERROR(Send(std::move(due), also));
  return ReturnUnstartable(no_slot);
}

std::optional<DoorKey> StartLane::DoorKeyFor(const PeriodKey& key) {
  const absl::StatusOr<DefinitionPtr> job = node_.definitions.Current(store(), key.job, 0);
  if (!job.ok()) return std::nullopt;
  std::string lock = DoorKeyOf(**job, key.period);
  if (lock.empty()) return std::nullopt;
  return DoorKey{std::move(lock), (*job)->job.lock.ttl};
}

void StartLane::AskDoor(std::vector<Waiting>& rows) {
  std::vector<DoorKey> keys;
  std::vector<size_t> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::optional<DoorKey> key = DoorKeyFor(rows[i].row.key);
    if (!key) continue;
    asked.push_back(i);
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return;
  const std::vector<DoorAnswer> answers = node_.door->Enter(keys);
  std::vector<bool> waits(rows.size(), false);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i].open) waits[asked[i]] = PutOff(rows[asked[i]], keys[i], answers[i]);
  }
  std::vector<Waiting> go;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (waits[i]) continue;
    put_off_.erase(rows[i].row.key);
    go.push_back(std::move(rows[i]));
  }
  rows = std::move(go);
}

bool StartLane::PutOff(const Waiting& row, const DoorKey& key, const DoorAnswer& answer) {
  const absl::Duration now = node_.clock.BootNow();
  if (put_off_.size() > kMostSaid) put_off_.clear();
  const auto [since, first] = put_off_.emplace(row.row.key, now);
  const absl::Duration until = since->second + key.ttl;
  if (now >= until) return false;
  if (first) {
    node_.Say(event::kStartPutOff, row.row.key, 0,
              absl::StrCat(answer.held_by, " is at work under its lock, as Redis says"));
  }
  const absl::Duration left = std::clamp(answer.left, kDoorSoonest, kDoorAgain);
  Push({std::min(now + left, until), row.row});
  return true;
}

void StartLane::TellDoor(const StartAnswers& answers) {
  std::vector<DoorKey> entered;
  std::vector<std::string> left;
  for (const StartAnswer& answer : answers.rows) {
    std::optional<DoorKey> key = DoorKeyFor(answer.key);
    if (!key) continue;
    answer.claim ? entered.push_back(*std::move(key)) : left.push_back(std::move(key->key));
  }
  if (!entered.empty()) node_.door->Enter(entered);
  if (left.empty()) return;
  // What a run of this node is at work under stays.
  for (const LiveRunPtr& run : node_.live.All()) {
    if (run->definition == nullptr) continue;
    const std::string key = DoorKeyOf(*run->definition, run->claim.key.period);
    left.erase(std::remove(left.begin(), left.end(), key), left.end());
  }
  node_.door->Leave(left);
}

absl::Status StartLane::ReturnUnstartable(const std::vector<Waiting>& rows) {
  if (rows.empty()) return absl::OkStatus();
  std::vector<PeriodKey> keys;
  for (const Waiting& waiting : rows) keys.push_back(waiting.row.key);
  return store().Unhold(node_.options.id, keys);
}

absl::Status StartLane::Send(std::vector<Waiting> rows, int also_due) {
  StartRequest request;
  request.node = node_.options.id;
  request.nonce = static_cast<int64_t>(random_->Next() >> 1 | 1);
  for (const Waiting& waiting : rows) request.keys.push_back(waiting.row.key);
  request.also_due = also_due;
  request.global_limit = node_.options.global_limit;
  request.put_off = node_.options.put_off;
  request.not_after = FromMicros(node_.judged_until_us);
  request.looks_ahead = node_.options.ahead;
  for (const PeriodKey& key : request.keys) {
    Testify(node_, "claim", "inv", {key, 0, 0, request.nonce});
  }
  MATINS_FAULT_POINT("start.before_send");
  const absl::Duration sent = node_.clock.BootNow();
  if (sent >= last_sent_ + kBurstAfter) {
    node_.starts_first_us = absl::ToInt64Microseconds(sent + kStartsFirst);
  }
  last_sent_ = sent;
  const absl::StatusOr<StartAnswers> answers = store().Start(request);
  if (answers.ok()) {
    return Take(rows, request, *answers, ProofOf(sent, node_.clock.BootNow()));
  }
  GoOn(false);
  for (const PeriodKey& key : request.keys) {
    Testify(node_, "claim", "info", {key, 0, 0, request.nonce}, -1, answers.status().message());
  }
  if (IsInDoubt(answers.status())) {
    // What was granted has an owner that does not know of it; its lease ends, and reap finds it.
    ++node_.counters.starts_in_doubt;
    node_.Alarm(event::kStartInDoubt, request.keys.empty() ? PeriodKey{} : request.keys[0], 0,
                std::string(answers.status().message()));
  } else {
    for (Waiting& waiting : rows) Push(std::move(waiting));
  }
  return answers.status();
}

absl::Status StartLane::Take(const std::vector<Waiting>& rows, const StartRequest& request,
                             const StartAnswers& answers, absl::Duration sent) {
  MATINS_FAULT_POINT("start.after_answer");
  const absl::Duration received = node_.clock.BootNow();
  std::vector<PeriodKey> newcomers;
  std::vector<RunRequest> launched;
  std::vector<std::pair<std::string, int>> jobs;
  for (const StartAnswer& answer : answers.rows) {
    if (answer.claim) jobs.emplace_back(answer.key.job, answer.claim->current_version);
  }
  node_.definitions.Fetch(store(), jobs);
  for (size_t i = 0; i < answers.rows.size(); ++i) {
    const StartAnswer& answer = answers.rows[i];
    if (answer.result == StartResult::kStarted) {
      if (!said_.empty()) said_.erase(answer.key);
      TakeClaim(node_, store(), *answer.claim, sent, launched);
    } else if (answer.result == StartResult::kNotDue && i < rows.size()) {
      Push({BootAt(rows[i].row.not_before, answers.now, received + absl::Milliseconds(1)),
            rows[i].row});
    } else {
      Testify(node_, "claim", "refused", {answer.key, 0, 0, request.nonce}, -1,
              ResultText(answer.result));
      Refused(answer, newcomers);
    }
  }
  if (request.also_due > 0) {
    backlog_ = answers.more;
    many_ = answers.more && !launched.empty();
    if (backlog_ && !many_) {
      backlog_ = false;
      next_hold_ = std::min(next_hold_, received + kLookAgain);
    }
  }
  GoOn(free_slots() > 0 && (many_ || (!heap_.empty() && heap_.top().at <= received)));
  if (!launched.empty()) {
    node_.Stir();
    node_.runner.StartAll(std::move(launched));
  }
  if (node_.door != nullptr) TellDoor(answers);
  if (node_.stopping) node_.StopAll();
  MATINS_FAULT_POINT("start.after_launch");
  return newcomers.empty() ? absl::OkStatus() : Replace(newcomers);
}

void StartLane::GoOn(bool more) {
  if (node_.starts_go_on.exchange(more) && !more) node_.Ring(LaneKind::kFinish);
}

void StartLane::SayRefused(const StartAnswer& answer) {
  std::string why(ResultText(answer.result));
  if (!answer.blocker.empty()) absl::StrAppend(&why, ": ", answer.blocker);
  // What waits for long is refused every few seconds: it is said once, and again when the reason is
  // another one.
  if (said_.size() > kMostSaid) said_.clear();
  std::string& said = said_[answer.key];
  if (said == why) return;
  node_.Say(event::kStartRefused, answer.key, 0, why);
  said = std::move(why);
}

void StartLane::Refused(const StartAnswer& answer, std::vector<PeriodKey>& newcomers) {
  ++node_.counters.starts_refused;
  SayRefused(answer);
  switch (answer.result) {
    case StartResult::kMissed:
    case StartResult::kGap:
      node_.look_again.Put(answer.key.job);
      node_.Ring(LaneKind::kPlan);
      break;
    case StartResult::kBusy: {
      const absl::StatusOr<DefinitionPtr> definition =
          node_.definitions.Current(store(), answer.key.job, 0);
      if (definition.ok() && (*definition)->job.overlap == Overlap::kReplace) {
        newcomers.push_back(answer.key);
      }
      break;
    }
    case StartResult::kFrozen:
      node_.frozen = true;
      break;
    default:
      break;
  }
}

absl::Status StartLane::Replace(const std::vector<PeriodKey>& newcomers) {
  ASSIGN_OR_RETURN(const std::vector<Ticket> burnt, store().Replace(newcomers));
  for (const Ticket& ticket : burnt) {
    ++node_.counters.replaced;
    node_.Say(event::kReplaced, ticket.key, ticket.fence);
    // Another node's is told by the refusal of its next beat.
    const LiveRunPtr run = node_.live.Find(ticket.fence);
    if (run == nullptr) continue;
    node_.live.WithholdBeats(ticket.fence);
    // One whose definition could not be read was never launched.
    if (run->definition == nullptr) continue;
    node_.StopRun(*run, StopReason::kReplaced, run->job().grace);
  }
  return absl::OkStatus();
}

absl::Status StartLane::GiveBack() {
  if (heap_.empty()) return absl::OkStatus();
  std::vector<PeriodKey> keys;
  for (; !heap_.empty(); heap_.pop()) keys.push_back(heap_.top().row.key);
  node_.waiting = 0;
  node_.Say(event::kHoldsReturned, keys[0], 0, absl::StrCat(keys.size(), " rows"));
  return store().Unhold(node_.options.id, keys);
}

}  // namespace matins
