#include "matins/scheduler.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "matins/testing.h"

namespace {

using ::matins::Applied;
using ::matins::Job;
using ::matins::PeriodState;
using ::matins::RunContext;
using ::matins::Scheduler;
using ::matins::SchedulerOptions;
using ::matins::TestClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);

absl::Time At(int day, int hour, int minute = 0) {
  return absl::FromCivil(absl::CivilSecond(2026, 10, day, hour, minute), absl::UTCTimeZone());
}

// A nightly job by business date, stepped by hand.
struct Nightly : public ::testing::Test {
  TestClock clock{At(1, 12)};
  Job job;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::string> ran;

  void SetUp() override {
    SchedulerOptions options;
    options.clock = &clock;
    auto opened = Scheduler::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    scheduler = *std::move(opened);
    job.name = "close";
    job.schedule = "0 1 * * *";
    job.period = matins::PeriodKind::kDay;
    job.biz_date = "-1d";
    job.misfire = matins::Misfire::kEach;
    job.handler = "close";
  }
  void Begin(matins::RunHandler handler) {
    ASSERT_TRUE(scheduler->AddHandler("close", std::move(handler)).ok());
    const auto applied = scheduler->Apply(job);
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_TRUE(scheduler->Start().ok());
    Step();
  }
  void Step() {
    const absl::Status status = scheduler->Step();
    ASSERT_TRUE(status.ok()) << status;
  }
  void StepAt(absl::Time t) {
    clock.AdvanceTo(t);
    Step();
  }
  PeriodState Read(const std::string& period) {
    const auto state = scheduler->Read("close", period);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(PeriodState());
  }
};

TEST_F(Nightly, RunsOnTimeForTheDayBefore) {
  Begin([&](RunContext& run) {
    ran.push_back(run.period());
    EXPECT_EQ(run.biz_date(), absl::CivilDay(2026, 10, 1));
    EXPECT_EQ(run.window_start(), At(1, 0));
    EXPECT_EQ(run.window_end(), At(2, 0));
    EXPECT_EQ(run.scheduled_for(), At(2, 1));
    EXPECT_FALSE(run.backfill());
    return absl::OkStatus();
  });
  StepAt(At(2, 0, 59));
  EXPECT_THAT(ran, ElementsAre());
  StepAt(At(2, 1));
  EXPECT_THAT(ran, ElementsAre("2026-10-01"));
  EXPECT_EQ(Read("2026-10-01").status, PeriodState::Status::kDone);
}

TEST_F(Nightly, FillsTheMissedNightsInOrder) {
  Begin([&](RunContext& run) {
    ran.push_back(run.period() + (run.backfill() ? " late" : ""));
    return absl::OkStatus();
  });
  StepAt(At(5, 12));
  EXPECT_THAT(ran, ElementsAre("2026-10-01 late", "2026-10-02 late", "2026-10-03 late",
                               "2026-10-04 late"));
}

}  // namespace
