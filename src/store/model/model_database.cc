#include "store/model/model_database.h"

#include <algorithm>
#include <utility>

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
  const ModelRow* found = state_->FindRow(key);
  if (found == nullptr) return absl::OkStatus();
  const ModelRow row = *found;
  state_->rows.erase(key);
  const auto it = state_->jobs.find(key.job);
  const bool settled = row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped;
  if (settled && it != state_->jobs.end() && row.due <= it->second.row.floor) {
    return absl::OkStatus();
  }
  const bool running = row.status == PeriodStatus::kRunning;
  state_->reopened[key] = {row.generation + 1, row.fence,
                           running ? row.lease_until : row.wait_until};
  if (it != state_->jobs.end() && !it->second.deleted) {
    JobRow& job = it->second.row;
    ++job.revision;
    job.next_look = absl::UnixEpoch();
    job.gap_from = std::min(job.gap_from.value_or(absl::InfiniteFuture()), row.due);
  }
  if (running && !row.lock_key.empty()) {
    Lock& left_over = state_->locks[row.lock_key];
    left_over = {key, row.fence, std::max(left_over.until, row.lease_until)};
  }
  state_->AddEvent({.kind = "reopened",
                    .job = key.job,
                    .period = key.period,
                    .generation = row.generation + 1,
                    .who = "delete",
                    .why = "the row was deleted"});
  return absl::OkStatus();
}

}  // namespace matins::model
