// What people ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kDay = absl::Hours(24);

// 01:00 in Shanghai for yesterday's data, first seen on 2026-11-20.
Job Nightly() {
  Job job = JobOf("0 1 * * *", "Asia/Shanghai");
  job.period = PeriodKind::kDay;
  job.biz_date = {-1, BizShift::Unit::kDay};
  return job;
}
World NightlyWorld() { return {Resolved(Nightly()), At("2026-11-20T00:00:00Z")}; }

std::vector<std::string> Periods(const std::vector<PeriodKey>& keys) {
  std::vector<std::string> periods;
  for (const PeriodKey& key : keys) periods.push_back(key.period);
  return periods;
}

TEST(Backfill, TakesEachDateOfTheRangeBothEndsIncluded) {
  World world = NightlyWorld();
  const auto plan = PlanBackfill(world.Input(At("2026-11-20T12:00:00Z")), {},
                                 absl::CivilDay(2026, 10, 1), absl::CivilDay(2026, 10, 3));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->write.intents, SizeIs(3));
  const Intent& first = plan->write.intents[0];
  EXPECT_EQ(first.key.period, "2026-10-01");
  EXPECT_EQ(first.due, At("2026-10-01T17:00:00Z"));
  EXPECT_TRUE(first.manual);
  EXPECT_TRUE(first.backfill);
  EXPECT_EQ(first.start_by, absl::InfiniteFuture());
  EXPECT_EQ(plan->write.intents[2].key.period, "2026-10-03");
}

TEST(Backfill, LeavesWhatIsSettledBelowTheFloorUnlessAskedAgain) {
  World world = NightlyWorld();
  world.state.floor = At("2026-10-02T17:00:00Z");
  const PlanInput input = world.Input(At("2026-11-20T12:00:00Z"));
  const absl::CivilDay from(2026, 10, 1), to(2026, 10, 3);
  const auto plan = PlanBackfill(input, {}, from, to);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Periods(plan->left), ElementsAre("2026-10-01", "2026-10-02"));
  ASSERT_THAT(plan->write.intents, SizeIs(1));
  EXPECT_EQ(plan->write.intents[0].key.period, "2026-10-03");
  EXPECT_FALSE(plan->write.intents[0].reopens);
  PeriodRow done;
  done.key = {"job", "2026-10-03"};
  done.status = PeriodStatus::kDone;
  const auto again = PlanBackfill(input, {done}, from, to, Reprocess::kAll);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(Periods(again->reopen), ElementsAre("2026-10-03"));
  ASSERT_THAT(again->write.intents, SizeIs(2));
  EXPECT_TRUE(again->write.intents[0].reopens);
  EXPECT_TRUE(again->write.intents[0].manual);
}

TEST(ByHand, SaysThatItReopensWhatIsSettledBelowTheFloor) {
  World world = NightlyWorld();
  world.state.floor = At("2026-10-02T17:00:00Z");
  const PlanInput input = world.Input(At("2026-11-20T12:00:00Z"));
  const auto settled = PlanByHand(input, "2026-10-02", "");
  ASSERT_TRUE(settled.ok()) << settled.status();
  EXPECT_TRUE(settled->intents.at(0).reopens);
  const auto fresh = PlanByHand(input, "2026-10-03", "");
  ASSERT_TRUE(fresh.ok()) << fresh.status();
  EXPECT_FALSE(fresh->intents.at(0).reopens);
}

