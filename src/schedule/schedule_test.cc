#include "schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"

namespace matins {
namespace {

using testing::HasSubstr;

Schedule Parsed(absl::string_view text, absl::string_view zone = "UTC",
                Dialect dialect = Dialect::kAuto, DstRule dst = {}) {
  const auto schedule = Schedule::Parse(text, {dialect, *LoadZone(zone), dst});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *schedule;
}

std::string Next(const Schedule& schedule, absl::string_view from, int n = 1) {
  std::vector<std::string> found;
  absl::Time after = *ParseInstant(from);
  while (static_cast<int>(found.size()) < n) {
    const auto fire = schedule.Next(after);
    if (!fire.has_value()) break;
    EXPECT_GT(fire->at, after);
    found.push_back(FormatInstant(fire->at));
    after = fire->at;
  }
  return absl::StrJoin(found, " ");
}

std::string Previous(const Schedule& schedule, absl::string_view before) {
  const auto fire = schedule.Previous(*ParseInstant(before));
  return fire.has_value() ? FormatInstant(fire->at) : "none";
}

// All fires of [from, to).
std::string Between(const Schedule& schedule, absl::string_view from, absl::string_view to) {
  std::vector<std::string> found;
  for (auto fire = schedule.Next(*ParseInstant(from) - absl::Seconds(1));
       fire.has_value() && fire->at < *ParseInstant(to); fire = schedule.Next(fire->at)) {
    found.push_back(FormatInstant(fire->at));
  }
  return absl::StrJoin(found, " ");
}

std::string Refusal(absl::string_view text, Dialect dialect = Dialect::kAuto) {
  const auto schedule = Schedule::Parse(text, {dialect, absl::UTCTimeZone(), {}});
  EXPECT_FALSE(schedule.ok()) << "'" << text << "' was taken";
  return std::string(schedule.status().message());
}

TEST(MissingHour, NightlyJobRunsAtItsEnd) {
  EXPECT_EQ(Next(Parsed("0 2 * * *", "America/Los_Angeles"), "2025-03-08T10:00:00Z", 2),
            "2025-03-09T10:00:00Z 2025-03-10T09:00:00Z");
}

TEST(MissingHour, YearlyDateOnItIsFoundAtOnce) {
  EXPECT_EQ(Next(Parsed("0 1 30 3 *", "Europe/Lisbon"), "2024-11-15T00:00:00Z"),
            "2025-03-30T01:00:00Z");
}

TEST(MissingHour, DayWithoutMidnightKeepsItsOtherHours) {
  for (const char* text : {"0 1 * * 0", "0 1 4 11 *"}) {
    EXPECT_EQ(Next(Parsed(text, "America/Sao_Paulo"), "2018-11-04T02:00:00Z"),
              "2018-11-04T03:00:00Z");
  }
}

TEST(MissingHour, MidnightJobRunsWhenTheDayBeginsAndTheWayBackIsTheSame) {
  const Schedule schedule = Parsed("0 0 * * *", "America/Sao_Paulo");
  EXPECT_EQ(Next(schedule, "2018-11-03T12:00:00Z", 2), "2018-11-04T03:00:00Z 2018-11-05T02:00:00Z");
  EXPECT_EQ(Previous(schedule, "2018-11-05T12:00:00Z"), "2018-11-05T02:00:00Z");
  EXPECT_EQ(Previous(schedule, "2018-11-05T02:00:00Z"), "2018-11-04T03:00:00Z");
  EXPECT_EQ(Previous(schedule, "2018-11-04T03:00:00Z"), "2018-11-03T03:00:00Z");
}

TEST(MissingHour, WeeklyMidnightJobMovesOnThroughAMissingMidnight) {
  EXPECT_EQ(Next(Parsed("0 0 * * 0", "America/Santiago"), "2022-08-28T05:00:00Z", 3),
            "2022-09-04T04:00:00Z 2022-09-11T04:00:00Z 2022-09-18T03:00:00Z");
}

TEST(MissingHour, DayOf23HoursIsNotSteppedOver) {
  EXPECT_EQ(Next(Parsed("0 0 * * 1", "Europe/Zurich"), "2021-03-22T12:00:00Z"),
            "2021-03-28T22:00:00Z");
  EXPECT_EQ(Next(Parsed("0 8 * * 0", "America/Chicago"), "2026-03-08T05:45:00Z"),
            "2026-03-08T13:00:00Z");
  EXPECT_EQ(Next(Parsed("0 12 * * 0", "Europe/Berlin"), "2022-03-24T11:00:00Z"),
            "2022-03-27T10:00:00Z");
  EXPECT_EQ(Next(Parsed("30 14 * * *", "Europe/Vilnius"), "2020-03-28T12:30:00Z"),
            "2020-03-29T11:30:00Z");
  EXPECT_EQ(Next(Parsed("30 4 * * *", "America/Denver"), "2022-03-12T11:30:00Z"),
            "2022-03-13T10:30:00Z");
  EXPECT_EQ(Next(Parsed("55 5,11,17 * * *", "Europe/Berlin"), "2023-03-25T20:54:04Z"),
            "2023-03-26T03:55:00Z");
}

TEST(MissingHour, JobJustBeforeItRunsOnce) {
  EXPECT_EQ(Between(Parsed("30 1 * * *", "America/New_York"), "2016-03-13T00:00:00Z",
                    "2016-03-14T00:00:00Z"),
            "2016-03-13T06:30:00Z");
}

TEST(MissingHour, HalfHourChangeIsTheSameForwardsAndBackwards) {
  const Schedule schedule = Parsed("0 * * * *", "Australia/Lord_Howe");
  EXPECT_EQ(Next(schedule, "2019-10-05T15:13:00Z"), "2019-10-05T16:00:00Z");
  EXPECT_EQ(Next(schedule, "2019-10-05T15:29:59Z"), "2019-10-05T16:00:00Z");
  EXPECT_EQ(Previous(schedule, "2019-10-05T16:00:00Z"), "2019-10-05T14:30:00Z");
}

TEST(MissingHour, StepInTheHourFieldGoesOnAfterIt) {
  EXPECT_EQ(Next(Parsed("20 */4 * * *", "America/Los_Angeles"), "2023-03-12T08:20:00Z", 2),
            "2023-03-12T11:20:00Z 2023-03-12T15:20:00Z");
}

TEST(MissingHour, LeftOutDayMakesNoFireGood) {
  EXPECT_EQ(Next(Parsed("0 9 * * *", "Pacific/Apia"), "2011-12-29T12:00:00Z", 2),
            "2011-12-29T19:00:00Z 2011-12-30T19:00:00Z");
}

TEST(MissingHour, StepFromZeroIsAnIntervalExceptInFiveFields) {
  EXPECT_FALSE(Parsed("0/30 2 * * *").is_interval());
  EXPECT_TRUE(Parsed("0 0/30 2 * * *").is_interval());
  EXPECT_TRUE(Parsed("0 0/30 2 * * ?").is_interval());
  EXPECT_TRUE(Parsed("*-*-* 2:00/30").is_interval());
  EXPECT_FALSE(Parsed("0 5/30 2 * * *").is_interval());
  EXPECT_FALSE(Parsed("0,15,30,45 0-23 * * *").is_interval());
  EXPECT_TRUE(Parsed("@hourly").is_interval());
  EXPECT_EQ(Next(Parsed("0/30 2 * * *", "America/New_York"), "2026-03-07T12:00:00Z"),
            "2026-03-08T07:00:00Z");
}

TEST(MissingHour, OtherRulesCanBeChosen) {
  const char* from = "2026-03-07T12:00:00Z";
  EXPECT_EQ(
      Next(Parsed("30 2 * * *", "America/New_York", Dialect::kAuto, {GapRule::kSkip, {}}), from),
      "2026-03-09T06:30:00Z");
  EXPECT_EQ(
      Next(Parsed("30 2 * * *", "America/New_York", Dialect::kAuto, {GapRule::kShift, {}}), from),
      "2026-03-08T07:30:00Z");
}

TEST(RepeatedHour, HalfHourChangeRepeatsHalfAnHour) {
  EXPECT_EQ(Between(Parsed("45 1 * * *", "Australia/Lord_Howe"), "2019-04-06T00:00:00Z",
                    "2019-04-07T12:00:00Z"),
            "2019-04-06T14:45:00Z");
  EXPECT_EQ(Between(Parsed("15 1 * * *", "Australia/Lord_Howe"), "2019-04-06T00:00:00Z",
                    "2019-04-07T12:00:00Z"),
            "2019-04-06T14:15:00Z");
}

TEST(RepeatedHour, NextIsNeverInThePast) {
  for (const char* from :
       {"2026-11-01T06:00:00Z", "2026-11-01T06:15:00Z", "2026-11-01T06:29:00Z"}) {
    EXPECT_EQ(Next(Parsed("30 1 * * *", "America/New_York"), from), "2026-11-02T06:30:00Z");
  }
  EXPECT_EQ(Next(Parsed("* * * * *", "America/New_York"), "2026-11-01T06:30:15Z"),
            "2026-11-01T06:31:00Z");
  EXPECT_EQ(Next(Parsed("0 2 * * 0", "Europe/Berlin"), "2024-10-27T00:30:00Z"),
            "2024-11-03T01:00:00Z");
}

TEST(RepeatedHour, EveryMinuteIsSixtyRunsInIt) {
  const Schedule schedule = Parsed("* * * * *", "America/New_York");
  absl::Time after = *ParseInstant("2026-11-01T05:59:30Z");
  for (int i = 0; i < 60; ++i) {
    const auto fire = schedule.Next(after);
    ASSERT_TRUE(fire.has_value());
    EXPECT_EQ(fire->at, *ParseInstant("2026-11-01T06:00:00Z") + absl::Minutes(i));
    after = fire->at;
  }
  EXPECT_EQ(FormatInstant(after), "2026-11-01T06:59:00Z");
}

TEST(RepeatedHour, IntervalsGoOnThroughIt) {
  EXPECT_EQ(Between(Parsed("*/15 * * * *", "Europe/London"), "2025-10-25T23:59:00Z",
                    "2025-10-26T02:00:01Z"),
            "2025-10-26T00:00:00Z 2025-10-26T00:15:00Z 2025-10-26T00:30:00Z 2025-10-26T00:45:00Z "
            "2025-10-26T01:00:00Z 2025-10-26T01:15:00Z 2025-10-26T01:30:00Z 2025-10-26T01:45:00Z "
            "2025-10-26T02:00:00Z");
  EXPECT_EQ(Between(Parsed("0 * * * *", "America/Los_Angeles"), "2025-11-02T06:59:00Z",
                    "2025-11-02T11:00:01Z"),
            "2025-11-02T07:00:00Z 2025-11-02T08:00:00Z 2025-11-02T09:00:00Z 2025-11-02T10:00:00Z "
            "2025-11-02T11:00:00Z");
}

TEST(RepeatedHour, LocalTimeStaysWhereItWasOnBothSides) {
  const Schedule schedule = Parsed("0 8 * * 1-5", "America/New_York");
  EXPECT_EQ(Previous(schedule, "2018-11-04T10:00:00Z"), "2018-11-02T12:00:00Z");
  EXPECT_EQ(Next(schedule, "2018-11-04T10:00:00Z"), "2018-11-05T13:00:00Z");
  EXPECT_EQ(Next(schedule, "2018-11-02T12:00:00Z"), "2018-11-05T13:00:00Z");
  EXPECT_EQ(Next(Parsed("55 6 * * tue#1", "America/Los_Angeles"), "2020-11-30T08:00:00Z"),
            "2020-12-01T14:55:00Z");
}

TEST(RepeatedHour, OtherRulesCanBeChosen) {
  const char* from = "2026-10-31T12:00:00Z";
  EXPECT_EQ(Next(Parsed("30 1 * * *", "America/New_York", Dialect::kAuto,
                        {GapRule::kNext, OverlapRule::kSecond}),
                 from, 2),
            "2026-11-01T06:30:00Z 2026-11-02T06:30:00Z");
  EXPECT_EQ(Next(Parsed("30 1 * * *", "America/New_York", Dialect::kAuto,
                        {GapRule::kNext, OverlapRule::kBoth}),
                 from, 3),
            "2026-11-01T05:30:00Z 2026-11-01T06:30:00Z 2026-11-02T06:30:00Z");
}

TEST(DayFields, EitherMatchesWhenBothAreGiven) {
  EXPECT_EQ(Next(Parsed("30 0 1 * 1"), "2019-02-19T00:00:00Z", 4),
            "2019-02-25T00:30:00Z 2019-03-01T00:30:00Z 2019-03-04T00:30:00Z 2019-03-11T00:30:00Z");
  EXPECT_EQ(Next(Parsed("0 2 29 2 0"), "2018-05-14T00:00:00Z"), "2019-02-03T02:00:00Z");
}

TEST(DayFields, StepOfWeekdaysIsTheListOfThem) {
  for (const char* text : {"0 0 * * */2", "0 0 * * 0,2,4,6"}) {
    EXPECT_EQ(Next(Parsed(text), "2026-01-01T23:59:00Z"), "2026-01-03T00:00:00Z");
    EXPECT_EQ(
        Between(Parsed(text), "2026-01-01T00:00:00Z", "2026-01-07T00:00:00Z"),
        "2026-01-01T00:00:00Z 2026-01-03T00:00:00Z 2026-01-04T00:00:00Z 2026-01-06T00:00:00Z");
  }
}

TEST(DayFields, RangesEndOnSundayUnderEitherNumberOrName) {
  const char* from = "2025-03-12T12:00:00Z";
  EXPECT_EQ(Next(Parsed("0 0 * * sat-sun"), from, 4),
            "2025-03-15T00:00:00Z 2025-03-16T00:00:00Z 2025-03-22T00:00:00Z 2025-03-23T00:00:00Z");
  for (const char* text : {"0 0 * * 5-7", "0 0 * * FRI-SUN"}) {
    EXPECT_EQ(Next(Parsed(text), from, 3),
              "2025-03-14T00:00:00Z 2025-03-15T00:00:00Z 2025-03-16T00:00:00Z");
  }
  EXPECT_EQ(Next(Parsed("0 0 * * mon-sun"), from, 3),
            "2025-03-13T00:00:00Z 2025-03-14T00:00:00Z 2025-03-15T00:00:00Z");
  for (const char* text : {"0 0 * * 7", "0 0 * * 0"}) {
    EXPECT_EQ(Next(Parsed(text), from), "2025-03-16T00:00:00Z");
  }
}

TEST(DayFields, WeekdaysGoOnOverTheMonthsEnd) {
  EXPECT_EQ(Next(Parsed("0 8 * * MON-FRI"), "2017-06-30T10:00:00Z"), "2017-07-03T08:00:00Z");
  EXPECT_EQ(Next(Parsed("0 8 * * MON-FRI"), "2017-09-29T10:00:00Z"), "2017-10-02T08:00:00Z");
  EXPECT_EQ(Next(Parsed("0 0 * * sun"), "2022-02-17T00:00:00Z"), "2022-02-20T00:00:00Z");
}

TEST(LeapDay, IsFoundBackwardsAndForwards) {
  EXPECT_EQ(Previous(Parsed("0 0 29 2 *"), "2021-12-07T12:00:00Z"), "2020-02-29T00:00:00Z");
  EXPECT_EQ(Next(Parsed("0 0 29 2 *"), "2096-03-01T00:00:00Z"), "2104-02-29T00:00:00Z");
}

TEST(MonthsEnd, DatesThatNoMonthHasAreRefused) {
  for (const char* text : {"0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("never fires"));
  }
}

TEST(MonthsEnd, The31stIsOnlyWhereItExists) {
  EXPECT_EQ(Between(Parsed("0 0 31 * *"), "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
            "2025-01-31T00:00:00Z 2025-03-31T00:00:00Z 2025-05-31T00:00:00Z 2025-07-31T00:00:00Z "
            "2025-08-31T00:00:00Z 2025-10-31T00:00:00Z 2025-12-31T00:00:00Z");
}

TEST(MonthsEnd, LastFridayAndLastWorkingDayAreReal) {
  EXPECT_EQ(Between(Parsed("0 0 * * 5L"), "2021-01-01T00:00:00Z", "2022-01-01T00:00:00Z"),
            "2021-01-29T00:00:00Z 2021-02-26T00:00:00Z 2021-03-26T00:00:00Z 2021-04-30T00:00:00Z "
            "2021-05-28T00:00:00Z 2021-06-25T00:00:00Z 2021-07-30T00:00:00Z 2021-08-27T00:00:00Z "
            "2021-09-24T00:00:00Z 2021-10-29T00:00:00Z 2021-11-26T00:00:00Z 2021-12-31T00:00:00Z");
  EXPECT_EQ(Next(Parsed("0 5 LW * *"), "2023-10-01T00:00:00Z"), "2023-10-31T05:00:00Z");
  EXPECT_EQ(Next(Parsed("0 5 LW * *"), "2023-11-30T05:00:00Z"), "2023-12-29T05:00:00Z");
}

TEST(Fields, StepLargerThanTheFieldIsRefusedByName) {
  EXPECT_THAT(Refusal("*/60 * * * *"), HasSubstr("minute '*/60': has a step larger"));
  EXPECT_THAT(Refusal("*/90 * * * *"), HasSubstr("@every 90m"));
  EXPECT_THAT(Refusal("0 */25 * * *"), HasSubstr("hour '*/25'"));
  EXPECT_THAT(Refusal("0 0 */32 * *"), HasSubstr("day of month '*/32'"));
}

TEST(Fields, StepOfZeroIsOneErrorInEveryForm) {
  for (const char* text :
       {"*/0 * * * *", "5-5/0 * * * *", "59-0/0 * * * *", "* * 31-1/0 * *", "0/0 * * * *"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("has a step of 0; write a step of 1-"));
  }
}

TEST(Fields, StartAndStepWithoutARangeRunToTheFieldsEnd) {
  EXPECT_EQ(Next(Parsed("5/15 * * * *"), "2019-04-23T10:00:30Z", 5),
            "2019-04-23T10:05:00Z 2019-04-23T10:20:00Z 2019-04-23T10:35:00Z 2019-04-23T10:50:00Z "
            "2019-04-23T11:05:00Z");
  EXPECT_EQ(Next(Parsed("1/2 * * * *"), "2019-04-23T10:00:30Z", 2),
            "2019-04-23T10:01:00Z 2019-04-23T10:03:00Z");
}

TEST(Fields, LeadingZerosAreDecimalAndBlanksAreOneSeparator) {
  const char* from = "2026-01-01T00:30:00Z";
  EXPECT_EQ(Next(Parsed("01 20 * * *"), from), "2026-01-01T20:01:00Z");
  EXPECT_EQ(Next(Parsed("08 09 * * *"), from), "2026-01-01T09:08:00Z");
  EXPECT_EQ(Next(Parsed("00 00 * * *"), from), "2026-01-02T00:00:00Z");
  EXPECT_EQ(Next(Parsed("  10  8 \t * * *  "), from), "2026-01-01T08:10:00Z");
}

TEST(Zones, PrefixInsideTheExpressionIsRefusedWithTheMend) {
  for (const char* text : {"CRON_TZ=Etc/UTC */20 * * * *", "TZ=Europe/Paris 0 9 * * *"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("give the zone as the job's timezone"));
  }
}

TEST(Zones, JobZoneAloneDecidesWhateverTheHostsIs) {
  for (const char* host : {"Europe/Vilnius", "UTC", "America/New_York"}) {
    setenv("TZ", host, 1);
    tzset();
    EXPECT_EQ(Between(Parsed("15 5 * * *", "Europe/Vilnius"), "2025-05-19T03:00:00Z",
                      "2025-05-21T03:00:00Z"),
              "2025-05-20T02:15:00Z 2025-05-21T02:15:00Z");
  }
  unsetenv("TZ");
  tzset();
}

TEST(Zones, AChangedZoneChangesTheNextFireAtOnce) {
  EXPECT_EQ(Next(Parsed("0 21 * * *", "Australia/Sydney"), "2026-05-19T10:30:00Z"),
            "2026-05-19T11:00:00Z");
  EXPECT_EQ(Next(Parsed("0 21 * * *", "Europe/Berlin"), "2026-05-19T10:30:00Z"),
            "2026-05-19T19:00:00Z");
  EXPECT_EQ(Next(Parsed("0 11 * * *", "Asia/Ho_Chi_Minh"), "2026-09-09T03:00:00Z"),
            "2026-09-09T04:00:00Z");
  EXPECT_EQ(Next(Parsed("0 11 1 * *", "Asia/Ho_Chi_Minh"), "2026-09-17T03:00:00Z"),
            "2026-10-01T04:00:00Z");
}

TEST(Zones, NamesAreExactAndErrorsSayWhatWasMeant) {
  for (const char* good : {"UTC", "Asia/Shanghai", "Etc/GMT+8", "America/Argentina/Buenos_Aires"}) {
    EXPECT_TRUE(LoadZone(good).ok()) << good;
  }
  const auto meant = [](const char* name) {
    return std::string(LoadZone(name).status().message());
  };
  EXPECT_THAT(meant("asia/shanghai"), HasSubstr("did you mean Asia/Shanghai?"));
  EXPECT_THAT(meant("Shanghai"), HasSubstr("did you mean Asia/Shanghai?"));
  for (const char* bad :
       {"", "localtime", "Localtime", "posixrules", "UTC+8", "+08:00", "GMT+8", "CST-8", "PST",
        "../etc/passwd", "/usr/share/zoneinfo/UTC", "Europe/../UTC", "Europe", "Fixed/UTC+08:00:00",
        "Asia/Shanghai ", "EST5EDT,M3.2.0,M11.1.0", ":UTC", "Factory", "tzdata.zi"}) {
    EXPECT_FALSE(LoadZone(bad).ok()) << bad;
    EXPECT_THAT(meant(bad), HasSubstr("timezone '")) << bad;
  }
}

TEST(Zones, MissingZoneDataIsToldByName) {
  setenv("TZDIR", "/nonexistent", 1);
  const auto zone = LoadZone("Asia/Singapore");
  unsetenv("TZDIR");
  EXPECT_EQ(zone.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(zone.status().message()), HasSubstr("install the package tzdata"));
}

TEST(Zones, DataVersionIsShown) {
  EXPECT_THAT(ZoneDataVersion(), testing::MatchesRegex("20..[a-z]|unknown"));
}

TEST(Zones, NominalTimeIsWhatTheWallShouldHaveShown) {
  const auto fire =
      Parsed("15,45 2 * * *", "America/New_York").Next(*ParseInstant("2026-03-08T00:00:00Z"));
  EXPECT_EQ(FormatInstant(fire->at), "2026-03-08T07:00:00Z");
  EXPECT_EQ(fire->nominal, absl::CivilSecond(2026, 3, 8, 2, 15, 0));
}

TEST(EarlyWake, NextFollowsTheOccurrenceAndNotTheWake) {
  const Schedule schedule = Parsed("45 8 * * *");
  const absl::Time due = *ParseInstant("2026-11-29T08:45:00Z");
  for (const absl::Duration early : {absl::Milliseconds(1500), absl::Milliseconds(400)}) {
    EXPECT_EQ(schedule.Next(due - early)->at, due);
  }
  EXPECT_EQ(FormatInstant(schedule.Next(due)->at), "2026-11-30T08:45:00Z");
  EXPECT_EQ(schedule.Previous(due + absl::Milliseconds(1))->at, due);
  EXPECT_EQ(FormatInstant(schedule.Previous(due)->at), "2026-11-28T08:45:00Z");
}

TEST(OneOff, FiresOnceAndKeepsPartsOfASecond) {
  const absl::Time at = *ParseInstant("2026-08-06T00:00:00.25Z");
  const Schedule schedule = Schedule::At(at, *LoadZone("Asia/Tokyo"));
  EXPECT_EQ(schedule.Next(*ParseInstant("2026-07-07T00:00:00Z"))->at, at);
  EXPECT_EQ(schedule.Next(*ParseInstant("2026-07-07T00:00:00Z"))->nominal,
            absl::CivilSecond(2026, 8, 6, 9, 0, 0));
  EXPECT_FALSE(schedule.Next(at).has_value());
  EXPECT_EQ(schedule.Previous(at + absl::Hours(1))->at, at);
  EXPECT_FALSE(schedule.Previous(at).has_value());
}

TEST(Every, CountsFromTheEpochWhateverTheZone) {
  const Schedule schedule = Parsed("@every 90s", "America/New_York");
  EXPECT_EQ(Next(schedule, "2026-11-01T05:59:00Z", 3),
            "2026-11-01T06:00:00Z 2026-11-01T06:01:30Z 2026-11-01T06:03:00Z");
  EXPECT_EQ(Previous(schedule, "2026-11-01T06:01:30Z"), "2026-11-01T06:00:00Z");
  EXPECT_TRUE(schedule.is_interval());
  for (const char* bad : {"@every", "@every 0s", "@every 500ms", "@every 90", "@every -1s",
                          "@every 99999d", "@every 1s 2s"}) {
    EXPECT_FALSE(Schedule::Parse(bad, {Dialect::kAuto, absl::UTCTimeZone(), {}}).ok()) << bad;
  }
}

TEST(TheEnd, SchedulesWithoutAFutureSayNothing) {
  EXPECT_EQ(Next(Parsed("0 0 0 1 1 ? 2020"), "2026-01-01T00:00:00Z"), "");
  EXPECT_EQ(Previous(Parsed("0 0 0 1 1 ? 2020"), "2026-01-01T00:00:00Z"), "2020-01-01T00:00:00Z");
  EXPECT_EQ(Next(Parsed("@reboot"), "2026-01-01T00:00:00Z"), "");
  EXPECT_EQ(Previous(Parsed("@reboot"), "2026-01-01T00:00:00Z"), "none");
}

TEST(TheEnd, EveryInstantThereIsGivesAnAnswer) {
  for (const char* text : {"* * * * *", "0 0 29 2 *", "@every 7m", "@daily", "*:*:*",
                           "0 0 0 1 1 ? 1970", "0 0 0 31 12 ? 2199"}) {
    for (const char* zone : {"UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"}) {
      const Schedule schedule = Parsed(text, zone);
      for (const absl::Time t :
           {absl::InfinitePast(), absl::InfiniteFuture(), absl::UniversalEpoch(), absl::UnixEpoch(),
            absl::FromUnixSeconds(-1), *ParseInstant("2199-12-31T23:59:59Z"),
            *ParseInstant("2200-01-01T00:00:00Z"),
            absl::FromUnixSeconds(1) - absl::Nanoseconds(1)}) {
        const auto next = schedule.Next(t);
        const auto previous = schedule.Previous(t);
        if (next.has_value()) {
          EXPECT_GT(next->at, t);
          EXPECT_GE(next->at, absl::UnixEpoch());
          EXPECT_LT(next->at, *ParseInstant("2200-01-01T00:00:00Z"));
        }
        EXPECT_TRUE(!previous.has_value() || previous->at < t);
      }
      EXPECT_FALSE(schedule.Next(absl::InfiniteFuture()).has_value());
      EXPECT_FALSE(schedule.Previous(absl::UnixEpoch()).has_value());
    }
  }
}

TEST(Dialect, IsFoundFromTheTextsForm) {
  for (const auto& [text, dialect] : std::vector<std::pair<const char*, Dialect>>{
           {"0 1 * * *", Dialect::kVixie5},
           {"@daily", Dialect::kVixie5},
           {"0 0 1 * * *", Dialect::kSeconds6},
           {"0 0 12 ? * 2", Dialect::kQuartz},
           {"0 0 12 * * ?", Dialect::kQuartz},
           {"0 0 12 ? * 2 2027", Dialect::kQuartz},
           {"daily", Dialect::kOnCalendar},
           {"Mon..Fri 09:00", Dialect::kOnCalendar},
           {"*-*-* 02:30:00 Europe/Paris", Dialect::kOnCalendar},
           {"*-*~1", Dialect::kOnCalendar},
           {"2027-01-01", Dialect::kOnCalendar},
           {"03-05", Dialect::kOnCalendar},
           {"9:00", Dialect::kOnCalendar}}) {
    EXPECT_EQ(Parsed(text).dialect(), dialect) << text;
  }
  EXPECT_THAT(Refusal("*/5 * * *"), HasSubstr("has 4 fields where this dialect has 5"));
  EXPECT_THAT(Refusal("* * * * * * * *"), HasSubstr("has 8 fields"));
  EXPECT_THAT(Refusal("fortnightly"), HasSubstr("no word like daily"));
}

TEST(Describe, SaysItInWords) {
  for (const auto& [text, words] : std::vector<std::pair<const char*, const char*>>{
           {"0 1 * * *", "at 01:00 every day, UTC"},
           {"*/5 * * * *", "every 5 minutes, UTC"},
           {"* * * * *", "every minute, UTC"},
           {"* * * * * *", "every second, UTC"},
           {"0 * * * *", "at minute 0 of every hour, UTC"},
           {"*/7 * * * *", "every 7 minutes from 0 of every hour, UTC"},
           {"*/10 8-17 * * 1-5", "every 10 minutes of hours 8 to 17 on Monday to Friday, UTC"},
           {"0 0/10 * * * *", "every 10 minutes, UTC"},
           {"30 8,12 * * 1-5", "at 08:30 and 12:30 on Monday to Friday, UTC"},
           {"0 9 1,15 * 5", "at 09:00 on day 1 and 15 of the month or on Friday, UTC"},
           {"0 0 */2 * 1",
            "at 00:00 on day 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 "
            "and 31 of the month where that is Monday, UTC"},
           {"0 0 L 2 *", "at 00:00 on the month's last day in February, UTC"},
           {"0 0 0 LW 1-3 ? 2027-2029",
            "at 00:00 on the month's last working day in January to March of 2027 to 2029, UTC"},
           {"0 0 * * fri#2", "at 00:00 on the month's second Friday, UTC"},
           {"@every 90s", "every 1m30s, counted from 1970-01-01T00:00:00Z"},
           {"@reboot", "at boot, never by the clock"}}) {
    EXPECT_EQ(Parsed(text).Describe(), words) << text;
  }
  EXPECT_EQ(
      Schedule::At(*ParseInstant("2026-11-29T02:00:00Z"), *LoadZone("Asia/Shanghai")).Describe(),
      "once, at 2026-11-29 10:00:00 CST");
}

}  // namespace
}  // namespace matins
