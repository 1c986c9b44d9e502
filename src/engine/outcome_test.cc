#include "engine/outcome.h"

#include "base/status.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

LiveRun RunWith(Job job) {
  LiveRun run;
  run.claim.key = {"recon", "2026-10-30"};
  run.claim.fence = 41;
  run.definition = std::make_shared<const ResolvedJob>(ResolvedJob{
      std::move(job), Schedule::At(absl::UnixEpoch(), absl::UTCTimeZone()), {}, std::nullopt});
  return run;
}

RunEnded Exit(int code) {
  RunEnded ended;
  ended.exit_code = code;
  return ended;
}

RunEnded Stopped(StopReason why) {
  RunEnded ended;
  ended.signal = 15;
  ended.stopped = why;
  return ended;
}

TEST(Outcome, CodeZeroIsDone) {
  const auto outcome = OutcomeOf(RunWith({}), Exit(0));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kDone);
  EXPECT_EQ(outcome->exit_code, 0);
}

TEST(Outcome, ABadExitIsFailedWithItsCode) {
  const auto outcome = OutcomeOf(RunWith({}), Exit(3));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->reason, reason::kExit);
  EXPECT_EQ(outcome->exit_code, 3);
}

TEST(Outcome, ABadExitIsRetriedWhileAttemptsAreLeft) {
  Job job;
  job.retry.attempts = 2;
  const auto outcome = OutcomeOf(RunWith(job), Exit(3));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kRetry);
  EXPECT_GE(outcome->backoff, job.retry.backoff_min / 2);
}

TEST(Outcome, WhoLostItsLeaseHasNoSay) {
  EXPECT_FALSE(OutcomeOf(RunWith({}), Stopped(StopReason::kLeaseLost)).has_value());
  EXPECT_FALSE(OutcomeOf(RunWith({}), Stopped(StopReason::kReplaced)).has_value());
}

TEST(Outcome, AShutdownHandsThePeriodOverAndUsesNothingUp) {
  const auto outcome = OutcomeOf(RunWith({}), Stopped(StopReason::kShutdown));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kReturned);
  EXPECT_EQ(outcome->reason, reason::kHandedOver);
}

TEST(Outcome, ATimeOutIsFailedAndSaysSo) {
  const auto outcome = OutcomeOf(RunWith({}), Stopped(StopReason::kTimeOut));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->reason, reason::kTimeout);
}

TEST(Outcome, ACancelledRunIsNotRetriedByItself) {
  Job job;
  job.retry.attempts = 5;
  const auto outcome = OutcomeOf(RunWith(job), Stopped(StopReason::kCancelled));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->reason, reason::kCancelled);
}

TEST(Outcome, WhatCouldNotBeReadIsGivenBackAndWhatCannotBeRunFails) {
  EXPECT_EQ(OutcomeOf(RunWith({}), StoreAwayError("away"), 0).kind, Outcome::Kind::kReturned);
  const Outcome missing = OutcomeOf(RunWith({}), absl::NotFoundError("no ./recon"), 127);
  EXPECT_EQ(missing.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(missing.reason, reason::kStartFailed);
  EXPECT_EQ(missing.exit_code, 127);
}

TEST(CommitByJob, ExitZeroWithoutTheCommitIsFailed) {
  const LiveRun run = RunWith({});
  const auto outcome = WithoutCommit(run, OutcomeOf(run, Exit(0)));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome->reason, reason::kNoCommit);
}

TEST(CommitByJob, ABadExitAfterDoneIsANote) {
  const Outcome outcome = DoneByJob(Exit(3));
  EXPECT_EQ(outcome.kind, Outcome::Kind::kDoneByJob);
  EXPECT_NE(outcome.message.find("exit 3"), std::string::npos);
  EXPECT_TRUE(DoneByJob(Exit(0)).message.empty());
}

TEST(Figures, AreReadFromJsonFromLinesAndFromANumberAlone) {
  using Figures = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(FiguresOf(R"({"differences": 12, "note": "x"})"), (Figures{{"differences", 12}}));
  EXPECT_EQ(FiguresOf("differences=12\nsum = 3.5\nhello\n"),
            (Figures{{"differences", 12}, {"sum", 3.5}}));
  EXPECT_EQ(FiguresOf("17\n"), (Figures{{"value", 17}}));
  EXPECT_TRUE(FiguresOf("no figures here").empty());
}

}  // namespace
}  // namespace matins