TEST(Backfill, LeavesTheNextFireAndTheCursorWhereTheyAre) {
  World world = NightlyWorld();
  world.PlanUntil(At("2026-11-21T12:00:00Z"));
  world.Done("2026-11-20", At("2026-11-20T17:05:00Z"));
  const absl::Time cursor = world.state.cursor;
  const absl::Time next = world.next_look;
  const auto plan = PlanBackfill(world.Input(At("2026-11-21T12:00:00Z")), {},
                                 absl::CivilDay(2026, 2, 1), absl::CivilDay(2026, 2, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->write.intents, SizeIs(5));
  world.Write(plan->write, At("2026-11-21T12:00:00Z"));
  EXPECT_EQ(world.state.cursor, cursor);
  const PlanWrite after = world.Plan(At("2026-11-21T12:00:00Z"));
  EXPECT_THAT(after.intents, IsEmpty());
  EXPECT_EQ(world.next_look, next);
}

TEST(Backfill, TellsApartWhatIsThere) {
  World world = NightlyWorld();
  for (int i = 0; i < 6; ++i) world.Plan(At("2026-11-20T18:00:00Z") + i * kDay);
  const absl::Time now = At("2026-11-26T00:00:00Z");
  world.Done("2026-11-20", now);
  world.Fail("2026-11-21", now);
  world.Fail("2026-11-22", now, /*held=*/true);
  world.rows.at("2026-11-23").status = PeriodStatus::kSkipped;
  world.Run("2026-11-24", now);
  std::vector<PeriodRow> existing;
  for (const auto& [key, row] : world.rows) existing.push_back(row);
  const auto plan = PlanBackfill(world.Input(now), existing, absl::CivilDay(2026, 11, 19),
                                 absl::CivilDay(2026, 11, 25));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Periods(plan->left), ElementsAre("2026-11-20", "2026-11-24", "2026-11-25"));
  EXPECT_THAT(Periods(plan->reopen), ElementsAre("2026-11-22", "2026-11-23"));
  ASSERT_THAT(plan->write.intents, SizeIs(2));
  EXPECT_EQ(plan->write.intents[0].key.period, "2026-11-19");
  EXPECT_EQ(plan->write.intents[0].kind, Intent::Kind::kInsert);
  EXPECT_EQ(plan->write.intents[1].key.period, "2026-11-21");
  EXPECT_EQ(plan->write.intents[1].kind, Intent::Kind::kReattempt);
}

TEST(Backfill, WhatTheSourceNoLongerHasIsRecordedNotRun) {
  Job job = Nightly();
  job.backfill.source_window = 3 * kDay;
  World world(Resolved(job), At("2026-11-20T00:00:00Z"));
  const auto plan = PlanBackfill(world.Input(At("2026-11-20T12:00:00Z")), {},
                                 absl::CivilDay(2026, 11, 14), absl::CivilDay(2026, 11, 18));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(Periods(plan->unfillable), ElementsAre("2026-11-14", "2026-11-15", "2026-11-16"));
  EXPECT_THAT(plan->left, IsEmpty());
  ASSERT_THAT(plan->write.intents, SizeIs(5));
  EXPECT_EQ(plan->write.intents[2].skip_reason, "unfillable");
  EXPECT_EQ(plan->write.intents[3].skip_reason, "");
}

TEST(Backfill, IgnoresMisfireAndCap) {
  Job job = Nightly();
  job.misfire = Misfire::kSkip;
  job.backfill.max_periods = 2;
  World world(Resolved(job), At("2026-11-20T00:00:00Z"));
  const absl::Time now = At("2026-11-20T12:00:00Z");
  const auto plan =
      PlanBackfill(world.Input(now), {}, absl::CivilDay(2026, 10, 1), absl::CivilDay(2026, 10, 10));
  ASSERT_TRUE(plan.ok()) << plan.status();
  world.Write(plan->write, now);
  world.Plan(now);
  EXPECT_THAT(world.Periods("PLANNED backfill"), SizeIs(10));
}

TEST(Backfill, OfAnHourlyJobTakesTheHoursOfTheDays) {
  Job job = JobOf("0 * * * *", "America/New_York");
  job.period = PeriodKind::kHour;
  World world(Resolved(job), At("2026-11-20T00:00:00Z"));
  // The day on which the hour from 01:00 comes twice.
  const auto plan = PlanBackfill(world.Input(At("2026-11-20T12:00:00Z")), {},
                                 absl::CivilDay(2026, 11, 1), absl::CivilDay(2026, 11, 1));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->write.intents, SizeIs(25));
  EXPECT_EQ(plan->write.intents.front().due, At("2026-11-01T04:00:00Z"));
  EXPECT_EQ(plan->write.intents.back().due, At("2026-11-02T04:00:00Z"));
}

