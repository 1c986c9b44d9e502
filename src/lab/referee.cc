#include "lab/referee.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "store/rules.h"

namespace matins {
namespace {

std::string Name(const PeriodKey& key) { return absl::StrCat(key.job, " ", key.period); }

}  // namespace

void Referee::Broken(absl::string_view promise, std::string what) {
  broken_.push_back(absl::StrCat(promise, ": ", what, " at ", FormatInstant(Now())));
}

void Referee::Knows(const SimJob& job) {
  jobs_[job.job.name] = job.job;
  versions_[job.job.name] = job.versions;
}

void Referee::Planned(absl::Span<const PlanWrite> writes, const PlanAnswers& answers) {
  for (size_t i = 0; i < writes.size(); ++i) {
    if (!answers.jobs[i].written) continue;
    NotFrozen(absl::StrCat(writes[i].job, " was planned"));
    for (const SkipSpan& span : writes[i].spans) Spanned(writes[i].job, span);
    for (const Intent& intent : writes[i].intents) {
      ++seen_["intents"];
      Row& row = rows_.try_emplace(intent.key).first->second;
      const bool is_new = row.state == State::kNoRow;
      if (is_new) {
        row.state = State::kPlanned;
        row.due = intent.due;
        row.manual = intent.manual;
      }
      if (intent.kind == Intent::Kind::kInsert && !is_new) continue;  // left as it is
      if (intent.kind == Intent::Kind::kReattempt && row.state == State::kFailed) {
        row.state = State::kPlanned;
      }
      if (!intent.skip_reason.empty() && row.state != State::kDone &&
          row.state != State::kRunning) {
        row.state = State::kSkipped;
        ++seen_["skipped"];
      }
    }
  }
}

// Many SKIPPED in a row that have no rows: what was deleted in that stretch is settled with them.
void Referee::Spanned(const std::string& job, const SkipSpan& span) {
  ++seen_["spans"];
  spans_[job].push_back(span);
  for (auto& [key, row] : rows_) {
    const bool within = key.job == job && span.from <= row.due && row.due <= span.to;
    if (within && row.state == State::kNoRow) row.state = State::kSkipped;
  }
}

// Under a row that was deleted, what the span says of it stands again; and what the schedule in
// force has not got is no gap.
bool Referee::IsOwed(const std::string& job, absl::Time due) {
  const std::vector<SkipSpan>& spans = spans_[job];
  return IsDue(versions_[job], due) &&
         std::none_of(spans.begin(), spans.end(),
                      [&](const SkipSpan& span) { return span.from <= due && due <= span.to; });
}

void Referee::Started(const StartRequest& request, const StartAnswers& answers) {
  for (const StartAnswer& answer : answers.rows) {
    if (answer.result != StartResult::kStarted) {
      ++seen_["starts refused"];
      if (answer.result == StartResult::kAfter) ++seen_["waits for another job"];
      continue;
    }
    ++seen_["claims"];
    const Claim& claim = *answer.claim;
    const std::string name = Name(claim.key);
    NotFrozen(absl::StrCat(name, " was claimed"));
    const absl::Time now = Now();
    Row& row = At(claim.key);
    const Job& job = jobs_[claim.key.job];
    if (row.state != State::kPlanned) Broken("I2", absl::StrCat(name, " claimed, not PLANNED"));
    if (now < row.wait)
      Broken("I7", absl::StrCat(name, " claimed over the lease of its deleted row"));
    if (claim.fence <= last_fence_[claim.key.job]) {
      Broken("I6",
             absl::StrCat(name, " got fence ", claim.fence, " after ", last_fence_[claim.key.job]));
    }
    last_fence_[claim.key.job] = std::max(last_fence_[claim.key.job], claim.fence);
    // What was tried once goes on, though the clock was set back before its instant.
    if (claim.due > now && !row.claimed)
      Broken("I15", absl::StrCat(name, " started before it was due"));
    if (claim.checkpoint != row.checkpoint) {
      Broken("I10", absl::StrCat(name, " was offered checkpoint ", claim.checkpoint,
                                 ", the last accepted is ", row.checkpoint));
    }
    for (const std::string& label : job.nodes) {
      const std::vector<std::string>& has = request.node.labels;
      if (std::find(has.begin(), has.end(), label) != has.end()) continue;
      Broken("labels",
             absl::StrCat(name, " needs ", label, ", which ", request.node.name, " has not"));
    }
    CheckSchedule(claim.key, row);
    CheckOrder(claim.key, row);
    CheckAfter(claim.key, job);
    CheckAge(claim.key, row, job);
    CheckLock(claim.key, job);
    CheckCap(claim.key, row, job);
    CheckLimits(claim, job);
    row.state = State::kRunning;
    row.claimed = true;
    row.wait = absl::InfinitePast();  // it is over, also when the clock goes back before its end
    row.due = claim.due;
    row.generation = claim.generation;
    row.manual = claim.manual;
    row.backfill = claim.backfill;
    row.fence = claim.fence;
    row.nonce = claim.nonce;
    row.lease = claim.lease_until;
    row.run_until = claim.run_until;
  }
}

void Referee::CheckSchedule(const PeriodKey& key, const Row& row) {
  // What was tried once goes on, though the clock was set back before it and the schedule changed.
  if (row.manual || row.claimed || IsDue(versions_[key.job], row.due)) return;
  Broken("I15", absl::StrCat(Name(key), " started, and the schedule in force had not got it"));
}

void Referee::CheckOrder(const PeriodKey& key, const Row& row) {
  if (jobs_[key.job].backfill.order != Order::kStrict || row.manual) return;
  for (const auto& [other, older] : rows_) {
    if (other.job != key.job || older.due >= row.due || older.manual) continue;
    if (older.state == State::kNoRow && !IsOwed(other.job, older.due)) continue;
    if (older.state != State::kDone && older.state != State::kSkipped) {
      Broken("I16", absl::StrCat(Name(key), " started before ", other.period, " was settled"));
      return;
    }
  }
}

// A simulation lasts less than a day: all its periods have one business date.
void Referee::CheckAfter(const PeriodKey& key, const Job& job) {
  for (const After& after : job.after) {
    int there = 0, done = 0;
    for (const auto& [other, row] : rows_) {
      if (other.job != after.job || row.state == State::kNoRow) continue;
      ++there;
      if (row.state == State::kDone) ++done;
    }
    if (there > 0 && there == done) continue;
    Broken("after", absl::StrCat(Name(key), " started, and of ", after.job, " ", done, " of ",
                                 there, " were DONE"));
  }
}

// No first try of what is older than the job makes good, or older than its source. A queue is no
// back-fill.
void Referee::CheckAge(const PeriodKey& key, const Row& row, const Job& job) {
  if (row.manual || row.claimed || job.overlap == Overlap::kQueue) return;
  const absl::Duration kept = std::min(job.backfill.max_age, job.backfill.source_window);
  const absl::Duration age = Now() - row.due;
  if (age > std::max(kept, job.start_deadline + job.spread)) {
    Broken("I17", absl::StrCat(Name(key), " started at an age of ", absl::FormatDuration(age)));
  }
}

void Referee::CheckLock(const PeriodKey& key, const Job& job) {
  int running = 0;
  for (const auto& [other, row] : rows_) {
    if (other.job == key.job && row.state == State::kRunning && other != key) ++running;
  }
  if (running > 0 && job.lock.scope == LockScope::kJob) {
    Broken("I7", absl::StrCat(Name(key), " started while another period of its job ran"));
  }
}

int Referee::Alive(const Counts& counts) {
  int alive = 0;
  for (const auto& [key, row] : rows_) {
    if (row.state == State::kRunning && counts(jobs_[key.job], row.backfill)) ++alive;
  }
  for (const auto& [fence, left] : left_) {
    if (left.until > Now() && counts(jobs_[left.job], left.backfill)) ++alive;
  }
  return alive;
}

// The rule of that very name, else of the longest beginning.
std::optional<int> Referee::Most(LimitKind kind, const std::string& name) const {
  if (const auto own = limits_.find({kind, name}); own != limits_.end()) return own->second;
  for (size_t length = name.size() + 1; length-- > 0;) {
    const auto rule = limits_.find({kind, absl::StrCat(name.substr(0, length), "*")});
    if (rule != limits_.end()) return rule->second;
  }
  return std::nullopt;
}

// Before the claim is entered: there has to be room for one more.
void Referee::CheckLimits(const Claim& claim, const Job& job) {
  const auto check = [&](absl::string_view what, std::optional<int> most, const Counts& counts) {
    if (!most) return;
    const int alive = Alive(counts);
    if (alive >= *most) {
      Broken("I24", absl::StrCat(Name(claim.key), " started beside ", alive, " others of ", what,
                                 ", of which ", *most, " may run at a time"));
    } else if (alive > 0) {
      ++seen_[absl::StrCat("starts beside others of ", what)];
    }
  };
  const auto of_job = [&](const Job& other, bool) { return other.name == job.name; };
  const auto backfills_of_job = [&](const Job& other, bool backfill) {
    return other.name == job.name && backfill;
  };
  check("its job", job.limit, of_job);
  if (claim.backfill) check("its job's back-fill", job.backfill.max_parallel, backfills_of_job);
  const std::optional<int> global = Most(LimitKind::kGlobal, "");
  check("the store", global, [](const Job&, bool) { return true; });
  if (!job.tenant.empty()) {
    check("its tenant", Most(LimitKind::kTenant, job.tenant),
          [&](const Job& other, bool) { return other.tenant == job.tenant; });
  }
  if (!job.limit_key.empty()) {
    check("its key", Most(LimitKind::kKey, job.limit_key),
          [&](const Job& other, bool) { return other.limit_key == job.limit_key; });
  }
  const std::optional<int> share = Most(LimitKind::kBackfillShare, "");
  if (claim.backfill && global && share) {
    check("back-fill", std::max(1, *global * *share / 100),
          [](const Job&, bool backfill) { return backfill; });
  }
}

void Referee::LimitsSet(const SetLimitsRequest& request) {
  for (const LimitRule& rule : request.clear) limits_.erase({rule.kind, rule.name});
  for (const LimitRule& rule : request.set) limits_[{rule.kind, rule.name}] = rule.most;
  ++seen_["limits set"];
}

void Referee::Leaves(const PeriodKey& key, const Row& row) {
  if (row.state == State::kRunning && row.lease > Now()) {
    left_[row.fence] = {key.job, row.backfill, row.lease};
    ++seen_["runs left without a row"];
  }
}

void Referee::Purged() {
  std::erase_if(left_, [now = Now()](const auto& one) { return one.second.until <= now; });
}

void Referee::ReportedDead(absl::Span<const Ticket> tickets) {
  for (const Ticket& ticket : tickets) left_.erase(ticket.fence);
}

// The newest max_periods owed stay: of one job no more than that, and what became due since, can be
// waiting at a time.
void Referee::CheckCap(const PeriodKey& key, const Row& row, const Job& job) {
  if (!job.backfill.max_periods.has_value() || row.manual) return;
  int64_t newer = 0;
  for (const auto& [other, open] : rows_) {
    const bool owed = open.state == State::kPlanned || open.state == State::kFailed;
    if (other.job == key.job && open.due > row.due && owed && !open.manual) ++newer;
  }
  // Between the judgement and this START newer periods fell due; they were not part of it.
  const int64_t slack = 8;
  if (newer > *job.backfill.max_periods + slack) {
    Broken("I17", absl::StrCat(Name(key), " started with ", newer, " newer ones owed, cap ",
                               *job.backfill.max_periods));
  }
}

void Referee::Owner(absl::string_view verb, const Ticket& ticket, absl::string_view lease_promise) {
  const Row& row = At(ticket.key);
  const std::string what = absl::StrCat(verb, " of ", Name(ticket.key), " by fence ", ticket.fence);
  if (row.state != State::kRunning || row.fence != ticket.fence || row.nonce != ticket.nonce ||
      row.generation != ticket.generation) {
    Broken("I3", absl::StrCat(what, " was accepted; the current fence is ", row.fence));
  } else if (row.lease <= Now()) {
    Broken(lease_promise, absl::StrCat(what, " was accepted after its lease had ended"));
  }
}

void Referee::Extended(absl::Span<const ExtendRequest> requests,
                       absl::Span<const ExtendAnswer> answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const Ticket& ticket = requests[i].ticket;
    ++seen_[answers[i].refusal.accepted() ? "beats" : "beats refused"];
    if (!answers[i].refusal.accepted()) continue;
    Owner("a beat", ticket, "I5");
    Row& row = At(ticket.key);
    if (answers[i].lease_until < row.lease) {
      Broken("I5", absl::StrCat(Name(ticket.key), ": a beat shortened the lease"));
    }
    if (answers[i].lease_until > row.run_until) {
      Broken("I5", absl::StrCat(Name(ticket.key), ": a beat passed the time-out"));
    }
    row.lease = answers[i].lease_until;
  }
}

