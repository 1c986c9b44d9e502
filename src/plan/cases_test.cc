// Faults that users of other schedulers met, each with the right answer of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plan/plan.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Job With(absl::string_view schedule, Misfire misfire, absl::string_view zone = "UTC") {
  Job job = JobOf(schedule, zone);
  job.misfire = misfire;
  return job;
}

// First seen, planned once, and then alone until `back`.
World After(const Job& job, absl::string_view seen, absl::string_view back) {
  World world(Resolved(job), At(seen));
  world.Plan(At(seen));
  world.Plan(At(back), Trigger::kReturn);
  return world;
}

TEST(Outage, OfMoreThanAHundredStartsBlocksNothing) {
  World skip =
      After(With("* * * * *", Misfire::kSkip), "2017-03-06T18:00:01Z", "2017-03-07T07:31:30Z");
  EXPECT_EQ(skip.Count("SKIPPED missed"), 810);
  EXPECT_THAT(skip.spans, SizeIs(1));
  EXPECT_THAT(skip.Periods("PLANNED"), ElementsAre("2017-03-07T07:31:00Z"));

  Job job = With("* * * * *", Misfire::kLatest);
  job.start_deadline = absl::Seconds(10);
  World latest = After(job, "2017-03-06T18:00:01Z", "2017-03-07T07:30:30Z");
  EXPECT_EQ(latest.Count("SKIPPED superseded"), 809);
  EXPECT_THAT(latest.Periods("PLANNED backfill"), ElementsAre("2017-03-07T07:30:00Z"));
  latest.Done("2017-03-07T07:30:00Z", At("2017-03-07T07:30:31Z"));
  latest.PlanUntil(At("2017-03-07T07:31:00Z"));
  EXPECT_THAT(latest.Periods("PLANNED"), ElementsAre("2017-03-07T07:31:00Z"));
}

TEST(Outage, OfADayDoesNotEndInAStorm) {
  const auto down = [](Misfire misfire) {
    Job job = With("*/10 * * * *", misfire);
    job.backfill.max_periods = 20;
    return After(job, "2019-12-30T09:05:00Z", "2019-12-31T09:05:00Z");
  };
  World skip = down(Misfire::kSkip);
  EXPECT_EQ(skip.Count("SKIPPED missed"), 144);
  EXPECT_EQ(skip.Count("PLANNED"), 0);
  EXPECT_EQ(skip.Count("PLANNED backfill"), 0);
  World latest = down(Misfire::kLatest);
  EXPECT_EQ(latest.Count("SKIPPED superseded"), 143);
  EXPECT_THAT(latest.Periods("PLANNED backfill"), ElementsAre("2019-12-31T09:00:00Z"));
  World each = down(Misfire::kEach);
  EXPECT_EQ(each.Count("SKIPPED cap"), 124);
  EXPECT_EQ(each.Count("PLANNED backfill"), 20);
  // New ones keep their own turn: the oldest goes over the cap when the next is due, not before.
  each.PlanUntil(At("2019-12-31T09:09:59Z"));
  EXPECT_EQ(each.Count("PLANNED backfill"), 20);
  each.PlanUntil(At("2019-12-31T09:10:00Z"));
  EXPECT_EQ(each.Count("PLANNED backfill"), 19);
  EXPECT_THAT(each.Periods("PLANNED"), ElementsAre("2019-12-31T09:10:00Z"));
}

TEST(Outage, AcrossTheOnlyStartKeepsItWithinTheDeadlineAndRecordsItBeyond) {
  for (const int deadline : {120, 600}) {
    Job job = With("0 15 * * *", Misfire::kSkip);
    job.start_deadline = absl::Seconds(deadline);
    World world = After(job, "2026-11-29T14:57:00Z", "2026-11-29T15:03:00Z");
    EXPECT_EQ(world.Told("2026-11-29T15:00:00Z"), deadline == 600 ? "PLANNED" : "SKIPPED missed");
  }
  World latest =
      After(With("0 15 * * *", Misfire::kLatest), "2026-11-29T14:57:00Z", "2026-11-29T15:03:00Z");
  EXPECT_EQ(latest.Told("2026-11-29T15:00:00Z"), "PLANNED backfill");
}