TEST(Backfill, RefusesARangeThatEndsBeforeItBegins) {
  World world = NightlyWorld();
  const auto plan = PlanBackfill(world.Input(At("2026-11-20T12:00:00Z")), {},
                                 absl::CivilDay(2026, 10, 3), absl::CivilDay(2026, 10, 1));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("earlier day first"));
}

TEST(Backfill, RefusesMoreThanAPlanShouldHold) {
  World world(Resolved(JobOf("* * * * *")), At("2026-11-20T00:00:00Z"));
  const auto plan = PlanBackfill(world.Input(At("2026-11-20T12:00:00Z")), {},
                                 absl::CivilDay(2026, 10, 1), absl::CivilDay(2026, 10, 31));
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(plan.status().message(), HasSubstr("shorter range"));
}

TEST(ByHand, RunsOnePeriodWithTheFireThatItIsDueAt) {
  World world = NightlyWorld();
  const absl::Time now = At("2026-11-20T12:00:00Z");
  const auto write = PlanByHand(world.Input(now), "2026-10-30", "{\"k\":1}");
  ASSERT_TRUE(write.ok()) << write.status();
  ASSERT_THAT(write->intents, SizeIs(1));
  const Intent& intent = write->intents[0];
  EXPECT_EQ(intent.due, At("2026-10-30T17:00:00Z"));
  EXPECT_EQ(intent.biz_date, absl::CivilDay(2026, 10, 30));
  EXPECT_EQ(intent.not_before, now);
  EXPECT_EQ(intent.params, "{\"k\":1}");
  EXPECT_TRUE(intent.manual);
  EXPECT_FALSE(intent.backfill);
}

TEST(ByHand, MayRunADateThatIsNotDueYet) {
  World world = NightlyWorld();
  const absl::Time now = At("2026-11-20T12:00:00Z");
  const auto write = PlanByHand(world.Input(now), "2026-11-20", "");
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->intents[0].due, At("2026-11-20T17:00:00Z"));
  EXPECT_EQ(write->intents[0].not_before, now);
}

TEST(ByHand, MayRunADayThatTheScheduleLeavesOut) {
  Job job = Nightly();
  job.schedule = "0 1 * * 2-6";  // the data of Monday to Friday
  World world(Resolved(job), At("2026-11-20T00:00:00Z"));
  const auto write = PlanByHand(world.Input(At("2026-11-20T12:00:00Z")), "2026-11-14", "");
  ASSERT_TRUE(write.ok()) << write.status();
  const Intent& saturday = write->intents[0];
  EXPECT_EQ(saturday.key.period, "2026-11-14");
  EXPECT_EQ(saturday.window_start, At("2026-11-13T16:00:00Z"));
  // Between its neighbours, Friday's data (14th, 01:00) and Monday's (17th, 01:00).
  EXPECT_GT(saturday.due, At("2026-11-13T17:00:00Z"));
  EXPECT_LT(saturday.due, At("2026-11-16T17:00:00Z"));
}

TEST(ByHand, WithoutAPeriodRunsTheNewestThatWasDue) {
  Job job = JobOf("0 2 * * *", "America/New_York");
  World world(Resolved(job), At("2024-03-01T00:00:00Z"));
  const auto write = PlanByHand(world.Input(At("2024-03-10T07:30:00Z")), "", "");
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->intents[0].window_start, At("2024-03-09T07:00:00Z"));
  EXPECT_EQ(write->intents[0].window_end, At("2024-03-10T07:00:00Z"));
}