void Referee::Checkpointed(absl::Span<const CheckpointRequest> requests,
                           absl::Span<const Refusal> answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    ++seen_[answers[i].accepted() ? "checkpoints" : "checkpoints refused"];
    if (!answers[i].accepted()) continue;
    Owner("a checkpoint", requests[i].ticket, "I4");
    Row& row = At(requests[i].ticket.key);
    if (requests[i].number <= row.checkpoint) {
      Broken("I10", absl::StrCat(Name(requests[i].ticket.key), ": checkpoint ", requests[i].number,
                                 " after ", row.checkpoint));
    }
    row.checkpoint = requests[i].number;
  }
}

void Referee::Committed(const PeriodKey& key) {
  Row& row = At(key);
  row.state = State::kDone;
  ++seen_["done"];
  if (++row.commits > 1) Broken("I1", absl::StrCat(Name(key), ": two accepted results"));
}

void Referee::CommittedByJob(const PeriodKey& key, int generation, int64_t fence, bool accepted) {
  ++seen_[accepted ? "done by its job" : "done by its job refused"];
  if (!accepted) return;
  const Ticket ticket = {key, generation, fence, At(key).nonce};  // which a job does not know
  Owner("a job's own commit", ticket, "I4");
  if (refused_for_ever_.contains({ticket.key, ticket.fence})) {
    Broken("I9", absl::StrCat(Name(ticket.key), ": a job's own commit was accepted after its no"));
  }
  Committed(ticket.key);
}

