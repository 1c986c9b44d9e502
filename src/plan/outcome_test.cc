#include <gtest/gtest.h>

#include "plan/plan.h"

namespace matins {
namespace {

Job RetryJob() {
  Job job;
  job.retry = {.attempts = 4, .backoff_min = absl::Seconds(30), .backoff_max = absl::Seconds(100)};
  return job;
}
Outcome Failure() { return {.kind = Outcome::Kind::kFailed, .reason = reason::kExit}; }

TEST(AfterFailure, RetriesWhileThisTriggersAttemptsLast) {
  const Job job = RetryJob();
  for (int attempt = 1; attempt <= 3; ++attempt) {
    EXPECT_EQ(AfterFailure(job, attempt, 7, Failure()).kind, Outcome::Kind::kRetry) << attempt;
  }
  EXPECT_EQ(AfterFailure(job, 4, 7, Failure()).kind, Outcome::Kind::kFailed);
}

TEST(AfterFailure, BacksOffLongerEachTimeWithinItsBounds) {
  const Job job = RetryJob();
  for (int64_t fence = 1; fence < 200; ++fence) {
    const absl::Duration first = AfterFailure(job, 1, fence, Failure()).backoff;
    const absl::Duration second = AfterFailure(job, 2, fence, Failure()).backoff;
    const absl::Duration third = AfterFailure(job, 3, fence, Failure()).backoff;
    EXPECT_GE(first, absl::Seconds(30));
    EXPECT_LT(first, absl::Seconds(37.5));
    EXPECT_GE(second, absl::Seconds(60));
    EXPECT_LT(second, absl::Seconds(75));
    EXPECT_EQ(third, absl::Seconds(100));
    EXPECT_EQ(AfterFailure(job, 1, fence, Failure()).backoff, first);
  }
}

TEST(AfterFailure, RunsThatFailedTogetherComeBackApart) {
  const Job job = RetryJob();
  EXPECT_NE(AfterFailure(job, 1, 1, Failure()).backoff, AfterFailure(job, 1, 2, Failure()).backoff);
}

TEST(AfterFailure, LeavesOtherOutcomesAsTheyAre) {
  const Job job = RetryJob();
  for (const auto kind : {Outcome::Kind::kDone, Outcome::Kind::kHeld, Outcome::Kind::kReturned}) {
    EXPECT_EQ(AfterFailure(job, 1, 7, {.kind = kind}).kind, kind);
  }
}

TEST(AfterFailure, WhatAPersonCancelledIsNotTriedAgainByItself) {
  const Outcome cancelled{.kind = Outcome::Kind::kFailed, .reason = reason::kCancelled};
  EXPECT_EQ(AfterFailure(RetryJob(), 1, 7, cancelled).kind, Outcome::Kind::kFailed);
}

PeriodRow LostRow() {
  PeriodRow row;
  row.status = PeriodStatus::kRunning;
  row.lease_until = absl::UnixEpoch();
  return row;
}

TEST(AfterLoss, RerunIsPlannedAgainUntilTooManyAreLost) {
  const Job job;  // max_lost 5
  PeriodRow row = LostRow();
  for (row.losses = 0; row.losses < 4; ++row.losses) {
    EXPECT_EQ(AfterLoss(job, row).to, Outcome::Kind::kReturned) << row.losses;
  }
  EXPECT_EQ(AfterLoss(job, row).to, Outcome::Kind::kFailed);
  EXPECT_EQ(AfterLoss(job, row).reason, reason::kLost);
}

TEST(AfterLoss, HoldStopsAtOnce) {
  Job job;
  job.recovery = Recovery::kHold;
  EXPECT_EQ(AfterLoss(job, LostRow()).to, Outcome::Kind::kHeld);
  EXPECT_EQ(AfterLoss(job, LostRow()).reason, reason::kHeld);
}

TEST(AfterLoss, ResumeGoesOnOnlyFromACheckpoint) {
  Job job;
  job.recovery = Recovery::kResume;
  PeriodRow row = LostRow();
  EXPECT_EQ(AfterLoss(job, row).to, Outcome::Kind::kHeld);
  row.checkpoint = 3;
  EXPECT_EQ(AfterLoss(job, row).to, Outcome::Kind::kReturned);
}

TEST(AfterLoss, RunningWithoutALeaseIsStale) {
  Job job;
  job.recovery = Recovery::kHold;
  PeriodRow row = LostRow();
  row.lease_until = absl::InfinitePast();
  EXPECT_EQ(AfterLoss(job, row).to, Outcome::Kind::kFailed);
  EXPECT_EQ(AfterLoss(job, row).reason, reason::kStale);
}

}  // namespace
}  // namespace matins