TEST(ByHand, OfAJobByFireTakesOnlyFires) {
  World world(Resolved(JobOf("0 2 * * *")), At("2026-11-20T00:00:00Z"));
  const auto write =
      PlanByHand(world.Input(At("2026-11-20T12:00:00Z")), "2026-11-19T03:00:00Z", "");
  EXPECT_EQ(write.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(write.status().message(), HasSubstr("2026-11-20T02:00:00Z"));
}

TEST(ByHand, RefusesWhatRunsAndNamesTheRunner) {
  World world = NightlyWorld();
  world.Plan(At("2026-11-20T18:00:00Z"));
  world.Run("2026-11-20", At("2026-11-20T18:00:00Z"));
  world.rows.at("2026-11-20").node = "db-east/1";
  const auto write = PlanByHand(world.Input(At("2026-11-20T18:01:00Z")), "2026-11-20", "");
  EXPECT_EQ(write.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(write.status().message(), HasSubstr("db-east/1"));
}

TEST(ByHand, GivesAFailedPeriodNewAttempts) {
  World world = NightlyWorld();
  world.Plan(At("2026-11-20T18:00:00Z"));
  world.Fail("2026-11-20", At("2026-11-20T18:01:00Z"));
  const auto write = PlanByHand(world.Input(At("2026-11-20T18:02:00Z")), "2026-11-20", "");
  ASSERT_TRUE(write.ok()) << write.status();
  EXPECT_EQ(write->intents[0].kind, Intent::Kind::kReattempt);
}

TEST(ByHand, RefusesAKeyOfAnotherKind) {
  World world = NightlyWorld();
  const auto write = PlanByHand(world.Input(At("2026-11-20T18:01:00Z")), "2026-W44", "");
  EXPECT_EQ(write.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ResumeSkip, SettlesWhatTheSuspensionMissedByAPersonsWord) {
  World world(Resolved(JobOf("* * * * *")), At("2026-11-29T10:00:00Z"));
  world.PlanUntil(At("2026-11-29T10:00:30Z"));
  world.Done("2026-11-29T10:00:00Z", At("2026-11-29T10:00:01Z"));
  world.state.suspended = true;
  const absl::Time now = At("2026-11-29T10:15:30Z");
  const auto write = PlanResumeSkip(world.Input(now), {"cli:alice@host", "vendor was down"});
  ASSERT_TRUE(write.ok()) << write.status();
  world.Write(*write, now);
  world.state.suspended = false;
  EXPECT_EQ(world.Count("SKIPPED suspended"), 15);
  EXPECT_EQ(world.Row("2026-11-29T10:01:00Z").by, "cli:alice@host");
  EXPECT_EQ(write->act->why, "vendor was down");
  EXPECT_THAT(world.Plan(now).intents, IsEmpty());
  world.PlanUntil(At("2026-11-29T10:16:00Z"));
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T10:16:00Z"));
}

TEST(ResumeSkip, LeavesWhatRunsAndWhatIsHeld) {
  World world(Resolved(JobOf("* * * * *")), At("2026-11-29T10:00:00Z"));
  world.Plan(At("2026-11-29T10:02:30Z"));
  world.Run("2026-11-29T10:00:00Z", At("2026-11-29T10:02:30Z"));
  world.Fail("2026-11-29T10:01:00Z", At("2026-11-29T10:02:30Z"), /*held=*/true);
  world.state.suspended = true;
  const absl::Time now = At("2026-11-29T10:03:00Z");
  const auto write = PlanResumeSkip(world.Input(now), {"cli:alice@host", "x"});
  ASSERT_TRUE(write.ok()) << write.status();
  world.Write(*write, now);
  EXPECT_EQ(world.Told("2026-11-29T10:00:00Z"), "RUNNING");
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "FAILED");
  EXPECT_EQ(world.Told("2026-11-29T10:02:00Z"), "SKIPPED suspended");
  EXPECT_EQ(world.Told("2026-11-29T10:03:00Z"), "SKIPPED suspended");
}

TEST(ResumeRun, MakesGoodWhatTheSuspensionMissedByPolicy) {
  World world(Resolved(JobOf("* * * * *")), At("2026-11-29T10:00:30Z"));
  world.state.suspended = true;
  world.Plan(At("2026-11-29T10:00:31Z"));
  world.state.suspended = false;
  world.Plan(At("2026-11-29T10:15:30Z"));
  EXPECT_THAT(world.Periods("PLANNED backfill"), SizeIs(14));
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T10:15:00Z"));
}

}  // namespace
}  // namespace matins