void Referee::End(const FinishRequest& request) {
  Row& row = At(request.ticket.key);
  if (request.outcome.kind == Outcome::Kind::kDoneByJob) {
    if (row.state != State::kDone || row.fence != request.ticket.fence) {
      Broken("I12", absl::StrCat(Name(request.ticket.key), " ended as committed by its job ",
                                 "without such a commit"));
    }
    return;
  }
  Owner("an end", request.ticket, "I4");
  if (refused_for_ever_.contains({request.ticket.key, request.ticket.fence})) {
    Broken("I9", absl::StrCat(Name(request.ticket.key), ": an end was accepted after its no"));
  }
  switch (request.outcome.kind) {
    case Outcome::Kind::kDone:
      Committed(request.ticket.key);
      break;
    case Outcome::Kind::kDoneByJob:
      break;  // CommittedByJob has it
    case Outcome::Kind::kRetry:
    case Outcome::Kind::kReturned:
      row.state = State::kPlanned;
      ++seen_["given back"];
      break;
    case Outcome::Kind::kFailed:
    case Outcome::Kind::kHeld:
      row.state = State::kFailed;
      ++seen_["failed"];
      break;
  }
}

void Referee::Finished(absl::Span<const FinishRequest> requests,
                       absl::Span<const Refusal> answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (answers[i].accepted()) {
      End(requests[i]);
    } else {
      ++seen_["ends refused"];
    }
  }
}

