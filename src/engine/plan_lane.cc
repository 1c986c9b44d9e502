#include "engine/plan_lane.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/timing.h"

namespace matins {
namespace {

// A job that cannot be planned (its calendar has ended, its definition is of a newer program) is
// looked at again after this; meanwhile it does not stand in the others' way.
constexpr absl::Duration kBrokenJobPause = absl::Minutes(1);
// The planner that way was given to may be gone: a fire that it did not plan waits for no longer.
constexpr int kWay = 8;  // times the turn that was lost
constexpr absl::Duration kShortestWay = absl::Milliseconds(10);
constexpr absl::Duration kLongestWay = absl::Milliseconds(500);

}  // namespace

absl::StatusOr<absl::Duration> PlanLane::Turn() {
  if (node_.draining) return absl::InfiniteDuration();
  for (std::string& job : node_.look_again.TakeAll()) asked_.insert(std::move(job));
  const absl::Duration began = node_.clock.BootNow();
  if (asked_.empty() && began < way_until_) return way_until_;
  ReadDueRequest request;
  // A plan's next look stands `ahead` before the fire already.
  request.ahead = absl::ZeroDuration();
  request.limit = jobs_a_turn_;
  request.by_node = true;
  request.jobs.assign(asked_.begin(), asked_.end());
  ASSIGN_OR_RETURN(const DueJobs due, store().ReadDue(request));
  const absl::Duration received = node_.clock.BootNow();
  node_.frozen = due.frozen;
  if (due.frozen) return received + node_.options.poll;
  if (due.jobs.empty()) {
    const bool had_asked = !std::exchange(asked_, {}).empty();
    if (had_asked) return received;
    NoteJudged(due.now);
    return std::min(BootAt(due.next_look, due.now, received), node_.NextPoll(node_.options.poll));
  }
  std::vector<PlanWrite> writes;
  for (const JobState& state : due.jobs) {
    node_.definitions.Note(state);
    writes.push_back(PlanOf(state, due.now));
  }
  MATINS_FAULT_POINT("plan.before_write");
  RETURN_IF_ERROR(Write(std::move(writes), began));
  MATINS_FAULT_POINT("plan.after_write");
  asked_.clear();
  jobs_a_turn_ = JobsNextTurn(jobs_a_turn_, node_.clock.BootNow() - began);
  // The rest of what is due now, or what another planner was quicker with; a look that finds
  // nothing says so to START.
  return std::max(node_.clock.BootNow(), way_until_);
}

void PlanLane::GiveWay(size_t stale, size_t writes, absl::Duration began) {
  if (2 * stale <= writes) return;
  const absl::Duration now = node_.clock.BootNow();
  way_until_ = now + std::clamp(kWay * (now - began), kShortestWay, kLongestWay);
}

void PlanLane::NoteJudged(absl::Time now) {
  const bool first = node_.judged_until_us.exchange(ToMicros(now + node_.options.ahead)) == 0;
  if (first) node_.Ring(LaneKind::kStart);
}

absl::Status PlanLane::Write(std::vector<PlanWrite> writes, absl::Duration began) {
  PlanRequest request;
  request.hold_by = node_.options.id;
  request.hold_ahead = node_.options.ahead;
  request.hold_at_most = node_.free_slots();
  request.writes = std::move(writes);
  ASSIGN_OR_RETURN(const PlanAnswers answers, store().Plan(request));
  const absl::Duration received = node_.clock.BootNow();
  bool held = false;
  size_t stale = 0;
  for (size_t i = 0; i < answers.jobs.size(); ++i) {
    const PlanWrite& write = request.writes[i];
    if (!answers.jobs[i].written) {
      ++node_.counters.plans_stale;
      ++stale;
      node_.Say(event::kPlanStale, {write.job, ""});
      continue;
    }
    ++node_.counters.plans;
    if (!write.intents.empty() || !write.spans.empty()) {
      node_.Stir();
      node_.Say(event::kPlanned, {write.job, ""}, 0,
                absl::StrCat(write.intents.size(), " periods"));
    }
    for (const HeldRow& row : answers.jobs[i].held) {
      node_.held.Put({BootAt(row.not_before, answers.now, received), row});
      ++node_.counters.held;
      held = true;
    }
  }
  if (held) node_.Ring(LaneKind::kStart);
  GiveWay(stale, request.writes.size(), began);
  return absl::OkStatus();
}

PlanWrite PlanLane::PlanOf(const JobState& state, absl::Time now) {
  absl::StatusOr<PlanWrite> write = TryPlan(state, now);
  if (write.ok()) return *std::move(write);
  ++node_.counters.plans_failed;
  node_.Alarm(event::kPlanFailed, {state.job, ""}, 0, std::string(write.status().message()));
  PlanWrite later;
  later.job = state.job;
  later.expected_revision = state.revision;
  later.cursor = state.cursor;
  later.next_look = now + kBrokenJobPause;
  return later;
}

absl::StatusOr<PlanWrite> PlanLane::TryPlan(const JobState& state, absl::Time now) {
  std::vector<DefinitionPtr> meanings;
  std::vector<VersionInForce> versions;
  for (const JobVersion& version : state.versions) {
    ASSIGN_OR_RETURN(DefinitionPtr meaning, node_.definitions.Resolve(version.definition));
    versions.push_back({version.number, version.from, meaning.get()});
    meanings.push_back(std::move(meaning));
  }
  PlanInput input;
  input.state = &state;
  input.versions = versions;
  input.now = now;
  input.ahead = node_.options.ahead;
  return PlanJob(input);
}

}  // namespace matins
