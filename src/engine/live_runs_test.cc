#include "engine/live_runs.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

using absl::Seconds;

LiveRunPtr RunOf(int64_t fence, absl::Duration sent, absl::Duration ttl) {
  Job job;
  job.name = "recon";
  job.lock.ttl = ttl;
  auto run = std::make_shared<LiveRun>();
  run->claim.fence = fence;
  run->sent = sent;
  run->definition = std::make_shared<const ResolvedJob>(
      ResolvedJob{job, Schedule::At(absl::UnixEpoch(), absl::UTCTimeZone()), {}, std::nullopt});
  return run;
}

TEST(LiveRuns, ABeatIsDueAQuarterOfTheLeaseAfterTheLastProof) {
  LiveRuns runs;
  runs.Add(RunOf(7, Seconds(100), Seconds(40)));
  EXPECT_EQ(runs.NextBeat(), Seconds(110));
  EXPECT_TRUE(runs.DueBeats(Seconds(109)).empty());
  EXPECT_EQ(runs.DueBeats(Seconds(110)).size(), 1u);
  runs.Beaten(7, Seconds(110));
  EXPECT_EQ(runs.NextBeat(), Seconds(120));
  EXPECT_EQ(runs.LastProof(7), Seconds(110));
}

TEST(LiveRuns, BeatsThatAreNearlyDueGoWithThoseThatAre) {
  LiveRuns runs;
  runs.Add(RunOf(1, Seconds(100), Seconds(40)));
  runs.Add(RunOf(2, Seconds(102), Seconds(40)));
  runs.Add(RunOf(3, Seconds(108), Seconds(40)));
  EXPECT_EQ(runs.DueBeats(Seconds(110)).size(), 2u);
}

TEST(LiveRuns, ARunWhoseEndIsBeingWrittenIsNotBeaten) {
  LiveRuns runs;
  runs.Add(RunOf(7, Seconds(100), Seconds(40)));
  EXPECT_TRUE(runs.WithholdBeats(7));
  EXPECT_FALSE(runs.WithholdBeats(7));
  EXPECT_TRUE(runs.DueBeats(Seconds(500)).empty());
  EXPECT_EQ(runs.NextBeat(), absl::InfiniteDuration());
  runs.AllowBeats(7);
  EXPECT_EQ(runs.DueBeats(Seconds(500)).size(), 1u);
}

TEST(LiveRuns, AnAnswerThatComesAfterTheRunIsForgottenChangesNothing) {
  LiveRuns runs;
  runs.Add(RunOf(7, Seconds(100), Seconds(40)));
  runs.Remove(7);
  runs.Beaten(7, Seconds(110));
  EXPECT_EQ(runs.count(), 0);
  EXPECT_TRUE(runs.BeatsWithheld(7));
}

}  // namespace
}  // namespace matins
