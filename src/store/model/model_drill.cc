#include "store/model/model_drill.h"

#include <algorithm>

#include "base/status.h"

namespace matins::model {

void DeleteRow(State& state, const PeriodKey& key) {
  const ModelRow* found = state.FindRow(key);
  if (found == nullptr) return;
  const ModelRow row = *found;
  state.rows.erase(key);
  const auto it = state.jobs.find(key.job);
  const bool settled = row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped;
  if (settled && it != state.jobs.end() && row.due <= it->second.row.floor) {
    return;
  }
  const bool running = row.status == PeriodStatus::kRunning;
  state.reopened[key] = {row.generation + 1, row.fence, running ? row.lease_until : row.wait_until};
  if (it != state.jobs.end() && !it->second.deleted) {
    JobRow& job = it->second.row;
    ++job.revision;
    job.next_look = absl::UnixEpoch();
    const absl::Time day_before =
        absl::FromCivil(row.biz_date, absl::UTCTimeZone()) - absl::Hours(24);
    job.gap_from = std::min(job.gap_from.value_or(absl::InfiniteFuture()),
                            row.due != kPast ? row.due : day_before);
  }
  if (running && !row.lock_key.empty()) {
    Lock& left_over = state.locks[row.lock_key];
    left_over = {key, row.fence, std::max(left_over.until, row.lease_until)};
  }
  if (running) state.LeaveSlot(row, row.lease_until);
  state.AddEvent({.kind = "reopened",
                  .job = key.job,
                  .period = key.period,
                  .generation = row.generation + 1,
                  .who = "delete",
                  .why = "the row was deleted"});
}

namespace {

Drill* FindDrill(State& state, int64_t id) {
  for (Drill& drill : state.drills) {
    if (drill.row.id == id) return &drill;
  }
  return nullptr;
}

void Insert(State& state, const std::string& job, ModelRow row) {
  row.key.job = job;
  const auto reopened = state.reopened.find(row.key);
  ++row.generation;
  if (reopened != state.reopened.end()) {
    row.generation = std::max(row.generation, reopened->second.generation);
  }
  row.change = 1;
  row.changed_at = state.Now();
  state.rows[row.key] = row;
}

void Change(State& state, const ModelRow& was, ModelRow& row) {
  row.status = PeriodStatus::kDone;
  row.held = false;
  row.nonce = 0;
  row.held_by.clear();
  row.held_until = kPast;
  row.waits_for.clear();
  row.reason = was.reason;
  row.by = was.by;
  row.finished_at = was.finished_at;
  row.changed_at = state.Now();
  ++row.change;
}

}  // namespace

absl::StatusOr<int64_t> BeginDrill(State& state, const BeginDrillRequest& request) {
  if (state.FindJob(request.job) == nullptr) return absl::NotFoundError("there is no such job");
  for (const Drill& drill : state.drills) {
    if (drill.row.job == request.job && !drill.row.over()) {
      return RefuseSecondDrill(request.job, drill.row);
    }
  }
  Drill drill;
  drill.row.id = static_cast<int64_t>(state.drills.size()) + 1;
  drill.row.job = request.job;
  drill.row.by = request.act.who;
  drill.row.why = request.act.why;
  drill.row.started_at = state.Now();
  drill.row.until = state.Now() + request.lease;
  drill.row.periods = request.periods;
  std::sort(drill.row.periods.begin(), drill.row.periods.end(),
            [](const DrillPeriod& a, const DrillPeriod& b) { return a.period < b.period; });
  for (const DrillPeriod& period : drill.row.periods) {
    const ModelRow* row = state.FindRow({request.job, period.period});
    RETURN_IF_ERROR(MayDelete(request.job, period, row));
    drill.was.push_back(*row);
  }
  for (const ModelRow& row : drill.was) DeleteRow(state, row.key);
  state.AddEvent({.kind = kDrillEvent,
                  .job = request.job,
                  .who = request.act.who,
                  .why = request.act.why,
                  .detail = DrillEventDetail(drill.row.id, request.periods)});
  state.drills.push_back(drill);
  return drill.row.id;
}

absl::Status ExtendDrill(State& state, int64_t id, absl::Duration lease) {
  Drill* drill = FindDrill(state, id);
  if (drill == nullptr) return NoDrill(id);
  RETURN_IF_ERROR(MayEndDrill(drill->row, true, state.Now()));
  drill->row.until = std::max(drill->row.until, state.Now() + lease);
  return absl::OkStatus();
}

absl::StatusOr<EndDrillAnswer> EndDrill(State& state, const EndDrillRequest& request) {
  Drill* drill = FindDrill(state, request.id);
  if (drill == nullptr) return NoDrill(request.id);
  RETURN_IF_ERROR(MayEndDrill(drill->row, request.owner, state.Now()));
  EndDrillAnswer answer;
  for (const ModelRow& was : drill->was) {
    const PeriodKey key{drill->row.job, was.key.period};
    ModelRow* row = state.FindRow(key);
    if (!PutsBack(row, key.period, answer)) continue;
    if (row == nullptr) {
      Insert(state, key.job, was);
    } else {
      Change(state, was, *row);
    }
    state.AddEvent({.kind = kRestoredOp,
                    .job = key.job,
                    .period = key.period,
                    .generation = state.FindRow(key)->generation,
                    .who = request.act.who,
                    .why = request.act.why,
                    .detail = RestoredDetail(request.id)});
  }
  answer.ended = answer.running.empty();
  drill->row.until = state.Now();
  if (answer.ended) drill->row.finished_at = state.Now();
  if (drill->row.result.empty()) drill->row.result = request.result;
  if (drill->row.detail.empty()) drill->row.detail = request.detail;
  if (answer.put_back.empty()) return answer;
  if (ModelJob* job = state.FindJob(drill->row.job); job != nullptr) {
    ++job->row.revision;
    job->row.next_look = absl::UnixEpoch();
  }
  for (auto& [key, row] : state.rows) {
    if (key.job == drill->row.job && row.status == PeriodStatus::kPlanned) {
      row.look_at = std::min(row.look_at, row.not_before);
    }
  }
  return answer;
}

std::vector<DrillRow> ReadDrills(const State& state, absl::string_view job, int limit) {
  std::vector<DrillRow> drills;
  for (auto it = state.drills.rbegin(); it != state.drills.rend(); ++it) {
    if (static_cast<int>(drills.size()) == limit) break;
    if (job.empty() || it->row.job == job) drills.push_back(it->row);
  }
  return drills;
}

}  // namespace matins::model