TEST(Outage, LeavesARecordOfEachStartThatFellTogether) {
  Job job = With("*/5 * * * *", Misfire::kLatest);
  World world = After(job, "2026-04-28T12:02:00Z", "2026-04-28T15:02:00Z");
  EXPECT_EQ(world.Count("SKIPPED superseded"), 35);
  EXPECT_THAT(world.Periods("PLANNED backfill"), ElementsAre("2026-04-28T15:00:00Z"));
}

TEST(Outage, OfALatestJobLeavesAtMostOnePending) {
  World world =
      After(With("* * * * *", Misfire::kLatest), "2026-11-29T10:00:10Z", "2026-11-29T12:00:30Z");
  EXPECT_EQ(world.Count("PLANNED") + world.Count("PLANNED backfill"), 1);
  // Nothing starts; the backlog does not grow.
  world.PlanUntil(At("2026-11-29T13:00:00Z"));
  EXPECT_LE(world.Count("PLANNED") + world.Count("PLANNED backfill"), 2);
  world.Plan(At("2026-11-29T13:05:30Z"));
  EXPECT_EQ(world.Count("PLANNED") + world.Count("PLANNED backfill"), 1);
}

TEST(NewJob, OwesNothingOfBeforeItWasMade) {
  World world(Resolved(With("0 0 1 * *", Misfire::kLatest)), At("2015-11-02T10:00:00Z"));
  for (int restart = 0; restart < 3; ++restart) {
    const PlanWrite write =
        world.Plan(At("2015-11-02T10:00:00Z") + restart * absl::Hours(1), Trigger::kReturn);
    EXPECT_THAT(write.intents, IsEmpty());
    EXPECT_EQ(write.next_look, At("2015-12-01T00:00:00Z") - absl::Seconds(5));
  }
}

TEST(Interval, KeepsItsPhaseOverRestarts) {
  World world(Resolved(With("@every 24h", Misfire::kEach)), At("2026-11-01T07:00:00Z"));
  for (int restart = 1; restart <= 7; ++restart) {
    world.Plan(At("2026-11-01T07:00:00Z") + restart * absl::Hours(10), Trigger::kReturn);
  }
  // Three days hold three multiples of 24 hours, whatever the restarts.
  EXPECT_THAT(world.rows, SizeIs(3));
}

TEST(OneOff, RunsOnceAtItsInstant) {
  Job job;
  job.name = "j";
  job.misfire = Misfire::kSkip;
  job.at = At("2026-11-29T12:03:00Z");
  World world(Resolved(job), At("2026-11-29T12:00:10Z"));
  world.PlanUntil(At("2026-11-29T12:03:00Z"));
  EXPECT_EQ(world.Row("2026-11-29T12:03:00Z").not_before, At("2026-11-29T12:03:00Z"));
  EXPECT_EQ(world.next_look, absl::InfiniteFuture());
}

TEST(OneOff, OfThisMomentRunsAtOnce) {
  Job job;
  job.name = "j";
  job.misfire = Misfire::kSkip;
  job.at = At("2026-11-29T12:00:00Z");
  World world(Resolved(job), At("2026-11-29T12:00:10Z"));
  world.Plan(At("2026-11-29T12:00:10Z"));
  EXPECT_EQ(world.Told("2026-11-29T12:00:00Z"), "PLANNED");
}

