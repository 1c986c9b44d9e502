#include "store/model/model_database.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/time.h"
#include "store/model/model_drill.h"
#include "store/model/state.h"
#include "store/rules.h"

namespace matins::model {

ModelDatabase::ModelDatabase(DatabaseOptions options) : state_(std::make_shared<State>()) {
  state_->clock = std::move(options.clock);
}
ModelDatabase::~ModelDatabase() = default;

absl::Status ModelDatabase::Migrate() { return absl::OkStatus(); }
absl::StatusOr<std::unique_ptr<Store>> ModelDatabase::Open() { return NewStore(state_); }
absl::StatusOr<std::unique_ptr<ActStore>> ModelDatabase::OpenActs() { return NewActs(state_); }

absl::StatusOr<absl::Duration> ModelDatabase::ShortestLease() {
  absl::MutexLock lock(&state_->mutex);
  absl::Duration shortest = absl::InfiniteDuration();
  for (const auto& [name, job] : state_->jobs) {
    if (!job.deleted) shortest = std::min(shortest, job.job.lock.ttl);
  }
  return shortest;
}

absl::StatusOr<SchemaCheck> ModelDatabase::Check() {
  return SchemaCheck{kSchemaVersion, kSchemaVersion, {}};
}

absl::Status ModelDatabase::Backup(const std::string&) {
  return absl::FailedPreconditionError("the model lives in memory; use sqlite: or postgresql:");
}
absl::Status ModelDatabase::Restore(const std::string&) {
  return absl::FailedPreconditionError("the model lives in memory; use sqlite: or postgresql:");
}
std::string ModelDatabase::Describe() const { return "model"; }

absl::Status ModelDatabase::DeleteRow(const PeriodKey& key) {
  absl::MutexLock lock(&state_->mutex);
  ++state_->changes;
  model::DeleteRow(*state_, key);
  return absl::OkStatus();
}

absl::Status ModelDatabase::InsertDoneRow(const PeriodKey& key) {
  absl::MutexLock lock(&state_->mutex);
  if (state_->FindRow(key) != nullptr) return absl::AlreadyExistsError("there is such a row");
  ASSIGN_OR_RETURN(const absl::CivilDay day, ParseDay(key.period.substr(0, 10)));
  ++state_->changes;
  ModelRow row;
  row.key = key;
  row.biz_date = day;
  row.status = PeriodStatus::kDone;
  row.generation = state_->reopened[key].generation;
  row.change = 1;
  row.due = row.not_before = row.window_start = row.window_end = kPast;
  row.start_by = kNever;
  state_->rows[key] = row;
  return absl::OkStatus();
}

bool ModelDatabase::CommitByJob(const PeriodKey& key, int generation, int64_t fence,
                                absl::Time instant, absl::Time finished) {
  absl::MutexLock lock(&state_->mutex);
  ModelRow* row = state_->FindRow(key);
  const absl::Time now = std::max(instant, state_->mark);
  // Plain SQL knows whole milliseconds, rounded, and never calls an ended lease alive (I4).
  const absl::Time alive = now + absl::Milliseconds(2);
  if (row == nullptr || row->status != PeriodStatus::kRunning || row->generation != generation ||
      row->fence != fence || row->lease_until <= alive || row->run_until <= alive) {
    return false;
  }
  ++state_->changes;
  Ending ending;
  ending.run_word = "DONE";
  const bool recorded = state_->runs.contains(fence);
  if (!recorded) {
    state_->WriteRun(*row, ending);
    state_->runs[fence].finished_at = now;
  }
  row->status = PeriodStatus::kDone;
  row->reason.clear();
  ++row->change;
  row->changed_at = now;
  row->finished_at = finished;
  row->lease_until = row->run_until = kPast;
  row->held_by.clear();
  row->held_until = kPast;
  row->cancel_asked = false;
  row->cancel_why.clear();
  return true;
}

std::vector<PeriodRow> ModelDatabase::TakeSettled(const std::string& job, size_t keep) {
  absl::MutexLock lock(&state_->mutex);
  std::vector<PeriodRow> settled;
  for (const auto& [key, row] : state_->rows) {
    const bool final = row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped;
    if (key.job == job && final) settled.push_back(row);
  }
  std::sort(settled.begin(), settled.end(),
            [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  settled.resize(settled.size() - std::min(keep, settled.size()));
  for (const PeriodRow& row : settled) {
    state_->rows.erase(row.key);
    // Their attempts went with them.
    state_->runs.erase(row.fence);
  }
  return settled;
}

}  // namespace matins::model
