// Owed and missed, by sentence (docs/planning.md).
#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/fault.h"
#include "base/time.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Minutely, first seen at 10:00:30.
World Minutely(Misfire misfire) {
  Job job = JobOf("* * * * *");
  job.misfire = misfire;
  return {Resolved(job), At("2026-11-29T10:00:30Z")};
}

TEST(Plan, OwesNothingFromBeforeFirstSight) {
  World world = Minutely(Misfire::kEach);
  world.Plan(At("2026-11-29T10:02:10Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:00:00Z"), "none");
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T10:02:00Z"));
  EXPECT_THAT(world.Periods("PLANNED backfill"), ElementsAre("2026-11-29T10:01:00Z"));
}

TEST(Plan, PlansAheadWhatIsDueWithinSeconds) {
  World world = Minutely(Misfire::kEach);
  const PlanWrite write = world.Plan(At("2026-11-29T10:00:55Z"));
  ASSERT_THAT(write.intents, SizeIs(1));
  EXPECT_EQ(write.intents[0].due, At("2026-11-29T10:01:00Z"));
  EXPECT_EQ(write.intents[0].not_before, write.intents[0].due);
  EXPECT_FALSE(write.intents[0].backfill);
  EXPECT_EQ(write.intents[0].lock_key, "job/j");
  EXPECT_EQ(write.cursor, At("2026-11-29T10:01:00Z"));
  // Just before the next fire.
  EXPECT_EQ(write.next_look, At("2026-11-29T10:01:55Z"));
}

TEST(Plan, ALockOfAKeyIsExpandedForEachPeriod) {
  Job job = JobOf("* * * * *");
  job.lock = {LockScope::kKey, "settle-{biz_date:%Y%m%d}/{{job}}"};
  World world(Resolved(job), At("2026-11-29T10:00:30Z"));
  const PlanWrite write = world.Plan(At("2026-11-29T10:00:55Z"));
  ASSERT_THAT(write.intents, SizeIs(1));
  EXPECT_EQ(write.intents[0].lock_key, "settle-20261129/j");
}

TEST(Plan, ARunCountsAgainstItsTenantAndItsExpandedKey) {
  Job job = JobOf("* * * * *");
  job.tenant = "payments";
  job.limit_key = "bank-{{tenant}}";
  World world(Resolved(job), At("2026-11-29T10:00:30Z"));
  const PlanWrite write = world.Plan(At("2026-11-29T10:00:55Z"));
  ASSERT_THAT(write.intents, SizeIs(1));
  EXPECT_EQ(write.intents[0].tenant, "payments");
  EXPECT_EQ(write.intents[0].limit_key, "bank-payments");
}

TEST(Plan, NothingIsDueNothingIsPlanned) {
  World world = Minutely(Misfire::kEach);
  const PlanWrite write = world.Plan(At("2026-11-29T10:00:31Z"));
  EXPECT_THAT(write.intents, IsEmpty());
  EXPECT_EQ(write.next_look, At("2026-11-29T10:00:55Z"));
}

TEST(Plan, SkipRunsNothingThatWasMissed) {
  World world = Minutely(Misfire::kSkip);
  world.Plan(At("2026-11-29T10:06:30Z"));
  EXPECT_EQ(world.Count("SKIPPED missed"), 5);
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T10:06:00Z"));
}

TEST(Plan, LatestRunsTheNewestAlone) {
  World world = Minutely(Misfire::kLatest);
  world.Plan(At("2026-11-29T10:06:30Z"));
  EXPECT_EQ(world.Count("SKIPPED superseded"), 5);
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T10:06:00Z"));
}

TEST(Plan, LatestKeepsTheNewestThoughItWasMissed) {
  Job job = JobOf("0 * * * *");
  job.misfire = Misfire::kLatest;
  World world(Resolved(job), At("2026-11-29T00:30:00Z"));
  world.Plan(At("2026-11-29T05:30:00Z"));
  EXPECT_EQ(world.Count("SKIPPED superseded"), 4);
  EXPECT_THAT(world.Periods("PLANNED backfill"), ElementsAre("2026-11-29T05:00:00Z"));
  EXPECT_EQ(world.Row("2026-11-29T05:00:00Z").start_by, absl::InfiniteFuture());
}