TEST(Change, OfTheScheduleStartsNothingAtOnce) {
  World world(Resolved(With("30 11 * * 5", Misfire::kLatest)), At("2017-12-01T00:00:00Z"));
  for (const char* friday :
       {"2017-12-01", "2017-12-08", "2017-12-15", "2017-12-22", "2017-12-29"}) {
    const std::string at = std::string(friday) + "T11:30:00Z";
    world.PlanUntil(At(at));
    world.Done(at, At(at));
  }
  world.Change(Resolved(With("0 11 * * 5", Misfire::kLatest)), At("2018-01-04T23:49:00Z"));
  EXPECT_THAT(world.Plan(At("2018-01-04T23:49:00Z")).intents, IsEmpty());
  world.PlanUntil(At("2018-01-05T12:00:00Z"));
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2018-01-05T11:00:00Z"));
}

TEST(Change, LeavesNoOldWakeUpBehind) {
  World world(Resolved(With("0 23 * * *", Misfire::kEach)), At("2025-03-14T00:00:00Z"));
  world.Plan(At("2025-03-14T00:00:00Z"));
  world.Change(Resolved(With("0 5 * * *", Misfire::kEach)), At("2025-03-14T12:00:00Z"));
  world.Plan(At("2025-03-14T12:00:00Z"));
  world.PlanUntil(At("2025-03-15T05:00:00Z"));
  ASSERT_THAT(world.rows, SizeIs(1));
  EXPECT_EQ(world.Told("2025-03-15T05:00:00Z"), "PLANNED");
}

TEST(Change, OfTheZoneDoesNotFireTwice) {
  World world(Resolved(With("0 21 * * *", Misfire::kEach, "Australia/Sydney")),
              At("2026-05-18T12:00:00Z"));
  world.Plan(At("2026-05-18T12:00:00Z"));
  world.Change(Resolved(With("0 21 * * *", Misfire::kEach, "Europe/Berlin")),
               At("2026-05-19T10:30:00Z"));
  world.Plan(At("2026-05-19T10:30:00Z"));
  world.PlanUntil(At("2026-05-19T22:00:00Z"));
  ASSERT_THAT(world.rows, SizeIs(1));
  EXPECT_EQ(world.rows.begin()->second.due, At("2026-05-19T19:00:00Z"));
}

TEST(Change, OfTheDefaultZoneRecomputesTheNextFire) {
  World world(Resolved(With("0 11 * * *", Misfire::kEach, "Etc/UTC")), At("2026-09-09T00:00:00Z"));
  world.Plan(At("2026-09-09T00:00:00Z"));
  world.Change(Resolved(With("0 11 * * *", Misfire::kEach, "Asia/Ho_Chi_Minh")),
               At("2026-09-09T03:00:00Z"));
  const PlanWrite write = world.Plan(At("2026-09-09T03:00:00Z"));
  EXPECT_THAT(write.intents, IsEmpty());
  EXPECT_EQ(write.next_look, At("2026-09-09T03:59:55Z"));
}

TEST(Change, ForgetsNoGapAndJudgesItByTheVersionThen) {
  World world(Resolved(With("0 * * * *", Misfire::kEach)), At("2026-11-29T00:30:00Z"));
  world.Plan(At("2026-11-29T00:30:00Z"));
  world.Change(Resolved(With("30 * * * *", Misfire::kSkip)), At("2026-11-29T03:10:00Z"));
  world.Plan(At("2026-11-29T05:10:00Z"));
  EXPECT_THAT(world.Periods("PLANNED backfill"),
              ElementsAre("2026-11-29T01:00:00Z", "2026-11-29T02:00:00Z", "2026-11-29T03:00:00Z"));
  EXPECT_THAT(world.Periods("SKIPPED missed"),
              ElementsAre("2026-11-29T03:30:00Z", "2026-11-29T04:30:00Z"));
  EXPECT_EQ(world.Row("2026-11-29T02:00:00Z").version, 1);
  EXPECT_EQ(world.Row("2026-11-29T03:30:00Z").version, 2);
}

