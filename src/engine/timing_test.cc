#include "engine/timing.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

using absl::Seconds;

TEST(LeaseDeadline, StopsAndKillsBeforeTheLeaseCanEnd) {
  const Deadline deadline = LeaseDeadline(Seconds(100), Seconds(30), Seconds(10));
  EXPECT_EQ(deadline.kill, Seconds(125));
  EXPECT_EQ(deadline.stop, Seconds(117.5));
}

TEST(LeaseDeadline, AShortGraceIsKept) {
  const Deadline deadline = LeaseDeadline(Seconds(100), Seconds(30), Seconds(2));
  EXPECT_EQ(deadline.stop, Seconds(123));
  EXPECT_EQ(deadline.kill, Seconds(125));
}

TEST(LeaseDeadline, OneBeatMayGoUnansweredBeforeTheStopping) {
  const absl::Duration ttl = Seconds(30);
  const absl::Duration second_try = BeatEvery(ttl) + CallDeadline(ttl) + BeatRetry(ttl);
  EXPECT_LT(second_try, LeaseDeadline({}, ttl, absl::Hours(1)).stop);
}

TEST(TimeOutDeadline, LeavesTimeToWriteTheEndBeforeTheStoreRefusesIt) {
  const Deadline usual = TimeOutDeadline(Seconds(100), Seconds(60), Seconds(10), Seconds(30));
  EXPECT_EQ(usual.stop, Seconds(160));
  EXPECT_EQ(usual.kill, Seconds(165));
  const Deadline no_grace = TimeOutDeadline(Seconds(100), Seconds(60), Seconds(0), Seconds(30));
  EXPECT_EQ(no_grace.stop, no_grace.kill);
  EXPECT_EQ(no_grace.kill, Seconds(155));
  const Deadline brief = TimeOutDeadline(Seconds(100), Seconds(3), Seconds(0), Seconds(30));
  EXPECT_EQ(brief.kill, Seconds(102.5));
}

TEST(BootAt, IsNeverEarly) {
  const absl::Time now = absl::FromUnixSeconds(1'000);
  EXPECT_EQ(BootAt(now + Seconds(3), now, Seconds(50)), Seconds(53));
  EXPECT_EQ(BootAt(now - Seconds(3), now, Seconds(50)), Seconds(50));
  EXPECT_EQ(BootAt(absl::InfiniteFuture(), now, Seconds(50)), absl::InfiniteDuration());
}

TEST(JobsNextTurn, FollowsTheStore) {
  int jobs = kMostJobsATurn;
  for (int turns = 0; turns < 10; ++turns)
    jobs = JobsNextTurn(jobs, jobs * absl::Microseconds(130));
  EXPECT_LT(jobs * absl::Microseconds(130), 2 * kPlanTurn);
  EXPECT_GT(jobs * absl::Microseconds(130), kPlanTurn / 2);
  for (int turns = 0; turns < 10; ++turns) jobs = JobsNextTurn(jobs, Seconds(1));
  EXPECT_EQ(jobs, kFewestJobsATurn);
  for (int turns = 0; turns < 10; ++turns) jobs = JobsNextTurn(jobs, absl::Milliseconds(1));
  EXPECT_EQ(jobs, kMostJobsATurn);
}

}  // namespace
}  // namespace matins