TEST(Plan, EachKeepsAllInsideTheCapOldestFirst) {
  World world = Minutely(Misfire::kEach);
  const PlanWrite write = world.Plan(At("2026-11-29T10:40:30Z"));
  // 10:01 to 10:40 are owed; the newest 30 stay.
  EXPECT_THAT(world.Periods("SKIPPED cap"), SizeIs(10));
  EXPECT_EQ(world.Told("2026-11-29T10:10:00Z"), "SKIPPED cap");
  EXPECT_EQ(world.Told("2026-11-29T10:11:00Z"), "PLANNED backfill");
  EXPECT_EQ(world.Told("2026-11-29T10:40:00Z"), "PLANNED");
  for (size_t i = 1; i < write.intents.size(); ++i) {
    EXPECT_LT(write.intents[i - 1].due, write.intents[i].due);
  }
}

TEST(Plan, TheMutantWithoutACapKeepsAll) {
#if MATINS_LAB
  const Mutant before = ActiveMutant();
  SetMutant(Mutant::kNoCap);
  World world = Minutely(Misfire::kEach);
  world.Plan(At("2026-11-29T10:40:30Z"));
  SetMutant(before);
  EXPECT_THAT(world.Periods("SKIPPED cap"), IsEmpty());
#else
  GTEST_SKIP() << "built without MATINS_LAB";
#endif
}

TEST(Plan, PlanningAgainWithTheResultPlansNothing) {
  World world = Minutely(Misfire::kLatest);
  world.Plan(At("2026-11-29T10:40:30Z"));
  const PlanWrite again = world.Plan(At("2026-11-29T10:40:30Z"));
  EXPECT_THAT(again.intents, IsEmpty());
  EXPECT_THAT(again.spans, IsEmpty());
}

TEST(Plan, MoreThanAHundredSkippedInARowAreOneSpan) {
  World world = Minutely(Misfire::kSkip);
  const PlanWrite write = world.Plan(At("2026-11-29T12:30:30Z"));
  ASSERT_THAT(write.spans, SizeIs(1));
  EXPECT_EQ(write.spans[0].count, 149);
  EXPECT_EQ(write.spans[0].first_period, "2026-11-29T10:01:00Z");
  EXPECT_EQ(write.spans[0].last_period, "2026-11-29T12:29:00Z");
  EXPECT_EQ(write.spans[0].from, At("2026-11-29T10:01:00Z"));
  EXPECT_EQ(write.spans[0].to, At("2026-11-29T12:29:00Z"));
  EXPECT_EQ(write.spans[0].reason, "missed");
  EXPECT_THAT(write.intents, SizeIs(1));
}

// Five hours DONE; then all rows but one are deleted, and the deadline of all has passed.
World WithOneRowLeft(bool held) {
  World world = Minutely(Misfire::kSkip);
  for (absl::Time at = At("2026-11-29T10:01:00Z"); at < At("2026-11-29T15:00:00Z");
       at += absl::Minutes(1)) {
    world.PlanUntil(at);
  }
  std::vector<std::string> keys;
  for (const auto& [key, row] : world.rows) keys.push_back(key);
  for (const std::string& key : keys) {
    world.Done(key, At("2026-11-29T15:00:00Z"));
    if (key != "2026-11-29T12:30:00Z") world.Delete(key);
  }
  if (held) world.Fail("2026-11-29T12:30:00Z", At("2026-11-29T15:00:00Z"), /*held=*/true);
  return world;
}

TEST(Plan, NoSpanLiesOverARow) {
  for (const bool held : {false, true}) {
    World world = WithOneRowLeft(held);
    const PlanWrite write = world.Plan(At("2026-11-29T16:00:30Z"));
    ASSERT_THAT(write.spans, SizeIs(2)) << held;
    EXPECT_EQ(write.spans[0].last_period, "2026-11-29T12:29:00Z");
    EXPECT_EQ(write.spans[1].first_period, "2026-11-29T12:31:00Z");
    EXPECT_TRUE(write.gaps_filled);
    EXPECT_EQ(world.Told("2026-11-29T12:30:00Z"), held ? "FAILED" : "DONE");
    EXPECT_THAT(world.Plan(At("2026-11-29T16:00:30Z")).intents, IsEmpty());
  }
}

TEST(Plan, ADeletedRowIsAGapAgainAndIsJudgedLikeAnyOther) {
  World world = Minutely(Misfire::kEach);
  for (const char* key : {"2026-11-29T10:01:00Z", "2026-11-29T10:02:00Z", "2026-11-29T10:03:00Z"}) {
    world.PlanUntil(At(key));
    world.Done(key, At(key));
  }
  world.Delete("2026-11-29T10:02:00Z");
  const PlanWrite write = world.Plan(At("2026-11-29T10:03:30Z"));
  EXPECT_TRUE(write.gaps_filled);
  ASSERT_THAT(write.intents, SizeIs(1));
  EXPECT_EQ(world.Told("2026-11-29T10:02:00Z"), "PLANNED backfill");
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "DONE");
  EXPECT_FALSE(world.state.gap_from.has_value());
}