TEST(Change, LeavesWhatWaitsToTheVersionThen) {
  World world(Resolved(With("0 * * * *", Misfire::kEach)), At("2026-11-29T00:30:00Z"));
  world.Plan(At("2026-11-29T02:10:00Z"));
  world.Change(Resolved(With("30 * * * *", Misfire::kSkip)), At("2026-11-29T02:10:00Z"));
  world.PlanUntil(At("2026-11-29T05:10:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T01:00:00Z"), "PLANNED backfill");
  EXPECT_EQ(world.Told("2026-11-29T02:00:00Z"), "PLANNED backfill");
}

TEST(Change, WithinAPeriodThatHadNoFireYetStillOwesIt) {
  Job hourly = With("0 */3 * * *", Misfire::kEach);
  hourly.period = PeriodKind::kHour;
  World world(Resolved(hourly), At("2026-11-29T09:30:00Z"));
  world.Plan(At("2026-11-29T10:29:00Z"));
  hourly.schedule = "*/7 * * * *";
  world.Change(Resolved(hourly), At("2026-11-29T10:30:00Z"));
  world.Plan(At("2026-11-29T10:30:00Z"));
  world.PlanUntil(At("2026-11-29T10:40:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:00:00Z"), "PLANNED");
}

TEST(Change, BehindOneThatAClockMadeTooFarAheadTakesItsPlace) {
  World world(Resolved(With("0 * * * *", Misfire::kEach)), At("2026-11-29T00:30:00Z"));
  world.Change(Resolved(With("10 * * * *", Misfire::kEach)), At("2026-11-29T05:00:00Z"));
  world.Change(Resolved(With("20 * * * *", Misfire::kEach)), At("2026-11-29T02:00:00Z"));
  world.Plan(At("2026-11-29T06:00:00Z"));
  EXPECT_THAT(world.Periods("PLANNED backfill"),
              ElementsAre("2026-11-29T01:00:00Z", "2026-11-29T02:20:00Z", "2026-11-29T03:20:00Z",
                          "2026-11-29T04:20:00Z", "2026-11-29T05:20:00Z"));
}

TEST(Change, WithinWhatWasPlannedAheadIsNotLost) {
  World world(Resolved(With("0 12 * * *", Misfire::kEach)), At("2026-11-29T00:00:00Z"));
  world.Plan(At("2026-11-29T11:59:55Z"));
  EXPECT_EQ(world.Told("2026-11-29T12:00:00Z"), "PLANNED");
  world.Change(Resolved(With("59 59 11 * * *", Misfire::kEach)), At("2026-11-29T11:59:57Z"));
  world.Plan(At("2026-11-29T11:59:57Z"));
  EXPECT_EQ(world.Told("2026-11-29T11:59:59Z"), "PLANNED");
  // It was not claimed, and the schedule in force then does not contain it.
  EXPECT_EQ(world.Told("2026-11-29T12:00:00Z"), "SKIPPED changed");
}

TEST(Pause, OwesNothingWhileItLastsAndShowsNoNextLook) {
  World world(Resolved(With("* * * * *", Misfire::kEach)), At("2026-11-29T10:00:00Z"));
  world.Plan(At("2026-11-29T10:00:30Z"));
  world.state.suspended = true;
  EXPECT_EQ(world.Plan(At("2026-11-29T10:05:00Z")).next_look, absl::InfiniteFuture());
  EXPECT_THAT(world.rows, SizeIs(1));
}

