#include "simulate/simulated_node.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "job/json.h"
#include "job/resolve.h"

namespace matins {
namespace {

constexpr int kAtOnce = 500;
// A row that START refused is looked at again after so long, unless something frees it before.
constexpr absl::Duration kPutOff = absl::Minutes(1);
// Planning and starting come to rest long before.
constexpr int kMostRounds = 1'000'000;
// When a store that cannot plan a job is asked again.
constexpr absl::Duration kAgain = absl::Hours(1);

}  // namespace

SimulatedNode::SimulatedNode(const SimulateRequest& request, Store& store, const absl::Time& now)
    : request_(request), store_(store), now_(now), start_(now), next_look_(now) {
  std::set<std::string> labels;
  for (const Job& job : request.jobs) labels.insert(job.nodes.begin(), job.nodes.end());
  id_ = {"simulated", {labels.begin(), labels.end()}};
  next_start_ = now;
}

absl::Status SimulatedNode::Tick() {
  TickRequest tick;
  tick.node = id_;
  tick.boot = tick.asking = now_ - start_ + absl::Hours(1);
  tick.wall = now_;
  ASSIGN_OR_RETURN(const TickAnswer answer, store_.Tick(tick));
  if (answer.returned) next_look_ = now_;
  return absl::OkStatus();
}

absl::Time SimulatedNode::NextAt() const {
  absl::Time next = std::min(next_look_, next_start_);
  for (const auto& [fence, run] : running_) next = std::min({next, run.ends, run.beat});
  for (const auto& [fence, lease] : orphans_) next = std::min(next, lease);
  return std::max(next, now_ + absl::Microseconds(1));
}

void SimulatedNode::Die() {
  for (const auto& [fence, run] : running_) orphans_[fence] = run.lease;
  running_.clear();
}

absl::Status SimulatedNode::Act() {
  RETURN_IF_ERROR(Beat());
  RETURN_IF_ERROR(FinishEnded());
  RETURN_IF_ERROR(ReapLost());
  for (int round = 0; round < kMostRounds; ++round) {
    ASSIGN_OR_RETURN(const bool planned, PlanDue());
    ASSIGN_OR_RETURN(const bool started, StartDue());
    RETURN_IF_ERROR(FinishEnded());
    if (!planned && !started) return absl::OkStatus();
  }
  return absl::InternalError("the simulation does not come to rest");
}

absl::Status SimulatedNode::Beat() {
  std::vector<ExtendRequest> beats;
  for (auto& [fence, run] : running_) {
    if (run.beat > now_) continue;
    const absl::Duration ttl = Current(run.claim.key.job).lock.ttl;
    beats.push_back({TicketOf(run.claim), ttl});
    run.beat = now_ + ttl - ttl / 4;
    run.lease = now_ + ttl;
  }
  return beats.empty() ? absl::OkStatus() : store_.Extend(beats).status();
}

absl::Status SimulatedNode::FinishEnded() {
  std::vector<FinishRequest> ends;
  for (const auto& [fence, run] : running_) {
    if (run.ends > now_) continue;
    const Job& job = Current(run.claim.key.job);
    Outcome outcome;
    outcome.started_at = run.claim.claimed_at;
    if (!run.in_time) {
      outcome.kind = Outcome::Kind::kFailed;
      outcome.reason = reason::kTimeout;
      outcome = AfterFailure(job, run.claim.attempt, fence, std::move(outcome));
    }
    ends.push_back({TicketOf(run.claim), outcome, id_.name});
  }
  if (ends.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(store_.Finish(ends).status());
  for (const FinishRequest& end : ends) {
    seen_[end.ticket.key].finished = now_;
    running_.erase(end.ticket.fence);
  }
  next_start_ = now_;
  return absl::OkStatus();
}

absl::Status SimulatedNode::ReapLost() {
  const size_t lost =
      std::erase_if(orphans_, [&](const auto& orphan) { return orphan.second <= now_; });
  if (lost == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<StaleRun> stale, store_.ReadStale(kAtOnce));
  std::vector<ReapRequest> reaps;
  for (const StaleRun& run : stale) {
    if (running_.contains(run.row.fence)) continue;
    const LossVerdict verdict = AfterLoss(Current(run.row.key.job), run.row);
    reaps.push_back({{run.row.key, run.row.generation, run.row.fence, run.row.nonce},
                     verdict.to,
                     verdict.reason,
                     id_.name});
    ++seen_[run.row.key].lost;
  }
  if (reaps.empty()) return absl::OkStatus();
  next_start_ = now_;
  return store_.Reap(reaps).status();
}

absl::StatusOr<bool> SimulatedNode::PlanDue() {
  bool any = false;
  if (!look_again_.empty()) {
    ReadDueRequest again;
    again.jobs = std::move(look_again_);
    look_again_.clear();
    ASSIGN_OR_RETURN(DueJobs due, store_.ReadDue(again));
    ASSIGN_OR_RETURN(any, PlanJobs(std::move(due)));
  }
  if (next_look_ > now_) return any;
  ReadDueRequest request;
  request.ahead = absl::ZeroDuration();
  request.limit = kAtOnce;
  ASSIGN_OR_RETURN(DueJobs due, store_.ReadDue(request));
  next_look_ = due.next_look;
  if (due.jobs.empty()) return any;
  ASSIGN_OR_RETURN(const bool written, PlanJobs(std::move(due)));
  return any || written;
}

absl::StatusOr<bool> SimulatedNode::PlanJobs(DueJobs due) {
  PlanRequest plans;
  for (const JobState& state : due.jobs) {
    PlanInput input;
    input.state = &state;
    std::vector<VersionInForce> versions;
    for (const JobVersion& version : state.versions) {
      ASSIGN_OR_RETURN(const ResolvedJob* const meaning, Meaning(version.definition));
      versions.push_back({version.number, version.from, meaning});
      current_[state.job] = meaning;
    }
    input.versions = versions;
    input.now = due.now;
    input.ahead = absl::ZeroDuration();
    absl::StatusOr<PlanWrite> write = PlanJob(input);
    if (!write.ok()) {
      problems_[state.job] = std::string(write.status().message());
      next_look_ = std::min(next_look_, now_ + kAgain);
      continue;
    }
    next_look_ = std::min(next_look_, write->next_look);
    plans.writes.push_back(*std::move(write));
  }
  if (plans.writes.empty()) return false;
  RETURN_IF_ERROR(store_.Plan(plans).status());
  next_start_ = now_;
  return true;
}

absl::StatusOr<const ResolvedJob*> SimulatedNode::Meaning(const std::string& definition) {
  std::unique_ptr<ResolvedJob>& meaning = meanings_[definition];
  if (meaning == nullptr) {
    ASSIGN_OR_RETURN(const Job job, JobFromJson(definition));
    ASSIGN_OR_RETURN(ResolvedJob resolved, ResolveJob(job));
    meaning = std::make_unique<ResolvedJob>(std::move(resolved));
  }
  return meaning.get();
}

absl::StatusOr<bool> SimulatedNode::StartDue() {
  if (next_start_ > now_) return false;
  const int free = request_.slots - static_cast<int>(running_.size());
  bool any = false;
  if (free > 0) {
    StartRequest request;
    request.node = id_;
    request.nonce = 1 + static_cast<int64_t>(seen_.size());
    request.also_due = std::min(free, kAtOnce);
    request.not_after = now_;
    request.put_off = kPutOff;
    ASSIGN_OR_RETURN(const StartAnswers answers, store_.Start(request));
    std::vector<PeriodKey> newcomers;
    std::set<std::string> again;
    for (const StartAnswer& answer : answers.rows) {
      if (answer.claim) {
        Launch(*answer.claim);
        any = true;
      } else if (answer.result == StartResult::kMissed || answer.result == StartResult::kGap) {
        again.insert(answer.key.job);
      } else if (answer.result == StartResult::kBusy &&
                 Current(answer.key.job).overlap == Overlap::kReplace) {
        newcomers.push_back(answer.key);
      }
    }
    look_again_.assign(again.begin(), again.end());
    if (!newcomers.empty()) {
      RETURN_IF_ERROR(Replace(newcomers));
      any = true;
    }
    any = any || !look_again_.empty();
  }
  HoldRequest peek;
  peek.node = id_;
  peek.ahead = absl::ZeroDuration();
  peek.limit = 0;
  ASSIGN_OR_RETURN(const HoldAnswer held, store_.Hold(peek));
  // What is due and found no slot waits for an end.
  next_start_ = any && held.due ? now_ : held.next_start;
  return any;
}

absl::Status SimulatedNode::Replace(const std::vector<PeriodKey>& newcomers) {
  ASSIGN_OR_RETURN(const std::vector<Ticket> burnt, store_.Replace(newcomers));
  for (const Ticket& ticket : burnt) {
    running_.erase(ticket.fence);
    seen_[ticket.key].finished = now_;
  }
  return store_.ReportDead(burnt);
}

void SimulatedNode::Launch(const Claim& claim) {
  const Job& job = Current(claim.key.job);
  const absl::Duration takes = DurationOf(job.name);
  Run run;
  run.claim = claim;
  run.in_time = takes <= job.timeout;
  run.ends = now_ + std::min(takes, job.timeout);
  run.beat = now_ + job.lock.ttl - job.lock.ttl / 4;
  run.lease = now_ + job.lock.ttl;
  Seen& seen = seen_[claim.key];
  seen.started = now_;
  if (seen.first_started == absl::InfinitePast()) seen.first_started = now_;
  ++seen.attempts;
  running_[claim.fence] = std::move(run);
  if (static_cast<int>(running_.size()) > most_running_) {
    most_running_ = static_cast<int>(running_.size());
    most_running_at_ = now_;
  }
}

absl::Duration SimulatedNode::DurationOf(const std::string& job) {
  const auto it = request_.durations.find(job);
  if (it == request_.durations.end() || it->second.empty()) return request_.otherwise;
  return it->second[turn_[job]++ % it->second.size()];
}

}  // namespace matins
