#include "conformance/fixture.h"

#include "absl/strings/str_cat.h"

namespace matins::conformance {

absl::string_view CapabilityName(Capability capability) {
  switch (capability) {
    case Capability::kSql:
      return "sql";
    case Capability::kForeign:
      return "foreign";
    case Capability::kJournal:
      return "journal";
    case Capability::kFaults:
      return "faults";
    case Capability::kReopenable:
      return "reopenable";
    case Capability::kOldTable:
      return "old_table";
    case Capability::kLocks:
      return "locks";
  }
  return "?";
}

absl::Status World::Sql(absl::string_view) {
  return absl::UnimplementedError("this store has no SQL");
}

absl::StatusOr<SqlRows> World::Query(absl::string_view) {
  return absl::UnimplementedError("this store has no SQL");
}

absl::Status World::DeleteRow(const PeriodKey& key) {
  return Sql(absl::StrCat("DELETE FROM job_watermark WHERE job_name = '", key.job,
                          "' AND period = '", key.period, "'"));
}

absl::Status World::InsertForeignRow(absl::string_view job, absl::string_view day,
                                     absl::string_view status) {
  return Sql(
      absl::StrCat("INSERT INTO job_watermark (job_name, biz_date, status, finished_at) VALUES ('",
                   job, "', '", day, "', '", status, "', NULL)"));
}

absl::StatusOr<std::unique_ptr<Database>> World::OpenAgain() {
  return absl::UnimplementedError("this store lives in one process");
}

absl::StatusOr<std::unique_ptr<World::Lock>> World::HoldLock(const PeriodKey&) {
  return absl::UnimplementedError("this store has no locks that others can hold");
}

Backend& TheBackend() {
  static Backend* const backend = MakeBackend().release();
  return *backend;
}

void Conformance::SetUp() {
  auto world = TheBackend().NewWorld();
  ASSERT_TRUE(world.ok()) << world.status();
  world_ = *std::move(world);
  auto store = world_->database().Open();
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
  auto acts = world_->database().OpenActs();
  ASSERT_TRUE(acts.ok()) << acts.status();
  acts_ = *std::move(acts);
}

}  // namespace matins::conformance
