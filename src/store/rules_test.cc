#include "store/rules.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

TEST(Rules, JsonIsEscaped) {
  EXPECT_EQ(JsonArray({"a", "b\"\\\n"}), "[\"a\",\"b\\\"\\\\\\u000a\"]");
  EXPECT_EQ(JsonArray({}), "[]");
}

TEST(Rules, ALossIsHeldFailedOrReturned) {
  EXPECT_EQ(LossOf({"rerun", 5}, 0, false), Outcome::Kind::kReturned);
  EXPECT_EQ(LossOf({"rerun", 5}, 3, false), Outcome::Kind::kReturned);
  EXPECT_EQ(LossOf({"rerun", 5}, 4, false), Outcome::Kind::kFailed);
  EXPECT_EQ(LossOf({"resume", 5}, 0, false), Outcome::Kind::kHeld);
  EXPECT_EQ(LossOf({"resume", 5}, 0, true), Outcome::Kind::kReturned);
  EXPECT_EQ(LossOf({"hold", 5}, 0, true), Outcome::Kind::kHeld);
}

TEST(Rules, TwoRestoresOfOneCopyNeverGiveAFenceTwice) {
  const absl::Time first = absl::FromUnixSeconds(1'795'976'000);
  for (const int64_t copy : {int64_t{1}, NextEpoch(1, first), NextEpoch(1, first) + 2}) {
    const absl::Time second = first + absl::Seconds(20);
    const int64_t epoch = NextEpoch(copy, first);
    EXPECT_GT(epoch, copy);
    // The same epoch again: then what was given between them is below.
    EXPECT_EQ(NextEpoch(copy, second), epoch);
    EXPECT_GE(FirstNumber(second), FirstNumber(first) + 20'000);
  }
  EXPECT_EQ(FirstNumber(absl::UnixEpoch()), 0);
  EXPECT_LT(FirstNumber(absl::InfiniteFuture()), int64_t{1} << kEpochShift);
}

TEST(Rules, ARunIsNamedByItsOutcome) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  outcome.reason = reason::kCancelled;
  EXPECT_EQ(RunWord(outcome), "CANCELLED");
  EXPECT_EQ(ResultText("FAILED", "exit"), "FAILED(exit)");
  EXPECT_EQ(ResultText("DONE", ""), "DONE");
}

}  // namespace
}  // namespace matins