// 10:01 to 10:05, all DONE.
World FiveDone(const Job& job) {
  World world(Resolved(job), At("2026-11-29T10:00:30Z"));
  for (absl::Time at = At("2026-11-29T10:01:00Z"); at <= At("2026-11-29T10:05:00Z");
       at += absl::Minutes(1)) {
    world.PlanUntil(at);
    world.Done(FormatInstant(at), at);
  }
  return world;
}

TEST(SetBack, ARowDeletedBeforeItsInstantIsAGapOnceItComes) {
  World world = FiveDone(JobOf("* * * * *"));
  world.Delete("2026-11-29T10:01:00Z");
  world.Delete("2026-11-29T10:04:00Z");
  world.Plan(At("2026-11-29T10:01:30Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "PLANNED");
  EXPECT_EQ(world.state.gap_from, At("2026-11-29T10:01:35.000001Z")) << "no START waits for 10:01";
  world.PlanUntil(At("2026-11-29T10:04:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:04:00Z"), "PLANNED");
  EXPECT_THAT(world.Periods("DONE"), SizeIs(3));
  world.PlanUntil(At("2026-11-29T10:05:00Z"));
  EXPECT_FALSE(world.state.gap_from.has_value());
}

TEST(SetBack, ByLessThanWhatIsPlannedAheadForgetsNoGapEither) {
  World world = FiveDone(JobOf("* * * * *"));
  world.Plan(At("2026-11-29T10:05:56Z"));
  world.Delete("2026-11-29T10:06:00Z");
  EXPECT_TRUE(world.Plan(At("2026-11-29T10:05:54.5Z")).gaps_filled);
  EXPECT_EQ(world.state.gap_from, At("2026-11-29T10:06:00Z"));
  world.PlanUntil(At("2026-11-29T10:06:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:06:00Z"), "PLANNED");
}

TEST(SetBack, WhatIsDoneAboveTheClockIsNotCountedAsOwedLater) {
  Job job = JobOf("* * * * *");
  job.backfill.max_periods = 1;
  World world = FiveDone(job);
  world.Plan(At("2026-11-29T10:00:40Z"));
  world.Delete("2026-11-29T10:02:00Z");
  // Everybody was down meanwhile.
  world.Plan(At("2026-11-29T10:04:30Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:02:00Z"), "PLANNED backfill");
}

TEST(SetBack, ASpanOfWhatIsStillToComeStopsNothing) {
  World world = Minutely(Misfire::kSkip);
  world.Plan(At("2026-11-29T15:00:30Z"));
  ASSERT_THAT(world.spans, SizeIs(1));
  world.Plan(At("2026-11-29T10:05:30Z"));
  world.PlanUntil(At("2026-11-29T10:06:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:06:00Z"), "PLANNED");
  EXPECT_EQ(world.Told("2026-11-29T10:05:00Z"), "none") << "it was missed, and the span says so";
}

TEST(Plan, FailedPeriodsGetNewAttemptsAtTheNextTriggerInOrder) {
  World world = Minutely(Misfire::kEach);
  world.Plan(At("2026-11-29T10:01:00Z"));
  world.Fail("2026-11-29T10:01:00Z", At("2026-11-29T10:01:10Z"));
  world.Plan(At("2026-11-29T10:01:55Z"));
  // Planned ahead; the trigger itself is yet to come.
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "FAILED");
  EXPECT_EQ(world.next_look, At("2026-11-29T10:02:00Z"));
  world.PlanUntil(At("2026-11-29T10:02:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "PLANNED");
  EXPECT_EQ(world.Row("2026-11-29T10:01:00Z").attempts, 0);
}

TEST(Plan, HeldPeriodsWaitForAPerson) {
  World world = Minutely(Misfire::kEach);
  world.Plan(At("2026-11-29T10:01:00Z"));
  world.Fail("2026-11-29T10:01:00Z", At("2026-11-29T10:01:10Z"), /*held=*/true);
  world.Plan(At("2026-11-29T10:05:00Z"), Trigger::kPerson);
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "FAILED");
}

TEST(Plan, SuspendedJobsPlanNothing) {
  World world = Minutely(Misfire::kEach);
  world.state.suspended = true;
  world.state.pending = Trigger::kReturn;
  const PlanWrite write = world.Plan(At("2026-11-29T10:05:00Z"));
  EXPECT_THAT(write.intents, IsEmpty());
  EXPECT_EQ(write.cursor, absl::InfinitePast());
  EXPECT_EQ(write.next_look, absl::InfiniteFuture());
  EXPECT_FALSE(write.triggered);
}

}  // namespace
}  // namespace matins
