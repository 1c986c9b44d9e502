#include "engine/outcome.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

using Values = std::vector<std::pair<std::string, double>>;

TEST(Figures, AreReadFromJsonFromLinesAndFromANumberAlone) {
  EXPECT_EQ(FiguresOf(R"({"differences": 12})").values, (Values{{"differences", 12}}));
  EXPECT_EQ(FiguresOf("differences=12\n\nsum = 3.5\n").values,
            (Values{{"differences", 12}, {"sum", 3.5}}));
  EXPECT_EQ(FiguresOf("17\n").values, (Values{{"value", 17}}));
  for (const char* all : {R"({"differences": 12})", "differences=12\n\nsum = 3.5\n", "17\n"})
    EXPECT_EQ(FiguresOf(all).note, "") << all;
}

TEST(Figures, WhatIsNoneIsCountedAndToldWithTheFirstOfThem) {
  const Figures lines = FiguresOf("a=1\noops\nb=much\nc=2\n");
  EXPECT_EQ(lines.values, (Values{{"a", 1}, {"c", 2}}));
  EXPECT_THAT(lines.note, AllOf(StartsWith("2 lines are"), HasSubstr("the first: 'oops'")));
  const Figures object = FiguresOf(R"({"a": 1, "note": "x"})");
  EXPECT_EQ(object.values, (Values{{"a", 1}}));
  EXPECT_THAT(object.note, AllOf(StartsWith("1 line is"), HasSubstr("note")));
  EXPECT_THAT(FiguresOf("").note, HasSubstr("no figures"));
}

// A database refuses some of these, and with them the end of the run, for ever.
TEST(Figures, NamesThatStandTwiceOrAreNoTextAndNumbersThatAreNoneAreLeftOut) {
  const Figures figures = FiguresOf("a=1\na=2\n\xff=3\nb=nan\nc=inf\n=4\nd\te=5\n");
  EXPECT_EQ(figures.values, (Values{{"a", 1}}));
  EXPECT_THAT(figures.note, StartsWith("6 lines are"));
}

}  // namespace
}  // namespace matins
