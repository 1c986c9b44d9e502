#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/time.h"
#include "job/local_window.h"
#include "job/words.h"
#include "schedule/schedule.h"
#include "store/model/model_start.h"
#include "store/model/state.h"
#include "store/rules.h"

namespace matins::model {
namespace {

// A row of another program has no due instant; its day stands for it.
bool Since(const ModelRow& row, absl::Time gap_from) {
  if (row.due != kPast) return row.due >= gap_from;
  const absl::Time from = gap_from - absl::Hours(48);
  return !IsOpen(row) && row.biz_date >= absl::ToCivilDay(from, absl::UTCTimeZone());
}

class ModelStore final : public Store {
 public:
  explicit ModelStore(std::shared_ptr<State> state) : state_(std::move(state)), s_(*state_) {}

  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    DueJobs due;
    due.now = s_.Now();
    due.frozen = request.by_node ? s_.FrozenToNodes() : s_.Frozen();
    std::vector<std::string> names;
    if (request.jobs.empty()) {
      std::vector<std::pair<absl::Time, std::string>> ready;
      for (const auto& [name, job] : s_.jobs) {
        if (!job.deleted && job.row.next_look <= due.now + request.ahead) {
          ready.emplace_back(job.row.next_look, name);
        }
      }
      std::sort(ready.begin(), ready.end());
      if (const size_t limit = request.limit; ready.size() > limit) {
        ready.erase(ready.begin() + (limit - limit / 2), ready.end() - limit / 2);
      }
      for (const auto& [at, name] : ready) names.push_back(name);
    } else {
      for (const std::string& name : request.jobs) {
        if (s_.FindJob(name) != nullptr) names.push_back(name);
      }
    }
    for (const std::string& name : names) due.jobs.push_back(StateOf(name));
    for (const auto& [name, job] : s_.jobs) {
      if (job.deleted || std::find(names.begin(), names.end(), name) != names.end()) continue;
      due.next_look = std::min(due.next_look, job.row.next_look);
    }
    return due;
  }

  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<JobDefinition> definitions;
    for (const std::string& name : jobs) {
      const ModelJob* job = s_.FindJob(name);
      if (job == nullptr) continue;
      const JobVersion& newest = job->versions.back();
      definitions.push_back({name, newest.number, newest.definition});
    }
    return definitions;
  }

  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    PlanAnswers answers;
    answers.now = s_.Now();
    int room = request.hold_at_most;
    const NodeId* hold_by = request.hold_by.name.empty() ? nullptr : &request.hold_by;
    const bool frozen = hold_by != nullptr ? s_.FrozenToNodes() : s_.Frozen();
    for (const PlanWrite& write : request.writes) {
      PlanAnswer answer;
      answer.written =
          !frozen && s_.WritePlan(write, hold_by, request.hold_ahead, &room, &answer.held);
      answers.jobs.push_back(std::move(answer));
    }
    return answers;
  }

  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    HoldAnswer answer;
    answer.now = s_.Now();
    const absl::Time until = answer.now + request.ahead;
    if (!s_.FrozenToNodes()) {
      for (ModelRow* row : starts_.Waiting(request.node, until)) {
        const bool put_off = row->look_at > row->not_before;
        if (row->look_at <= answer.now ? !request.due : put_off) continue;
        if (static_cast<int>(answer.rows.size()) >= request.limit) break;
        row->held_by = request.node.name;
        row->held_until = std::max(answer.now, row->not_before) + kHoldFor;
        row->dispatched_at = row->changed_at = answer.now;
        ++row->change;
        answer.rows.push_back({row->key, row->not_before, row->priority});
      }
    }
    answer.due = !starts_.Waiting(request.node, answer.now).empty();
    for (const auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kPlanned || row.look_at <= answer.now) continue;
      if (row.look_at > until) {
        answer.next_start = std::min(answer.next_start, row.look_at);
      } else if (row.look_at > row.not_before) {
        answer.next_look = std::min(answer.next_look, row.look_at);
      }
    }
    return answer;
  }

  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    StartAnswers answers;
    answers.now = s_.Now();
    int started = 0;
    const auto start = [&](const PeriodKey& key) {
      StartAnswer answer = starts_.StartOne(request, key);
      started += answer.claim.has_value();
      answers.rows.push_back(std::move(answer));
    };
    for (const PeriodKey& key : request.keys) start(key);
    if (request.also_due <= 0 || s_.FrozenToNodes()) return answers;
    const int wanted = started + request.also_due;
    for (const PeriodKey& key : starts_.AlsoDue(request)) {
      if (started >= wanted) break;
      start(key);
    }
    answers.more = started >= wanted;
    return answers;
  }

  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    std::vector<Ticket> burnt;
    if (s_.FrozenToNodes()) return burnt;
    for (const PeriodKey& key : newcomers) {
      const ModelRow* row = s_.FindRow(key);
      const ModelJob* job = s_.FindJob(key.job);
      if (row == nullptr || job == nullptr || job->job.overlap != Overlap::kReplace ||
          job->row.suspension || row->status != PeriodStatus::kPlanned ||
          row->not_before > s_.Now()) {
        continue;
      }
      for (auto& [old_key, old] : s_.rows) {
        if (old_key.job != key.job || old.status != PeriodStatus::kRunning || old.due == kPast ||
            old.due >= row->due) {
          continue;
        }
        burnt.push_back({old_key, old.generation, old.fence, old.nonce});
        if (!old.lock_key.empty()) {
          s_.locks[old.lock_key] = {old_key, old.fence,
                                    std::max(old.lease_until, s_.Now()) + job->job.grace};
        }
        Ending ending;
        ending.outcome.reason = reason::kReplaced;
        ending.outcome.message = absl::StrCat("replaced by ", key.period);
        ending.run_word = "REPLACED";
        ending.skip = ending.burn = true;
        s_.LeaveSlot(old, std::max(old.lease_until, s_.Now()) + job->job.grace);
        s_.EndAttempt(old, ending);
      }
    }
    return burnt;
  }

  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<ExtendAnswer> answers;
    for (const ExtendRequest& request : requests) {
      ExtendAnswer answer;
      answer.now = s_.Now();
      answer.lease_until = kPast;
      ModelRow* row = s_.FindRow(request.ticket.key);
      answer.refusal.why = RefusalOfOwner(row, request.ticket);
      if (answer.refusal.accepted()) {
        row->lease_until =
            std::max(row->lease_until, std::min(answer.now + request.ttl, row->run_until));
        answer.lease_until = row->lease_until;
        ++row->renewals;
        answer.cancel_asked = row->cancel_asked;
        answer.cancel_why = row->cancel_why;
        ++row->change;
        row->changed_at = answer.now;
      }
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override {
    absl::MutexLock lock(&s_.mutex);
    for (const CheckpointRequest& request : requests) {
      if (request.data.size() > kCheckpointBytes || request.number <= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("checkpoint: number from 1, at most ", kCheckpointBytes, " bytes"));
      }
    }
    std::vector<Refusal> answers;
    for (const CheckpointRequest& request : requests) {
      ModelRow* row = s_.FindRow(request.ticket.key);
      Refusal refusal{RefusalOfOwner(row, request.ticket)};
      if (refusal.accepted() && request.number <= row->checkpoint) refusal.why = "checkpoint";
      if (refusal.accepted()) {
        row->checkpoint = request.number;
        row->checkpoint_data = request.data;
        row->checkpointed_at = row->changed_at = s_.Now();
        ++row->change;
      }
      answers.push_back(std::move(refusal));
    }
    return answers;
  }

  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    std::vector<Refusal> answers;
    for (const FinishRequest& request : requests) answers.push_back({FinishOne(request)});
    return answers;
  }

  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    using Kind = ResolveAnswer::Kind;
    std::vector<ResolveAnswer> answers;
    for (const FinishRequest& request : requests) {
      ModelRow* row = s_.FindRow(request.ticket.key);
      const bool by_job = request.outcome.kind == Outcome::Kind::kDoneByJob;
      const bool completes = by_job || request.outcome.kind == Outcome::Kind::kDone;
      const auto run = s_.runs.find(request.ticket.fence);
      const bool ended_so = run != s_.runs.end() && run->second.node == request.node &&
                            run->second.status == RunWord(request.outcome);
      Kind kind = Kind::kNotCommitted;
      if (completes && row != nullptr && DoneBy(*row, request.ticket)) {
        kind = Kind::kCommitted;
        if (by_job) FinishOne(request);
      } else if (ended_so) {
        kind = Kind::kCommitted;
      } else if (row != nullptr && s_.OwnedBy(*row, request.ticket)) {
        if (!by_job && FinishOne(request).empty()) {
          kind = Kind::kCommitted;
        } else {
          const Ending ending = s_.TakenBack(*row);
          s_.EndAttempt(*row, ending);
          News(row->key.job, ending.run_word, ending.outcome.reason, kPast, {});
        }
      }
      answers.push_back({kind});
    }
    return answers;
  }

  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<StaleRun> stale;
    if (s_.FrozenToNodes()) return stale;
    for (const auto& [key, row] : s_.rows) {
      if (row.status == PeriodStatus::kRunning && row.lease_until <= s_.Now()) {
        stale.push_back({row, s_.Now() - row.lease_until, false});
      }
    }
    std::stable_sort(stale.begin(), stale.end(), [](const StaleRun& a, const StaleRun& b) {
      return a.stale_for > b.stale_for;
    });
    if (stale.size() > static_cast<size_t>(limit)) stale.resize(limit);
    return stale;
  }

  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    std::vector<bool> answers;
    for (const ReapRequest& request : requests) {
      ModelRow* row = s_.FindRow(request.ticket.key);
      const bool taken = !s_.FrozenToNodes() && row != nullptr &&
                         s_.OwnedBy(*row, request.ticket) && row->lease_until <= s_.Now();
      if (taken) {
        Ending ending;
        ending.outcome.kind = request.to;
        ending.outcome.reason = request.reason;
        ending.run_word = "LOST";
        ending.loss = ending.burn = true;
        s_.EndAttempt(*row, ending);
        News(row->key.job, "LOST", request.reason, kPast, {});
      }
      answers.push_back(taken);
    }
    return answers;
  }

  absl::Status ReportDead(absl::Span<const Ticket> tickets) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    for (const Ticket& ticket : tickets) {
      std::string lock_key;
      for (auto it = s_.locks.begin(); it != s_.locks.end();) {
        if (it->second.key == ticket.key && it->second.fence == ticket.fence) {
          lock_key = it->first;
          it = s_.locks.erase(it);
        } else {
          ++it;
        }
      }
      const auto slot = s_.slots.find(ticket.fence);
      const bool had_slot = slot != s_.slots.end() && slot->second.key == ticket.key;
      if (had_slot) {
        const Slot freed = slot->second;
        s_.slots.erase(slot);
        s_.WakeForSlot(freed.tenant, freed.limit_key, freed.backfill);
      }
      // One row of the job for the one run that is gone, whatever it left behind.
      if (had_slot || !lock_key.empty()) {
        s_.Wake(ticket.key.job, absl::CivilDay(), lock_key, false);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override {
    absl::MutexLock lock(&s_.mutex);
    for (const PeriodKey& key : keys) {
      ModelRow* row = s_.FindRow(key);
      if (row == nullptr || row->status != PeriodStatus::kPlanned || row->held_by != node.name) {
        continue;
      }
      row->held_by.clear();
      row->held_until = kPast;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override;

  absl::Status Leave(const NodeId& node) override {
    absl::MutexLock lock(&s_.mutex);
    if (auto it = s_.nodes.find(node.name); it != s_.nodes.end()) it->second.row.left = true;
    for (auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kPlanned || row.held_by != node.name) continue;
      row.held_by.clear();
      row.held_until = kPast;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Purge(int limit) override;

  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override {
    absl::MutexLock lock(&s_.mutex);
    const ModelRow* row = s_.FindRow(ticket.key);
    if (row != nullptr && s_.OwnedBy(*row, ticket)) {
      s_.outputs[ticket.fence] = {std::string(head), std::string(tail), bytes, false};
    }
    return absl::OkStatus();
  }

  Heard AwaitChange(absl::Duration at_most) override {
    absl::MutexLock lock(&s_.mutex);
    const auto moved = [this] { return interrupted_ || s_.changes != seen_; };
    SystemClock().AwaitFor(s_.mutex, absl::Condition(&moved), at_most);
    interrupted_ = false;
    return std::exchange(seen_, s_.changes) == s_.changes ? Heard::kNothing : Heard::kWritten;
  }

  void Interrupt() override {
    absl::MutexLock lock(&s_.mutex);
    interrupted_ = true;
  }

 private:
  // Nothing runs, and nothing is to be looked at by `until`.
  bool Idle(absl::Time until) const {
    const bool rows = std::any_of(s_.rows.begin(), s_.rows.end(), [&](const auto& entry) {
      const ModelRow& row = entry.second;
      return row.status == PeriodStatus::kRunning ||
             (row.status == PeriodStatus::kPlanned && row.look_at <= until);
    });
    return !rows && std::none_of(s_.jobs.begin(), s_.jobs.end(), [&](const auto& entry) {
      return !entry.second.deleted && entry.second.row.next_look <= until;
    });
  }
  void MoveFloor(const std::string& name, ModelJob& job);
  std::vector<int64_t> RunsToDrop(const std::string& name, const ModelJob& job);

  JobState StateOf(const std::string& name) {
    const ModelJob& job = s_.jobs[name];
    JobState state;
    state.job = name;
    state.revision = job.row.revision;
    state.first_sight = job.row.first_sight;
    state.floor = job.row.floor;
    state.cursor = job.row.cursor;
    state.gap_from = job.row.gap_from;
    state.pending = job.pending;
    state.suspended = job.row.suspension.has_value();
    const absl::Time after =
        std::min({state.cursor, state.gap_from.value_or(state.cursor), s_.Now()});
    for (const auto& [key, row] : s_.rows) {
      if (key.job != name) continue;
      const bool is_final = !IsOpen(row) || row.held;
      if (!is_final || (state.gap_from && Since(row, *state.gap_from))) state.rows.push_back(row);
    }
    std::sort(state.rows.begin(), state.rows.end(), [](const PeriodRow& a, const PeriodRow& b) {
      return std::tie(a.due, a.key.period) < std::tie(b.due, b.key.period);
    });
    state.versions = VersionsSince(job.versions, after, state.rows);
    for (const SkipSpan& span : job.spans) {
      if (span.to > after) state.spans.push_back(span);
    }
    return state;
  }

  // Of a beat or checkpoint: after a job's own DONE there is nothing left to own.
  std::string RefusalOfOwner(const ModelRow* row, const Ticket& ticket) {
    std::string why = s_.RefusalOf(row, ticket);
    if (why != "fence" || row == nullptr || !DoneBy(*row, ticket)) return why;
    const ModelJob* job = s_.FindJob(ticket.key.job);
    return job != nullptr && job->job.commit == CommitBy::kJob ? "done" : why;
  }

  bool HasWitness() const {
    return std::any_of(s_.nodes.begin(), s_.nodes.end(), [this](const auto& node) {
      return !node.second.row.left && node.second.row.seen_at > s_.mark - kNodeGone;
    });
  }

  static bool DoneBy(const ModelRow& row, const Ticket& ticket) {
    return row.status == PeriodStatus::kDone && row.generation == ticket.generation &&
           row.fence == ticket.fence && row.nonce == ticket.nonce;
  }

  void News(const std::string& job, absl::string_view word, absl::string_view reason,
            absl::Time success, absl::Duration took) {
    const auto it = s_.jobs.find(job);
    if (it == s_.jobs.end()) return;
    it->second.row.last_result = ResultText(word, reason);
    if (success == kPast) return;
    it->second.row.last_success = success;
    it->second.row.worst_duration = std::max(it->second.row.worst_duration, took);
  }

  std::string FinishOne(const FinishRequest& request) {
    ModelRow* row = s_.FindRow(request.ticket.key);
    Ending ending;
    ending.outcome = request.outcome;
    ending.run_word = std::string(RunWord(request.outcome));
    ending.burn = request.outcome.kind == Outcome::Kind::kReturned;
    ending.loss = IsLoss(request.outcome);
    const bool by_job = request.outcome.kind == Outcome::Kind::kDoneByJob;
    if (by_job) {
      if (row == nullptr) return "gone";
      if (!DoneBy(*row, request.ticket)) {
        return s_.OwnedBy(*row, request.ticket) ? "no_commit" : "fence";
      }
      s_.WriteRun(*row, ending);
      s_.Wake(row->key.job, row->biz_date, row->lock_key, true);
      s_.WakeForSlot(row->tenant, row->limit_key, row->backfill);
    } else {
      const std::string why = s_.RefusalOf(row, request.ticket);
      if (!why.empty()) return why;
    }
    const absl::Time claimed = row->claimed_at;
    if (!by_job) s_.EndAttempt(*row, ending);
    if (request.outcome.output_bytes > 0) {
      s_.outputs[request.ticket.fence] = {request.outcome.output_head, request.outcome.output_tail,
                                          request.outcome.output_bytes, false};
    }
    for (const auto& [name, value] : request.outcome.figures) {
      s_.figures.push_back({row->key, row->generation, request.ticket.fence, name, value});
    }
    const bool done = ending.run_word == "DONE";
    News(row->key.job, ending.run_word, request.outcome.reason, done ? s_.Now() : kPast,
         s_.Now() - claimed);
    return "";
  }

  const std::shared_ptr<State> state_;
  State& s_;
  Starts starts_{s_};
  int64_t seen_ = 0;
  bool interrupted_ = false;
};

absl::StatusOr<TickAnswer> ModelStore::Tick(const TickRequest& request) {
  absl::MutexLock lock(&s_.mutex);
  ++s_.changes;
  const absl::Time raw = s_.Raw();
  const auto known = s_.nodes.find(request.node.name);
  const absl::Duration forward = s_.mark == kPast ? absl::ZeroDuration() : raw - s_.mark;
  const bool was_frozen = s_.frozen;
  if (s_.frozen) {
    const bool stepped = raw < s_.raw_seen - kStepBack || raw > s_.raw_seen + kStepForward;
    if (stepped) s_.steady_from = raw;
    s_.raw_seen = raw;
    if (raw - s_.steady_from >= absl::Microseconds(request.clock_settle_us)) {
      s_.SettleClock({"policy", "the clock has been steady"});
    }
  } else if (forward < -kStepBack ||
             (known != s_.nodes.end() && forward > kStepForward &&
              (raw - known->second.row.seen_at) - (request.boot - known->second.boot) >
                  kStepForward)) {
    s_.frozen = true;
    s_.frozen_why = absl::StrCat("the store's clock went ",
                                 forward < absl::ZeroDuration() ? "back" : "forward");
    s_.raw_seen = s_.steady_from = raw;
    s_.AddEvent(
        {.kind = "clock", .who = "policy", .why = s_.frozen_why, .detail = "{\"frozen\":true}"});
  } else if (known == s_.nodes.end() && IsUnjudged(raw, s_.mark) && request.asking < kWitnessWait &&
             HasWitness()) {
    TickAnswer answer;
    answer.now = s_.Now();
    answer.epoch = s_.epoch;
    answer.frozen = true;
    answer.frozen_why = WaitsForWitness(raw, s_.mark);
    return answer;
  } else {
    s_.mark = std::max(s_.mark, raw);
  }
  TickAnswer answer;
  answer.now = s_.Now();
  answer.frozen = s_.frozen;
  answer.frozen_why = s_.frozen_why;
  answer.epoch = s_.epoch;
  const auto live = [&] {
    int count = 0;
    for (const auto& [name, node] : s_.nodes) {
      count += !node.row.left && node.row.seen_at > answer.now - kNodeGone;
    }
    return count;
  };
  if (!s_.frozen) {
    absl::Duration wait = absl::ZeroDuration();
    if (answer.now - s_.return_last <= kReturnCalm) wait = s_.return_wait;
    const bool waited = s_.return_due <= answer.now;
    if (waited || (live() == 0 && answer.now >= s_.return_last + wait)) {
      s_.return_last = answer.now;
      s_.return_wait = std::min(std::max(2 * wait, kReturnWaitMin), kReturnWaitMax);
      s_.return_due = kNever;
      answer.returned = true;
      std::set<std::string> failed;
      for (const auto& [key, row] : s_.rows) {
        if (row.status == PeriodStatus::kFailed && !row.held) failed.insert(key.job);
      }
      const bool all = s_.return_planner != request.planner;
      s_.return_planner = request.planner;
      for (auto& [name, job] : s_.jobs) {
        if (job.deleted || job.pending || (!all && !failed.contains(name))) continue;
        job.pending = Trigger::kReturn;
        job.row.next_look = absl::UnixEpoch();
        ++job.row.revision;
      }
      s_.AddEvent({.kind = "return", .who = absl::StrCat("node:", request.node.name)});
    } else if (live() == 0) {
      s_.return_due = s_.return_last + wait;
    }
  }
  ModelNode& node = s_.nodes[request.node.name];
  if (node.row.name.empty()) node.row.started_at = answer.now;
  node.row.name = request.node.name;
  node.row.labels = request.node.labels;
  node.row.seen_at = answer.now;
  node.row.clock_offset = request.wall - answer.now;
  node.row.left = false;
  node.boot = request.boot;
  if (request.stood_still >= kStoodStill) {
    s_.AddEvent({.kind = kStoodStillEvent,
                 .who = absl::StrCat("node:", request.node.name),
                 .detail = StoodStillDetail(request.stood_still)});
  }
  answer.live_nodes = live();
  answer.idle =
      !was_frozen && !answer.frozen && !answer.returned && Idle(answer.now + request.idle_ahead);
  return answer;
}

// Never nearer than the job keeps its rows, over nothing that is open, and only where there is
// something to settle. Rows of other programs have no due instant: no floor speaks of them.
void ModelStore::MoveFloor(const std::string& name, ModelJob& job) {
  if (job.deleted) return;
  absl::Time floor = std::min(s_.Now() - KeepFor(job.job), job.row.cursor);
  if (job.row.gap_from) floor = std::min(floor, *job.row.gap_from - absl::Microseconds(1));
  bool any = false;
  for (const auto& [key, row] : s_.rows) {
    if (key.job != name || row.due == kPast) continue;
    if (IsOpen(row)) floor = std::min(floor, row.due - absl::Microseconds(1));
  }
  for (const auto& [key, row] : s_.rows) {
    any = any || (key.job == name && row.due != kPast && !IsOpen(row) && row.due <= floor);
  }
  if (any) job.row.floor = std::max(job.row.floor, floor);
}

// The ended attempts beyond the job's history, oldest last; those of open periods stay.
std::vector<int64_t> ModelStore::RunsToDrop(const std::string& name, const ModelJob& job) {
  std::vector<const RunRow*> ended;
  for (const auto& [fence, run] : s_.runs) {
    const ModelRow* row = s_.FindRow(run.key);
    if (run.key.job == name && (row == nullptr || !IsOpen(*row))) ended.push_back(&run);
  }
  std::sort(ended.begin(), ended.end(), [](const RunRow* a, const RunRow* b) {
    return std::tie(a->finished_at, a->fence) > std::tie(b->finished_at, b->fence);
  });
  std::vector<int64_t> dropped;
  for (const bool succeeded : {true, false}) {
    int keep = succeeded ? job.job.history_succeeded : job.job.history_failed;
    for (const RunRow* run : ended) {
      if ((run->status == "DONE") == succeeded && --keep < 0) dropped.push_back(run->fence);
    }
  }
  return dropped;
}

absl::StatusOr<int64_t> ModelStore::Purge(int limit) {
  absl::MutexLock lock(&s_.mutex);
  int64_t gone = 0;
  const absl::Time now = s_.Now();
  for (auto& [name, job] : s_.jobs) MoveFloor(name, job);
  std::erase_if(s_.locks, [&](const auto& lock) { return lock.second.until <= now; });
  const bool turns = std::any_of(s_.rows.begin(), s_.rows.end(), [](const auto& row) {
    return row.second.status == PeriodStatus::kPlanned && row.second.start_tag > 0;
  });
  for (auto& [key, row] : s_.rows) {
    if (turns && row.status == PeriodStatus::kPlanned && row.start_tag == 0) row.start_tag = 1;
  }
  std::erase_if(s_.slots, [&](const auto& slot) { return slot.second.until <= now; });
  std::erase_if(s_.nodes, [&](const auto& node) {
    return node.second.row.seen_at < now - absl::Hours(24 * 7);
  });
  for (auto& [name, job] : s_.jobs) {
    std::vector<std::pair<absl::Time, PeriodKey>> settled;
    for (const auto& [key, row] : s_.rows) {
      if (key.job != name || IsOpen(row) || row.due == kPast || row.due > job.row.floor) continue;
      settled.emplace_back(row.due, key);
    }
    std::sort(settled.begin(), settled.end());
    for (const auto& [due, key] : settled) {
      if (gone < limit) gone += static_cast<int64_t>(s_.rows.erase(key));
    }
    for (const int64_t fence : RunsToDrop(name, job)) {
      if (gone >= limit) break;
      s_.runs.erase(fence);
      s_.outputs.erase(fence);
      ++gone;
    }
    gone += static_cast<int64_t>(std::erase_if(
        job.spans, [floor = job.row.floor](const SkipSpan& span) { return span.to <= floor; }));
  }
  for (auto& [key, row] : s_.rows) {
    if (IsOpen(row) || row.checkpoint_data.empty()) continue;
    row.checkpoint_data.clear();
    ++gone;
  }
  return gone;
}

}  // namespace

std::unique_ptr<Store> NewStore(std::shared_ptr<State> state) {
  return std::make_unique<ModelStore>(std::move(state));
}

}  // namespace matins::model