TEST(Clock, SetTo2200MaterialisesNothing) {
  World world(Resolved(With("* * * * *", Misfire::kEach)), At("2025-07-18T00:00:30Z"));
  world.Plan(At("2025-07-18T00:00:30Z"));
  const absl::StatusOr<PlanWrite> first = world.TryPlan(At("2200-01-01T00:00:00Z"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_LE(first->intents.size(), 200);
  ASSERT_THAT(first->spans, SizeIs(1));
  EXPECT_EQ(first->spans[0].reason, "cap");
  // The rest comes at once, piece by piece, and other jobs in between.
  EXPECT_EQ(first->next_look, At("2200-01-01T00:00:00Z"));
  EXPECT_LT(first->cursor, At("2026-07-18T00:00:00Z"));
}

TEST(Clock, SetBackDoesNotStopTheJobForTheSizeOfTheError) {
  World world(Resolved(With("0 */2 * * *", Misfire::kEach)), At("2098-01-01T00:00:00Z"));
  world.Plan(At("2098-01-01T00:00:00Z"));
  const absl::Time now = At("2019-09-09T10:00:30Z");
  EXPECT_EQ(world.Plan(now).next_look, At("2019-09-09T11:59:55Z"));
  world.PlanUntil(At("2019-09-09T12:00:00Z"));
  EXPECT_EQ(world.Told("2019-09-09T12:00:00Z"), "PLANNED");
  world.PlanUntil(At("2019-09-09T14:00:00Z"));
  EXPECT_EQ(world.Told("2019-09-09T14:00:00Z"), "PLANNED");
}

TEST(Clock, SetBackRunsNothingAgainThatIsRecorded) {
  World world(Resolved(With("* * * * *", Misfire::kLatest)), At("2026-11-29T14:59:30Z"));
  world.Plan(At("2026-11-29T15:00:00Z"));
  world.Done("2026-11-29T15:00:00Z", At("2026-11-29T15:00:01Z"));
  world.Plan(At("2026-11-29T17:00:00Z"));
  world.Done("2026-11-29T17:00:00Z", At("2026-11-29T17:00:01Z"));
  world.Plan(At("2026-11-29T15:01:00Z"));
  world.PlanUntil(At("2026-11-29T17:01:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T17:00:00Z"), "DONE");
  EXPECT_THAT(world.Periods("PLANNED"), ElementsAre("2026-11-29T17:01:00Z"));
}

TEST(Sleep, OverTheFireIsSeenOnReturnAndJudged) {
  Job job = With("0 8 * * *", Misfire::kSkip);
  job.start_deadline = absl::Hours(2);
  EXPECT_EQ(After(job, "2026-11-28T22:00:00Z", "2026-11-29T09:40:00Z").Told("2026-11-29T08:00:00Z"),
            "PLANNED");
  job.start_deadline = absl::Hours(1);
  EXPECT_EQ(After(job, "2026-11-28T22:00:00Z", "2026-11-29T09:40:00Z").Told("2026-11-29T08:00:00Z"),
            "SKIPPED missed");
}

TEST(EarlyWake, PlansTheSameOccurrenceOnce) {
  World world(Resolved(With("45 8 * * *", Misfire::kEach)), At("2026-11-29T00:00:00Z"));
  world.Plan(At("2026-11-29T08:44:58.5Z"));
  world.Plan(At("2026-11-29T08:44:59.6Z"));
  world.Plan(At("2026-11-29T08:45:00Z"));
  ASSERT_THAT(world.rows, SizeIs(1));
  EXPECT_EQ(world.Row("2026-11-29T08:45:00Z").not_before, At("2026-11-29T08:45:00Z"));
  EXPECT_EQ(world.next_look, At("2026-11-30T08:44:55Z"));
}

TEST(LongRun, OverAFireIsMadeUpOnceAtMost) {
  Job job = With("* * * * *", Misfire::kLatest);
  job.start_deadline = absl::Seconds(20);
  World world(Resolved(job), At("2026-11-29T10:00:00Z"));
  world.Plan(At("2026-11-29T10:00:00Z"));
  world.Run("2026-11-29T10:00:00Z", At("2026-11-29T10:00:00Z"));
  world.PlanUntil(At("2026-11-29T10:01:00Z"));
  EXPECT_EQ(world.Row("2026-11-29T10:01:00Z").start_by, At("2026-11-29T10:01:20Z"));
  world.Done("2026-11-29T10:00:00Z", At("2026-11-29T10:01:30Z"));
  world.Plan(At("2026-11-29T10:01:30Z"));  // START asked for a judgement
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "PLANNED backfill");
  world.Done("2026-11-29T10:01:00Z", At("2026-11-29T10:01:40Z"));
  world.PlanUntil(At("2026-11-29T10:02:00Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:02:00Z"), "PLANNED");
}

TEST(LongRun, OverAFireSkipsItUnderSkip) {
  World world(Resolved(With("* * * * *", Misfire::kSkip)), At("2026-11-29T10:00:00Z"));
  world.Plan(At("2026-11-29T10:00:00Z"));
  world.Run("2026-11-29T10:00:00Z", At("2026-11-29T10:00:00Z"));
  world.PlanUntil(At("2026-11-29T10:01:00Z"));
  world.Plan(At("2026-11-29T10:02:10Z"));
  EXPECT_EQ(world.Told("2026-11-29T10:01:00Z"), "SKIPPED missed");
  EXPECT_EQ(world.Told("2026-11-29T10:02:00Z"), "PLANNED");
}

TEST(StartDate, FortyDaysBackGivesFortyDatesInPieces) {
  Job job = With("0 1 * * *", Misfire::kEach);
  job.period = PeriodKind::kDay;
  job.biz_date = {-1, BizShift::Unit::kDay};
  job.backfill.start = absl::CivilDay(2026, 10, 20);
  job.backfill.max_periods = std::nullopt;
  World world(Resolved(job), At("2026-11-29T00:30:00Z"));
  world.Plan(At("2026-11-29T01:00:30Z"));
  EXPECT_EQ(world.rows.begin()->first, "2026-10-20");
  EXPECT_EQ(world.rows.rbegin()->first, "2026-11-28");
  EXPECT_THAT(world.rows, SizeIs(40));
}

TEST(StartDate, AtTheFirstDayOfThirtyFiveSkipsTheFiveOldest) {
  Job job = With("0 1 * * *", Misfire::kEach);
  job.period = PeriodKind::kDay;
  job.biz_date = {-1, BizShift::Unit::kDay};
  job.backfill.start = absl::CivilDay(2026, 10, 25);
  World world(Resolved(job), At("2026-11-29T10:00:00Z"));
  world.Plan(At("2026-11-29T10:00:00Z"));
  EXPECT_THAT(world.Periods("SKIPPED cap"),
              ElementsAre("2026-10-25", "2026-10-26", "2026-10-27", "2026-10-28", "2026-10-29"));
  EXPECT_EQ(world.Count("PLANNED backfill"), 30);
}

TEST(Calendar, ThatEndsRefusesInsteadOfWorkingThroughHolidays) {
  Job job = With("0 6 * * 1-5", Misfire::kEach, "Asia/Seoul");
  job.calendar = "kr";
  const ResolvedJob resolved = Resolved(job, "2026-09-24 off\n2026-09-25 off\n2026-12-31 off\n",
                                        absl::CivilDay(2026, 12, 31));
  World world(resolved, At("2026-09-22T22:00:00Z"));
  world.PlanUntil(At("2026-09-27T21:00:00Z"));
  ASSERT_THAT(world.rows, SizeIs(1));
  EXPECT_EQ(world.rows.begin()->second.due, At("2026-09-27T21:00:00Z"));
  // What the calendar covers is planned first; then it says what is missing.
  world.PlanUntil(At("2026-12-29T21:00:00Z"));
  EXPECT_EQ(world.Told("2026-12-29T21:00:00Z"), "PLANNED");
  world.Plan(At("2026-12-30T12:00:00Z"));
  const absl::StatusOr<PlanWrite> beyond = world.TryPlan(At("2026-12-31T21:00:00Z"));
  ASSERT_TRUE(beyond.ok()) << beyond.status();
  world.Write(*beyond, At("2026-12-31T21:00:00Z"));
  const absl::Status refused = world.TryPlan(At("2026-12-31T21:00:00Z")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("kr"));
  EXPECT_THAT(refused.message(), HasSubstr("2026-12-31"));
}

TEST(Spread, IsStableNeverEarlyAndNeverPastTheNextFire) {
  std::vector<absl::Duration> delays;
  for (int i = 0; i < 200; ++i) {
    Job job = With("0 0 * * *", Misfire::kEach);
    job.name = "job" + std::to_string(i);
    job.spread = absl::Seconds(60);
    World world(Resolved(job), At("2026-11-28T12:00:00Z"));
    world.Plan(At("2026-11-30T00:00:05Z"));
    ASSERT_THAT(world.rows, SizeIs(2));
    const PeriodRow& row = world.Row("2026-11-29T00:00:00Z");
    const absl::Duration delay = row.not_before - row.due;
    EXPECT_GE(delay, absl::ZeroDuration());
    EXPECT_LT(delay, absl::Seconds(60));
    const PeriodRow& next = world.Row("2026-11-30T00:00:00Z");
    EXPECT_EQ(next.not_before - next.due, delay);
    EXPECT_EQ(next.start_by, absl::InfiniteFuture());
    delays.push_back(delay);
  }
  std::sort(delays.begin(), delays.end());
  EXPECT_LT(delays.front(), absl::Seconds(3));
  EXPECT_GT(delays.back(), absl::Seconds(57));

  Job job = With("* * * * *", Misfire::kSkip);
  job.spread = absl::Hours(5);
  World world(Resolved(job), At("2026-11-29T12:00:30Z"));
  world.Plan(At("2026-11-29T12:01:00Z"));
  const PeriodRow& row = world.Row("2026-11-29T12:01:00Z");
  EXPECT_LT(row.not_before, At("2026-11-29T12:02:00Z"));
  EXPECT_EQ(row.start_by, row.not_before + absl::Seconds(60));
}

TEST(Backlog, OfAnEverySecondJobHoldsLittle) {
  Job job = With("* * * * * *", Misfire::kEach);
  World world(Resolved(job), At("2025-11-29T00:00:00Z"));
  world.Plan(At("2025-11-29T00:00:00Z"));
  absl::Time now = At("2025-12-03T00:00:30Z");
  const PlanWrite all = world.Plan(now);
  EXPECT_EQ(world.Count("SKIPPED cap"), 4 * 86400 + 1);
  EXPECT_LE(all.intents.size(), 150u);
  EXPECT_LE(all.spans.size(), 6u);
  EXPECT_EQ(world.Count("PLANNED") + world.Count("PLANNED backfill"), 35);
}

// A clock that shows the last second of June twice, and one that is slowed down over it.
TEST(LeapSecond, ThatIsRepeatedOrSmearedLeavesOneRunOfTheMorning) {
  const std::vector<std::vector<std::string>> clocks = {
      {"23:59:59.1", "23:59:59.9", "00:00:00.1", "23:59:59.2", "23:59:59.9", "00:00:00.1"},
      {"23:59:58.9", "23:59:59.9", "23:59:59.99999", "00:00:00.000001", "00:00:00.9"}};
  constexpr char kMorning[] = "2015-07-01T00:00:00Z";
  for (const std::vector<std::string>& clock : clocks) {
    World world(Resolved(With("0 0 * * *", Misfire::kEach)), At("2015-06-30T00:30:00Z"));
    world.ahead = absl::ZeroDuration();
    int started = 0;
    for (const std::string& time : clock) {
      const bool june = time[0] == '2';
      const absl::Time now = At(absl::StrCat(june ? "2015-06-30T" : "2015-07-01T", time, "Z"));
      world.Plan(now);
      if (world.Told(kMorning) == "none") continue;
      EXPECT_LE(world.Row(kMorning).not_before, At(kMorning));
      if (world.Told(kMorning) != "PLANNED" || now < At(kMorning)) continue;
      ++started;
      world.Done(kMorning, now);
    }
    EXPECT_EQ(started, 1);
    EXPECT_THAT(world.rows, SizeIs(1));
    EXPECT_EQ(world.Row(kMorning).generation, 1);
  }
}

}  // namespace
}  // namespace matins
