#include "engine/job_turn.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "engine/launch.h"
#include "engine/plan_tries.h"
#include "engine/shared_store.h"
#include "engine/timing.h"
#include "engine/witness.h"
#include "plan/plan.h"

namespace matins {
namespace {

// A history that grew for long is removed in so many steps a call.
constexpr int kMostPurges = 20;

// Also what START asks of an ordered job, that planning has gone as far as its rows, stands
// already.
bool SaysNothing(const PlanWrite& write, const JobState& state) {
  const absl::Time last = state.rows.empty() ? absl::InfinitePast() : state.rows.back().due;
  return write.intents.empty() && write.spans.empty() && !write.gaps_filled && !write.triggered &&
         last <= state.cursor;
}

bool IsPlain(const Intent& intent) {
  return intent.kind == Intent::Kind::kInsert && !intent.reopens;
}

// What stands there once `write` was taken, where it makes new rows and nothing else. START asks
// each row again: one that another program had made before is found out there. Nothing: it has to
// be read.
std::optional<JobState> StateAfter(const JobState& before, const PlanWrite& write) {
  if (write.gaps_filled || !write.spans.empty() ||
      !std::all_of(write.intents.begin(), write.intents.end(), IsPlain)) {
    return std::nullopt;
  }
  JobState state = before;
  ++state.revision;
  state.cursor = std::max(state.cursor, write.cursor);
  if (write.triggered) state.pending.reset();
  for (const Intent& intent : write.intents) {
    if (intent.skip_reason.empty()) state.rows.push_back(PlannedRow(intent));
  }
  std::stable_sort(state.rows.begin(), state.rows.end(),
                   [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  return state;
}

}  // namespace

absl::Duration JobTurn::Seen::BootAt(absl::Time t) const {
  return matins::BootAt(t, now, received);
}

JobTurn::JobTurn(std::string job, std::shared_ptr<Store> store, std::unique_ptr<Random> random)
    : job_(std::move(job)), store_(std::move(store)), random_(std::move(random)) {}

JobTurn::~JobTurn() {
  if (lanes_ == nullptr) return;
  for (const LaneKind kind : kAllLanes) lanes_->node().bell(kind).OnRing({});
}

absl::StatusOr<std::unique_ptr<JobTurn>> JobTurn::Open(JobTurnParts parts) {
  auto turn = std::unique_ptr<JobTurn>(
      new JobTurn(std::move(parts.job), parts.store, std::move(parts.random)));
  turn->get_ready_ = std::move(parts.get_ready);
  NodeParts node;
  node.options = std::move(parts.options);
  node.clock = parts.clock;
  node.runner = parts.runner;
  node.history = parts.history;
  node.events = parts.events;
  node.random = std::make_unique<SeededRandom>(turn->random_->Next());
  node.open_store = [store = turn->store_](LaneKind) { return ShareStore(store); };
  ASSIGN_OR_RETURN(turn->lanes_, Lanes::Open(std::move(node)));
  turn->node().bell(LaneKind::kFinish).OnRing(std::move(parts.wake_up));
  return turn;
}

absl::StatusOr<JobTurn::Seen> JobTurn::Read() {
  ReadDueRequest request;
  request.jobs = {job_};
  request.by_node = true;
  ASSIGN_OR_RETURN(DueJobs due, store_->ReadDue(request));
  Seen seen{.now = due.now, .received = node().clock.BootNow(), .frozen = due.frozen};
  node().frozen = due.frozen;
  if (due.jobs.empty()) return seen;
  node().definitions.Note(due.jobs.front());
  seen.state = std::move(due.jobs.front());
  return seen;
}

absl::StatusOr<PlanWrite> JobTurn::Judge(const Seen& seen, absl::Duration ahead,
                                         std::optional<Trigger> trigger) {
  std::vector<DefinitionPtr> meanings;
  std::vector<VersionInForce> versions;
  for (const JobVersion& version : seen.state->versions) {
    ASSIGN_OR_RETURN(DefinitionPtr meaning, node().definitions.Resolve(version.definition));
    versions.push_back({version.number, version.from, meaning.get()});
    meanings.push_back(std::move(meaning));
  }
  PlanInput input;
  input.state = &*seen.state;
  input.versions = versions;
  input.now = seen.now;
  input.ahead = ahead;
  input.trigger = trigger;
  return PlanJob(input);
}

absl::StatusOr<JobTurn::Seen> JobTurn::Plan(absl::Duration ahead, std::optional<Trigger> trigger) {
  ASSIGN_OR_RETURN(Seen seen, Read());
  return Plan(std::move(seen), ahead, trigger);
}

absl::StatusOr<JobTurn::Seen> JobTurn::Plan(Seen seen, absl::Duration ahead,
                                            std::optional<Trigger> trigger) {
  PlanTries tries(*random_);
  while (tries.Next()) {
    if (!seen.state || seen.frozen || seen.state->suspended) return seen;
    ASSIGN_OR_RETURN(PlanWrite write, Judge(seen, ahead, trigger));
    // Whatever is due by then is in the state that was judged, or in what is written now.
    judged_until_ = seen.now + ahead;
    if (SaysNothing(write, *seen.state)) return seen;
    PlanRequest request;
    request.writes.push_back(std::move(write));
    if (get_ready_) get_ready_();
    MATINS_FAULT_POINT("plan.before_write");
    ASSIGN_OR_RETURN(const PlanAnswers answers, store_->Plan(request));
    MATINS_FAULT_POINT("plan.after_write");
    const bool written = !answers.jobs.empty() && answers.jobs.front().written;
    ++(written ? node().counters.plans : node().counters.plans_stale);
    // A long backlog is planned in parts; each goes on where the last one ended.
    if (written && request.writes.front().next_look > seen.now) {
      std::optional<JobState> after = StateAfter(*seen.state, request.writes.front());
      if (!after) return Read();
      seen.state = std::move(after);
      return seen;
    }
    if (written) {
      trigger.reset();
      tries.NextPart();
    }
    ASSIGN_OR_RETURN(seen, Read());
  }
  return tries.GaveUp(job_);
}

absl::StatusOr<StartAnswer> JobTurn::Start(const PeriodKey& key) {
  EngineNode& node = this->node();
  StartRequest request;
  request.node = node.options.id;
  request.nonce = static_cast<int64_t>(random_->Next() >> 1 | 1);
  request.keys = {key};
  request.global_limit = node.options.global_limit;
  request.put_off = node.options.put_off;
  request.not_after = judged_until_;
  Testify(node, "claim", "inv", {key, 0, 0, request.nonce});
  MATINS_FAULT_POINT("start.before_send");
  const absl::Duration sent = node.clock.BootNow();
  absl::StatusOr<StartAnswers> answers = store_->Start(request);
  if (!answers.ok()) {
    Testify(node, "claim", "info", {key, 0, 0, request.nonce}, -1, answers.status().message());
    return answers.status();
  }
  MATINS_FAULT_POINT("start.after_answer");
  if (answers->rows.empty()) return absl::InternalError("START answered for no row");
  StartAnswer& answer = answers->rows.front();
  if (answer.claim) {
    std::vector<RunRequest> launched;
    TakeClaim(node, *store_, *answer.claim, ProofOf(sent, node.clock.BootNow()), launched);
    if (!launched.empty()) node.runner.StartAll(std::move(launched));
    MATINS_FAULT_POINT("start.after_launch");
    next_beat_ = next_finish_ = absl::ZeroDuration();
  } else {
    ++node.counters.starts_refused;
    Testify(node, "claim", "refused", {key, 0, 0, request.nonce}, -1, answer.blocker);
  }
  return std::move(answer);
}

bool JobTurn::running() const { return lanes_->node().live.count() > 0; }

absl::Duration JobTurn::Step() {
  const absl::Duration now = node().clock.BootNow();
  if (now >= next_finish_ || node().bell(LaneKind::kFinish).IsRung()) {
    next_finish_ = lanes_->Step(LaneKind::kFinish);
  }
  if (now >= next_beat_ || node().bell(LaneKind::kBeat).IsRung()) {
    next_beat_ = lanes_->Step(LaneKind::kBeat);
  }
  return std::min(next_finish_, next_beat_);
}

void JobTurn::StopBySignal(int signal) {
  node().stopping = true;  // so that a check that begins now is stopped too
  for (const LiveRunPtr& run : node().live.All()) {
    if (run->definition == nullptr) continue;
    node().runner.StopBySignal(run->claim.fence, StopReason::kShutdown, run->job().grace, signal);
    node().StopRun(*run, StopReason::kShutdown, run->job().grace);
  }
}

void JobTurn::PassSignal(int signal) {
  for (const LiveRunPtr& run : node().live.All()) {
    node().runner.PassSignal(run->claim.fence, signal);
  }
}

absl::Status JobTurn::Reap() {
  const int64_t errors = node().counters.store_errors;
  lanes_->Step(LaneKind::kReap);
  if (node().counters.store_errors == errors) return absl::OkStatus();
  return StoreAwayError("runs whose lease has ended could not be taken back");
}

bool JobTurn::Tick() {
  ticked_ = true;
  lanes_->Step(LaneKind::kTick);
  return node().frozen;
}

absl::Status JobTurn::Leave() {
  if (!ticked_) return absl::OkStatus();
  int64_t gone = 0;
  for (int i = 0; i < kMostPurges && std::exchange(gone, node().counters.purged) != gone; ++i) {
    lanes_->Step(LaneKind::kTick);
  }
  return lanes_->Leave();
}

}  // namespace matins