void Referee::Resolved(absl::Span<const FinishRequest> requests,
                       absl::Span<const ResolveAnswer> answers) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const Ticket& ticket = requests[i].ticket;
    Row& row = At(ticket.key);
    const bool stands = row.state == State::kDone && row.fence == ticket.fence;
    if (answers[i].kind == ResolveAnswer::Kind::kNotCommitted) {
      ++seen_["resolved no"];
      if (stands) Broken("I9", absl::StrCat(Name(ticket.key), ": DONE, but resolved as no"));
      refused_for_ever_.insert({ticket.key, ticket.fence});
      // Its fence is burnt, and the period is taken back.
      if (row.state == State::kRunning && row.fence == ticket.fence) Burnt(ticket);
      continue;
    }
    ++seen_["resolved yes"];
    if (!stands && row.state == State::kRunning && row.fence == ticket.fence) End(requests[i]);
  }
}

void Referee::Reaped(absl::Span<const ReapRequest> requests, const std::vector<bool>& taken) {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!taken[i]) continue;
    ++seen_["reaped"];
    const PeriodKey& key = requests[i].ticket.key;
    NotFrozen(absl::StrCat(Name(key), " was reaped"));
    Row& row = At(key);
    if (row.state != State::kRunning) {
      Broken("I2", absl::StrCat(Name(key), " was reaped, but was not running"));
    } else if (row.lease > Now()) {
      Broken("I7", absl::StrCat(Name(key), " was reaped while its lease was alive"));
    }
    row.state = requests[i].to == Outcome::Kind::kReturned ? State::kPlanned : State::kFailed;
  }
}

