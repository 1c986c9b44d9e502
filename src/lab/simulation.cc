// The world: time, turns, and what the network does. What people and fate do to it is in
// mischief.cc; how it is judged, in verdict.cc.
#include "lab/simulation.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"

namespace matins {
namespace {

// 2026-10-30T00:00:00Z.
constexpr int64_t kStart = 1'793'318'400;
constexpr absl::Duration kLongestJump = absl::Seconds(1);

}  // namespace

Simulation::Simulation(const SimulationOptions& options)
    : options_(options),
      random_(options.seed),
      fate_random_(options.seed ^ 0x5eed),
      limit_random_(options.seed ^ 0x11317),
      door_(options.seed ^ 0xd00f),
      start_(absl::FromUnixSeconds(kStart)),
      clock_steps_(options.seed % 4 == 3),
      limits_(options.seed % 3 == 1),
      referee_([this] { return StoreNow(); }) {
  network_.fate = [this](absl::string_view verb) { return FateOf(verb); };
  network_.late = [this](std::function<void()> call) {
    In(absl::Milliseconds(random_.Below(9'000)), std::move(call));
  };
  SetFaultHook([this](absl::string_view point) { return AtFaultPoint(point); });
}

Simulation::~Simulation() {
  SetFaultHook(nullptr);
  nodes_.clear();
}

absl::Status Simulation::Open(const SimDatabaseMaker& maker) {
  trouble_ = false;
  ASSIGN_OR_RETURN(database_, maker([this] { return StoreNow(); }));
  RETURN_IF_ERROR(database_->database().Migrate());
  ASSIGN_OR_RETURN(acts_, database_->database().OpenActs());
  RETURN_IF_ERROR(acts_->SetJournal(true));
  jobs_ = MakeJobs(random_);
  if (limits_) GiveTenants(jobs_, limit_random_);
  std::vector<Job> jobs;
  for (const SimJob& job : jobs_) {
    referee_.Knows(job);
    jobs.push_back(job.job);
  }
  RETURN_IF_ERROR(ApplyJobs(jobs));
  if (limits_) RETURN_IF_ERROR(SetLimits(MakeLimits(limit_random_)));
  const int count = 2 + static_cast<int>(random_.Below(4));
  for (int i = 0; i < count; ++i) {
    SimNodeParts parts;
    parts.name = absl::StrCat("node-", i);
    parts.door = &door_;
    parts.database = &database_->database();
    parts.network = &network_;
    parts.referee = &referee_;
    parts.history = this;
    parts.events = this;
    parts.options.slots = 2 + static_cast<int>(random_.Below(6));
    parts.options.poll = absl::Seconds(2);
    parts.options.sweep = absl::Seconds(1);
    parts.options.tick = absl::Seconds(2);
    parts.options.put_off = absl::Seconds(2);
    parts.options.clock_settle = absl::Seconds(20);
    parts.options.quiet_tick = absl::Seconds(4);
    parts.options.quiet_after = absl::Milliseconds(500);
    parts.options.quiet_ahead = absl::Seconds(2);
    // Of every other seed no word of a change ever arrives at a node that rests.
    parts.hears = options_.seed % 2 == 0;
    // Nodes' wall clocks are wrong by years, and nothing may care (I23).
    const absl::Duration skew = absl::Hours(24) * (static_cast<int>(random_.Below(7000)) - 3500);
    nodes_.push_back(std::make_unique<SimNode>(
        std::move(parts), start_ + skew, ledger_,
        SimHost::Parts{[this](const RunRequest& request) { return FateOfRun(request); },
                       [this](const RunRequest& request) { return CommitByJob(request); },
                       [this] { return StoreNow(); }}));
    RETURN_IF_ERROR(nodes_.back()->Boot(random_.Next(), MakeLabels(i == 0, random_)));
  }
  trouble_ = true;
  return absl::OkStatus();
}

const SimJob& Simulation::JobOf(const std::string& name) const {
  const auto is_it = [&](const SimJob& job) { return job.job.name == name; };
  return *std::find_if(jobs_.begin(), jobs_.end(), is_it);
}

bool Simulation::IsDaily(const std::string& job) const {
  return JobOf(job).versions.back().every >= absl::Hours(24);
}

Fate Simulation::FateOfRun(const RunRequest& request) {
  return MakeFate(JobOf(request.values.job).job, trouble_, fate_random_);
}

bool Simulation::CommitByJob(const RunRequest& request) {
  const PeriodKey key = {request.values.job, request.values.period};
  const int generation = request.values.generation;
  const absl::StatusOr<bool> done = database_->CommitByJob(key, generation, request.run);
  if (!done.ok()) referee_.Broken("lab", std::string(done.status().message()));
  if (done.ok()) {
    referee_.CommittedByJob(key, generation, request.run, *done);
    Record({.type = "commit",
            .result = *done ? "ok" : "refused",
            .job = key.job,
            .period = key.period,
            .fence = request.run});
  }
  return done.value_or(false);
}

absl::Status Simulation::ApplyJobs(const std::vector<Job>& jobs) {
  ApplyRequest request;
  for (const Job& job : jobs) request.jobs.push_back({job, JobToJson(job)});
  request.source = "simulation";
  request.digest = absl::StrCat("digest-", ++digest_);
  request.act = {"simulator", "a seed"};
  return acts_->Apply(request).status();
}

absl::Status Simulation::SetLimits(const SetLimitsRequest& request) {
  // No START of the same instant: the checker would not know which came first.
  Advance(absl::Microseconds(1));
  RETURN_IF_ERROR(acts_->SetLimits(request).status());
  for (const LimitRule& rule : request.clear) Tell(absl::StrCat("no limit: ", LimitName(rule)));
  for (const LimitRule& rule : request.set) {
    Tell(absl::StrCat("limit: ", LimitName(rule), " ", rule.most));
  }
  referee_.LimitsSet(request);
  return absl::OkStatus();
}

// ---- time and turns
// -------------------------------------------------------------------------------

void Simulation::In(absl::Duration delay, std::function<void()> action) {
  later_.push_back({elapsed_ + delay, std::move(action)});
}

void Simulation::Advance(absl::Duration d) {
  elapsed_ += d;
  for (auto& node : nodes_) {
    node->clock.Advance(d);
    if (!node->machine_paused) node->host.Advance(/*guards_first=*/true);
  }
  for (size_t i = 0; i < later_.size();) {
    if (later_[i].at > elapsed_) {
      ++i;
      continue;
    }
    const std::function<void()> action = std::move(later_[i].action);
    later_.erase(later_.begin() + static_cast<ptrdiff_t>(i));
    action();
    i = 0;
  }
}

absl::Duration Simulation::NextAt() {
  absl::Duration next = absl::InfiniteDuration();
  for (const Later& later : later_) next = std::min(next, later.at);
  for (auto& node : nodes_) {
    const absl::Duration at = node->NextAt();
    if (at == absl::InfiniteDuration()) continue;
    next = std::min(next, elapsed_ + std::max(absl::ZeroDuration(), at - node->clock.BootNow()));
  }
  return next;
}

void Simulation::Turn(absl::Duration until) {
  ++turns_;
  std::vector<std::pair<SimNode*, LaneKind>> ready;
  for (auto& node : nodes_) {
    if (!node->alive() || node->node_paused || node->machine_paused || node->inside) continue;
    for (const LaneKind kind : kAllLanes) {
      if (node->NextStep(kind) <= node->clock.BootNow()) ready.emplace_back(node.get(), kind);
    }
  }
  if (ready.empty()) {
    const absl::Duration next = std::min({NextAt(), until, elapsed_ + kLongestJump});
    Advance(std::max(next - elapsed_, absl::Milliseconds(1)));
    return;
  }
  const auto [node, kind] = ready[random_.Below(ready.size())];
  SimNode* const outer = std::exchange(stepping_, node);
  node->Step(kind);
  stepping_ = outer;
  // A call takes its time; now and then a long time.
  const bool slow = trouble_ && random_.OneIn(60);
  Advance(slow ? absl::Milliseconds(random_.Below(1'500))
               : absl::Microseconds(random_.Below(4'000)));
}

void Simulation::RunUntil(absl::Duration until) {
  while (elapsed_ < until) Turn(until);
}

// ---- the network
// ----------------------------------------------------------------------------------

CallFate Simulation::FateOf(absl::string_view verb) {
  const bool deaf = options_.deaf && nodes_.size() >= 3 && stepping_ == nodes_.back().get();
  if (deaf && !trouble_) return CallFate::kLostAnswer;
  if (!trouble_ || stepping_ == nullptr) return CallFate::kFine;
  const uint64_t dice = random_.Below(200);
  if (dice == 0) return CallFate::kAway;
  if (dice == 1) return CallFate::kLostRequest;
  if (dice == 2) return CallFate::kLostAnswer;
  const bool owners = verb == "Finish" || verb == "Extend" || verb == "Checkpoint";
  if (owners && dice == 3) return CallFate::kLate;
  if (owners && dice < 8) return dice < 6 ? CallFate::kLostAnswer : CallFate::kLostRequest;
  if (verb == "Finish" && dice < 14) return CallFate::kLate;
  return CallFate::kFine;
}

// At a crash window a node may stand still while the others go on, as a SIGSTOP or a wait for a
// lock would have it.
absl::Status Simulation::AtFaultPoint(absl::string_view point) {
  if (!trouble_ || stepping_ == nullptr || depth_ > 0) return absl::OkStatus();
  if (absl::EndsWith(point, "_commit")) return absl::OkStatus();  // SQLite's lock is held
  const bool window = point == "reap.before_write" || point == "finish.before_send";
  // Several transactions: what the model does in one step could not be said to be right or wrong.
  if (absl::StrContains(point, ".purge.")) return absl::OkStatus();
  if (absl::EndsWith(point, ".before_lock")) {
    // Somebody else holds the write lock for a while, so that nobody gets on.
    if (random_.OneIn(50)) Advance(absl::Milliseconds(random_.Below(5'000)));
    return absl::OkStatus();
  }
  if (!random_.OneIn(window ? 6 : 40)) return absl::OkStatus();
  SimNode* const node = stepping_;
  ++depth_;
  node->machine_paused = random_.OneIn(2);
  Tell(absl::StrCat("stands still at ", point));
  RunUntil(elapsed_ + absl::Milliseconds(200 + random_.Below(14'000)));
  if (node->machine_paused) {
    node->machine_paused = false;
    node->host.Advance(/*guards_first=*/random_.OneIn(2));
  }
  stepping_ = node;
  --depth_;
  return absl::OkStatus();
}

// ---- what is told
// ---------------------------------------------------------------------------------

void Simulation::Record(const HistoryEvent& event) {
  absl::StrAppend(&testimony_, HistoryLine(event), "\n");
}

void Simulation::OnEvent(const EngineEvent& event) {
  if (!options_.story) return;
  Tell(absl::StrCat(event.name, event.alarm ? " (alarm) " : " ", event.key.job, " ",
                    event.key.period, " ", event.fence & 0xffffffffff, " ", event.detail));
}

void Simulation::Tell(const std::string& text) {
  if (!options_.story) return;
  std::fprintf(stderr, "%10.3f %s %s\n", absl::ToDoubleSeconds(elapsed_),
               stepping_ != nullptr ? stepping_->lanes().node().options.id.name.c_str() : "world",
               text.c_str());
}

}  // namespace matins
