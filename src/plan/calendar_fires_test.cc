#include "job/calendar_fires.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/time.h"
#include "plan/spread.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// China's autumn of 2026: a week off, and two days of weekends worked for it.
constexpr char kChina[] =
    "2026-10-01..2026-10-07 off\n"
    "2026-09-20 on\n"
    "2026-10-10 on\n";

ResolvedJob With(absl::string_view schedule, absl::string_view days = kChina,
                 absl::string_view zone = "Asia/Shanghai") {
  Job job = JobOf(schedule, zone);
  job.calendar = "cn";
  return Resolved(job, days, absl::CivilDay(2026, 12, 31));
}

std::vector<std::string> Nominal(const ResolvedJob& job, absl::Time from, absl::Time to) {
  std::vector<std::string> days;
  for (auto fire = NextFire(job, from); fire && fire->fire.at < to;
       fire = NextFire(job, fire->fire.at)) {
    days.push_back(absl::FormatCivilTime(fire->fire.nominal));
  }
  return days;
}

TEST(CalendarFires, LeavesHolidaysOutAndPutsWorkedWeekendsIn) {
  EXPECT_THAT(Nominal(With("0 1 * * 1-5"), At("2026-09-29T00:00:00Z"), At("2026-10-13T00:00:00Z")),
              ElementsAre("2026-09-30T01:00:00", "2026-10-08T01:00:00", "2026-10-09T01:00:00",
                          "2026-10-10T01:00:00", "2026-10-12T01:00:00", "2026-10-13T01:00:00"));
}

TEST(CalendarFires, PutsASundayInToo) {
  EXPECT_THAT(
      Nominal(With("0 9,17 * * 1-5"), At("2026-09-18T10:00:00Z"), At("2026-09-21T00:00:00Z")),
      ElementsAre("2026-09-20T09:00:00", "2026-09-20T17:00:00"));
}

TEST(CalendarFires, ADailyScheduleFiresOncePerWorkingDay) {
  EXPECT_THAT(Nominal(With("0 1 * * *"), At("2026-10-08T00:00:00Z"), At("2026-10-13T00:00:00Z")),
              ElementsAre("2026-10-09T01:00:00", "2026-10-10T01:00:00", "2026-10-12T01:00:00",
                          "2026-10-13T01:00:00"));
}

TEST(CalendarFires, AScheduleOfSomeWeekdaysIsNotMovedToAWorkedWeekend) {
  EXPECT_THAT(Nominal(With("0 1 * * 1"), At("2026-10-05T00:00:00Z"), At("2026-10-12T23:00:00Z")),
              ElementsAre("2026-10-12T01:00:00"));
  EXPECT_THAT(Nominal(With("0 1 10 * *"), At("2026-09-21T00:00:00Z"), At("2026-10-11T00:00:00Z")),
              ElementsAre("2026-10-10T01:00:00"));
  EXPECT_THAT(Nominal(With("0 1 9 * *"), At("2026-10-10T00:00:00Z"), At("2026-11-01T00:00:00Z")),
              IsEmpty());
}

TEST(CalendarFires, SaysWhereTheCalendarEnds) {
  const auto fire = NextFire(With("0 1 * * 1-5"), At("2026-12-31T10:00:00Z"));
  ASSERT_TRUE(fire.has_value());
  EXPECT_FALSE(fire->covered);
}

TEST(CalendarFires, PreviousIsTheReverseOfNext) {
  const char* const kDays =
      "2026-03-08 on\n2026-10-31 on\n2026-11-01 on\n2026-03-02..2026-03-04 off\n";
  for (const char* schedule :
       {"30 2 * * 1-5", "*/20 * * * 1-5", "15 1 * * *", "0 9 * * 1-5", "0 0 1 * *", "0 3 * * 2"}) {
    const ResolvedJob job = With(schedule, kDays, "America/New_York");
    for (const char* from : {"2026-02-26T00:00:00Z", "2026-10-28T00:00:00Z"}) {
      absl::Time last = At(from);
      const absl::Time end = last + absl::Hours(24 * 14);
      for (auto fire = NextFire(job, last); fire && fire->fire.at < end;
           fire = NextFire(job, fire->fire.at)) {
        ASSERT_GT(fire->fire.at, last);
        const auto back = PreviousFire(job, fire->fire.at + absl::Seconds(1));
        ASSERT_TRUE(back.has_value()) << schedule;
        EXPECT_EQ(FormatInstant(back->at), FormatInstant(fire->fire.at)) << schedule;
        last = fire->fire.at;
      }
    }
  }
}

TEST(CalendarFires, PassesOverYearsOfDaysOffInBoundedTime) {
  const ResolvedJob job = With("* * * * * *", "2020-01-01..2026-06-30 off\n", "UTC");
  const auto next = NextFire(job, At("2020-01-01T00:00:00Z"));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->fire.at, At("2026-07-01T00:00:00Z"));
}

TEST(StableHash, IsTheSameForEver) {
  EXPECT_EQ(StableHash(""), 0xf52a15e9a9b5e89bU);
  EXPECT_EQ(StableHash("recon"), StableHash("recon"));
  EXPECT_NE(StableHash("job1") >> 56, StableHash("job2") >> 56);
}

}  // namespace
}  // namespace matins
