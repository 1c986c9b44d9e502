// What the tests of the public API share: a nightly job, stepped by hand, and a plain SQLite beside
// the scheduler's own.
#ifndef MATINS_LIBRARY_TEST_SUPPORT_H_
#define MATINS_LIBRARY_TEST_SUPPORT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "matins/scheduler.h"
#include "matins/testing.h"

struct sqlite3;

namespace matins::testing {

// An instant of October 2026, UTC.
absl::Time At(int day, int hour, int minute = 0);

// "0 1 * * *" by day, -1d, misfire each; handler "close".
Job NightlyJob();

class Folder {
 public:
  Folder();
  ~Folder();
  std::string File(absl::string_view name) const;

 private:
  std::string path_;
};

// Another connection to a SQLite file.
class Sqlite {
 public:
  explicit Sqlite(const std::string& path);
  ~Sqlite();
  // One statement; how many rows it changed.
  absl::StatusOr<int64_t> Execute(absl::string_view sql);
  // The first column of the first row; 0: no row.
  int64_t Number(const std::string& sql);

 private:
  sqlite3* db_ = nullptr;
};

// A scheduler on a clock and a file of its own, with one job.
class Stepped : public ::testing::Test {
 protected:
  // Opens with `options`, adds `handler` as "close", applies `job`, starts and steps once.
  void Begin(RunHandler handler);
  void Step();
  void StepAt(absl::Time t);
  // Moves the clock on by `d` and steps.
  void StepAfter(absl::Duration d);
  PeriodState Read(const std::string& period);

  TestClock clock{At(1, 12)};
  Folder folder;
  std::string file = folder.File("matins.db");
  SchedulerOptions options{.store = "sqlite:" + file, .clock = &clock};
  Job job = NightlyJob();
  std::unique_ptr<Scheduler> scheduler;
};

}  // namespace matins::testing

#endif  // MATINS_LIBRARY_TEST_SUPPORT_H_
