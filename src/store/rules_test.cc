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
