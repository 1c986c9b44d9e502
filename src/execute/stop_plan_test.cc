#include "execute/stop_plan.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

using Act = StopPlan::Act;

absl::Duration At(double s) { return absl::Seconds(s); }

Deadline Both(double stop, double kill) { return {.stop = At(stop), .kill = At(kill)}; }

TEST(StopPlan, TermsAtTheStopAndKillsAtTheKill) {
  StopPlan plan(Both(10, 12), Deadline{});
  EXPECT_EQ(plan.Due(At(9.9)), Act::kNothing);
  EXPECT_EQ(plan.NextAt(), At(10));
  EXPECT_EQ(plan.Due(At(10)), Act::kTerm);
  EXPECT_EQ(plan.Due(At(11)), Act::kNothing);
  EXPECT_EQ(plan.NextAt(), At(12));
  EXPECT_EQ(plan.Due(At(12)), Act::kKill);
  EXPECT_EQ(plan.Due(At(13)), Act::kNothing);
  EXPECT_EQ(plan.reason(), StopReason::kLeaseLost);
}

TEST(StopPlan, ABeatMovesTheLeaseButNeverTheTimeOut) {
  StopPlan plan(Both(10, 12), Both(20, 21));
  plan.MoveLease(Both(100, 102));
  EXPECT_EQ(plan.Due(At(19)), Act::kNothing);
  EXPECT_EQ(plan.Due(At(20)), Act::kTerm);
  EXPECT_EQ(plan.reason(), StopReason::kTimeOut);
}

TEST(StopPlan, ALateBeatRevivesNothing) {
  StopPlan plan(Both(10, 12), Deadline{});
  EXPECT_EQ(plan.Due(At(10)), Act::kTerm);
  plan.MoveLease(Both(100, 102));
  EXPECT_EQ(plan.Due(At(12)), Act::kKill);
}

TEST(StopPlan, TheEarlierKillWins) {
  StopPlan plan(Both(10, 12), Deadline{});
  plan.Ask(StopReason::kCancelled, At(5), At(60));
  EXPECT_EQ(plan.Due(At(5)), Act::kTerm);
  EXPECT_EQ(plan.NextAt(), At(12));
  EXPECT_EQ(plan.Due(At(12)), Act::kKill);
  EXPECT_EQ(plan.reason(), StopReason::kCancelled);
}

TEST(StopPlan, BeatsGoOnDuringTheGraceOfACancel) {
  StopPlan plan(Both(10, 12), Deadline{});
  plan.Ask(StopReason::kCancelled, At(5), At(60));
  EXPECT_EQ(plan.Due(At(5)), Act::kTerm);
  plan.MoveLease(Both(100, 102));
  EXPECT_EQ(plan.Due(At(64)), Act::kNothing);
  EXPECT_EQ(plan.Due(At(65)), Act::kKill);
}

TEST(StopPlan, ASecondAskOnlyHastens) {
  StopPlan plan(Deadline{}, Deadline{});
  plan.Ask(StopReason::kCancelled, At(5), At(10));
  plan.Ask(StopReason::kShutdown, At(6), At(60));
  EXPECT_EQ(plan.Due(At(6)), Act::kTerm);
  EXPECT_EQ(plan.NextAt(), At(15));
  plan.Ask(StopReason::kShutdown, At(7), absl::ZeroDuration());
  EXPECT_EQ(plan.Due(At(7)), Act::kKill);
  EXPECT_EQ(plan.reason(), StopReason::kCancelled);
}

TEST(StopPlan, AfterALongPauseItKillsAtOnceAndNamesTheFirstCause) {
  StopPlan plan(Both(10, 12), Both(20, 21));
  EXPECT_EQ(plan.Due(At(1000)), Act::kKill);
  EXPECT_EQ(plan.reason(), StopReason::kLeaseLost);
}

}  // namespace
}  // namespace matins