void Referee::Burnt(const Ticket& ticket) {
  Row& row = At(ticket.key);
  if (row.fence != ticket.fence) return;
  Leaves(ticket.key, row);
  row.state = State::kPlanned;
  row.fence = 0;
}

void Referee::Replaced(absl::Span<const Ticket> tickets) {
  for (const Ticket& ticket : tickets) {
    ++seen_["replaced"];
    Burnt(ticket);
    At(ticket.key).state = State::kSkipped;
  }
}

void Referee::Deleted(const PeriodKey& key) {
  ++seen_["rows deleted"];
  Row& row = At(key);
  if (row.state == State::kRunning) row.wait = row.lease;
  Leaves(key, row);
  row.state = State::kNoRow;
  row.generation = 0;  // told by the next claim
  row.claimed = false;
  row.fence = 0;
  row.checkpoint = 0;
  row.commits = 0;
}

void Referee::Reopened(const PeriodKey& key) {
  ++seen_["reopened"];
  Row& row = At(key);
  row.state = State::kPlanned;
  row.generation = 0;
  row.fence = 0;
  row.checkpoint = 0;
  row.commits = 0;
  row.manual = true;
}

void Referee::DoneByAnother(const PeriodKey& key, absl::Time due) {
  ++seen_["done by another"];
  Row& row = At(key);
  row.state = State::kDone;
  row.due = due;
}

void Referee::Changed(const SimJob& job) {
  ++seen_["jobs changed"];
  Knows(job);
  for (auto& [key, row] : rows_) {
    const bool first = row.generation == 1 && !row.claimed && !row.manual;
    if (key.job == job.job.name && row.state == State::kPlanned && first && row.due > Now()) {
      row.state = State::kNoRow;
    }
  }
}

void Referee::Ticked(const TickAnswer& answer) {
  if (answer.frozen) {
    // A node that cannot judge a jump forward says frozen too; the store is not, and others may.
    const bool by_store = !absl::StrContains(answer.frozen_why, "waiting");
    if (by_store && !frozen_) ++seen_["clock frozen"];
    frozen_ = frozen_ || by_store;
    return;
  }
  if (answer.idle) ++seen_["idle ticks"];
  if (frozen_) ClockSettled();
  mark_ = std::max(mark_, answer.now);
}

void Referee::NotFrozen(absl::string_view what) {
  const absl::Time raw = now_();
  const bool judged =
      mark_ == absl::InfinitePast() || (raw >= mark_ - kStepBack && raw <= mark_ + kStepForward);
  if (frozen_ || !judged) Broken("I8", absl::StrCat(what, " though the clock had stepped"));
}

void Referee::ClockSettled() {
  ++seen_["clock settled"];
  frozen_ = false;
  mark_ = now_();
  for (auto& [fence, left] : left_) left.until = std::min(left.until, mark_ + absl::Minutes(5));
  for (auto& [key, row] : rows_) {
    row.wait = std::min(row.wait, mark_ + absl::Minutes(5));
    if (row.state != State::kRunning) continue;
    row.state = State::kPlanned;
    row.fence = 0;
  }
}

}  // namespace matins
