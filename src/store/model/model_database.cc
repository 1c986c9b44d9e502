#include "store/model/model_database.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/time.h"
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
    const absl::Time day_before =
        absl::FromCivil(row.biz_date, absl::UTCTimeZone()) - absl::Hours(24);
    job.gap_from = std::min(job.gap_from.value_or(absl::InfiniteFuture()),
                            row.due != kPast ? row.due : day_before);
  }
  if (running && !row.lock_key.empty()) {
    Lock& left_over = state_->locks[row.lock_key];
    left_over = {key, row.fence, std::max(left_over.until, row.lease_until)};
  }
  if (running) state_->LeaveSlot(row, row.lease_until);
  state_->AddEvent({.kind = "reopened",
                    .job = key.job,
                    .period = key.period,
                    .generation = row.generation + 1,
                    .who = "delete",
                    .why = "the row was deleted"});
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

}  // namespace matins::model
