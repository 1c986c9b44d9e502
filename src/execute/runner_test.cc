#include "execute/runner.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

TEST(OutputKept, TellsHowMuchWasCut) {
  OutputKept kept{.head = "ab", .tail = "yz\n", .total_bytes = 5242880};
  EXPECT_EQ(
      kept.Joined(),
      "ab\n[matins: 5242875 of 5242880 bytes cut here; job key output.keep keeps more]\nyz\n");
}

TEST(OutputKept, HasNoMarkWhereNothingWasCut) {
  OutputKept kept{.head = "ab", .tail = "c", .total_bytes = 3};
  EXPECT_EQ(kept.Joined(), "abc");
}

TEST(RunEnded, DeathByASignalIsNeverSuccess) {
  RunEnded ended{.exit_code = -1, .signal = 9};
  EXPECT_FALSE(ended.Succeeded());
  EXPECT_EQ(ended.ShellCode(), 137);
  EXPECT_EQ(ended.Text(), "signal 9 (Killed)");
}

TEST(RunEnded, ExitZeroAfterAStopIsNoSuccess) {
  RunEnded ended{.exit_code = 0, .stopped = StopReason::kTimeOut};
  EXPECT_FALSE(ended.Succeeded());
  EXPECT_EQ(ended.Text(), "exit 0, stopped: time-out");
}

}  // namespace
}  // namespace matins
