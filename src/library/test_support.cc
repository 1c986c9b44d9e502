#include "library/test_support.h"

#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <utility>

namespace matins::testing {

absl::Time At(int day, int hour, int minute) {
  return absl::FromCivil(absl::CivilSecond(2026, 10, day, hour, minute), absl::UTCTimeZone());
}

Job NightlyJob() {
  Job job;
  job.name = "close";
  job.schedule = "0 1 * * *";
  job.period = PeriodKind::kDay;
  job.biz_date = "-1d";
  job.misfire = Misfire::kEach;
  job.handler = "close";
  return job;
}

Folder::Folder() {
  path_ = (std::filesystem::temp_directory_path() / "matins-library-XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) abort();
}
Folder::~Folder() { std::filesystem::remove_all(path_); }
std::string Folder::File(absl::string_view name) const { return path_ + "/" + std::string(name); }

Sqlite::Sqlite(const std::string& path) {
  EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK);
  sqlite3_busy_timeout(db_, 5000);
}
Sqlite::~Sqlite() { sqlite3_close(db_); }

absl::StatusOr<int64_t> Sqlite::Execute(absl::string_view sql) {
  const int before = sqlite3_total_changes(db_);
  if (sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return absl::InternalError(std::string(sqlite3_errmsg(db_)) + ": " + std::string(sql));
  }
  return sqlite3_total_changes(db_) - before;
}

int64_t Sqlite::Number(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db_);
  const int64_t number =
      sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
  sqlite3_finalize(statement);
  return number;
}

void Stepped::Begin(RunHandler handler) {
  auto opened = Scheduler::Open(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  scheduler = *std::move(opened);
  ASSERT_TRUE(scheduler->AddHandler("close", std::move(handler)).ok());
  const auto applied = scheduler->Apply(job);
  ASSERT_TRUE(applied.ok()) << applied.status();
  ASSERT_TRUE(scheduler->Start().ok());
  Step();
}

void Stepped::Step() {
  const absl::Status status = scheduler->Step();
  ASSERT_TRUE(status.ok()) << status;
}
void Stepped::StepAt(absl::Time t) {
  clock.AdvanceTo(t);
  Step();
}
void Stepped::StepAfter(absl::Duration d) {
  clock.Advance(d);
  Step();
}

PeriodState Stepped::Read(const std::string& period) {
  const auto state = scheduler->Read("close", period);
  EXPECT_TRUE(state.ok()) << state.status();
  return state.value_or(PeriodState());
}

}  // namespace matins::testing
