#include "schedule/calendar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/time.h"
#include "schedule/timetable.h"

namespace matins {
namespace {

using testing::HasSubstr;

absl::CivilDay Day(const char* text) { return *ParseDay(text); }

Calendar List(const std::string& text, std::optional<absl::CivilDay> until = std::nullopt) {
  const auto calendar = Calendar::Parse("test", text, until);
  EXPECT_TRUE(calendar.ok()) << calendar.status();
  return *calendar;
}

std::string Event(const std::string& lines) {
  return "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n" + lines + "END:VEVENT\r\nEND:VCALENDAR\r\n";
}

TEST(Calendar, LeavesOutWeekendsAndListedDaysAndPutsInMakeUpDays) {
  const Calendar cn =
      List("# the autumn week\n2026-10-01..2026-10-07 off\n2026-10-10 on # a Saturday\n");
  EXPECT_FALSE(cn.IsBusinessDay(Day("2026-10-01")));
  EXPECT_FALSE(cn.IsBusinessDay(Day("2026-10-07")));
  EXPECT_TRUE(cn.IsBusinessDay(Day("2026-10-08")));
  EXPECT_TRUE(cn.IsBusinessDay(Day("2026-10-10")));
  EXPECT_FALSE(cn.IsBusinessDay(Day("2026-10-11")));
  EXPECT_FALSE(cn.IsBusinessDay(Day("2026-10-17")));
}

TEST(Calendar, CountsBusinessDaysBothWays) {
  const Calendar cn = List("2026-10-01..2026-10-07 off\n2026-10-10 on\n");
  EXPECT_EQ(*cn.Offset(Day("2026-10-08"), -1), Day("2026-09-30"));
  EXPECT_EQ(*cn.Offset(Day("2026-10-12"), -1), Day("2026-10-10"));
  EXPECT_EQ(*cn.Offset(Day("2026-10-09"), 2), Day("2026-10-12"));
  EXPECT_EQ(*cn.Offset(Day("2026-10-04"), 0), Day("2026-10-04"));
}

TEST(Calendar, RefusesToCountPastItsCoverage) {
  const Calendar cn = List("", Day("2026-12-31"));
  EXPECT_TRUE(cn.Covers(Day("2026-12-31")));
  EXPECT_FALSE(cn.Covers(Day("2027-01-01")));
  EXPECT_EQ(*cn.Offset(Day("2026-12-30"), 1), Day("2026-12-31"));
  const auto past = cn.Offset(Day("2026-12-31"), 1);
  EXPECT_EQ(past.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(past.status().message()), HasSubstr("2026-12-31"));
}

TEST(Calendar, WritesItsDaysInOneFormWhateverTheyWereReadFrom) {
  const Calendar list = List("2026-10-10 on\n2026-10-01..2026-10-02 off\n");
  const Calendar other = List("2026-10-02 off\n2026-10-10 on\n2026-10-01 off\n2026-10-03 off\n");
  EXPECT_EQ(list.Days(), "2026-10-01..2026-10-02 off\n2026-10-10 on\n");
  EXPECT_EQ(other.Days(), list.Days());
  EXPECT_EQ(List(list.Days()).Days(), list.Days());
  EXPECT_EQ(List("2027-01-01 off\n", Day("2026-12-31")).Days(), "");
}

TEST(Calendar, NamesLineReasonAndMendOfWhatItCannotRead) {
  for (const char* bad : {"2026-10-01", "2026-10-01 maybe", "2026-02-30 off",
                          "2026-10-07..2026-10-01 off", "tomorrow off"}) {
    const auto calendar = Calendar::Parse("cn", std::string("\n") + bad, std::nullopt);
    ASSERT_FALSE(calendar.ok()) << bad;
    EXPECT_THAT(std::string(calendar.status().message()), HasSubstr("calendar cn:2: "));
    EXPECT_THAT(std::string(calendar.status().message()), HasSubstr("; write"));
  }
}

TEST(Calendar, ReadsWholeDayEventsWithAnExclusiveEnd) {
  const Calendar ics =
      List(Event("DTSTART;VALUE=DATE:20261001\r\nDTEND;VALUE=DATE:20261003\r\n"
                 "SUMMARY:National\r\n  Day\r\n"));
  EXPECT_EQ(ics.Days(), "2026-10-01..2026-10-02 off\n");
}

TEST(Calendar, PutsInWorkingDaysOfAnEventWhateverTheOrder) {
  const std::string on =
      "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261010\nSUMMARY:国庆节 补班\nEND:VEVENT\n";
  const std::string off =
      "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261009\nDTEND;VALUE=DATE:20261012\nSUMMARY:off\n"
      "END:VEVENT\n";
  for (const std::string& events : {on + off, off + on}) {
    EXPECT_EQ(List("BEGIN:VCALENDAR\n" + events + "END:VCALENDAR\n").Days(),
              "2026-10-09 off\n2026-10-10 on\n");
  }
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20261009\nSUMMARY:non-working day\n")).Days(),
            "2026-10-09 off\n");
  EXPECT_EQ(
      List(Event("DTSTART;VALUE=DATE:20261010\nX-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY\n")).Days(),
      "2026-10-10 on\n");
}

TEST(Calendar, RepeatsYearlyEventsWithinTheirBounds) {
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20241225\nRRULE:FREQ=YEARLY;COUNT=3\n")).Days(),
            "2024-12-25 off\n2025-12-25 off\n2026-12-25 off\n");
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20241225\nRRULE:FREQ=YEARLY;UNTIL=20261224\n"
                       "EXDATE;VALUE=DATE:20241225\n"))
                .Days(),
            "2025-12-25 off\n");
  // The fourth Thursday of November and the last Monday of May.
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20251127\nRRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH;"
                       "COUNT=2\n"))
                .Days(),
            "2025-11-27 off\n2026-11-26 off\n");
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20250526\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;"
                       "COUNT=2\n"))
                .Days(),
            "2025-05-26 off\n2026-05-25 off\n");
  // A leap day comes in leap years alone.
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY;COUNT=2\n")).Days(),
            "2024-02-29 off\n2028-02-29 off\n");
}

TEST(Calendar, RefusesEventsThatItWouldMisread) {
  for (const char* bad : {"DTSTART:20261001T090000Z\n", "SUMMARY:no start\n",
                          "DTSTART;VALUE=DATE:20261001\nRRULE:FREQ=MONTHLY\n",
                          "DTSTART;VALUE=DATE:20261001\nRRULE:FREQ=YEARLY;BYSETPOS=1\n",
                          "DTSTART;VALUE=DATE:20261001\nDTEND;VALUE=DATE:20261001\n",
                          "DTSTART;VALUE=DATE:20261001\nRDATE:20261005\n"}) {
    const auto calendar = Calendar::Parse("cn", Event(bad), std::nullopt);
    ASSERT_FALSE(calendar.ok()) << bad;
    EXPECT_THAT(std::string(calendar.status().message()), HasSubstr("calendar cn:")) << bad;
  }
  EXPECT_FALSE(
      Calendar::Parse("cut", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261001\n", std::nullopt)
          .ok());
}

TEST(Calendar, SkipsCancelledEventsAndAlarmsInsideEvents) {
  EXPECT_EQ(List(Event("DTSTART;VALUE=DATE:20261001\nSTATUS:CANCELLED\n")).Days(), "");
  EXPECT_EQ(
      List(Event("DTSTART;VALUE=DATE:20261001\nBEGIN:VALARM\nDURATION:PT1H\nEND:VALARM\n")).Days(),
      "2026-10-01 off\n");
}

TEST(Timetable, FiresOnBusinessDaysAloneAndRefusesDaysThatNobodyLookedUp) {
  const Calendar kr = List("2026-09-24 off\n2026-09-25 off\n", Day("2026-12-31"));
  const auto schedule =
      Schedule::Parse("0 6 * * 1-5", {Dialect::kAuto, *LoadZone("Asia/Seoul"), {}});
  const auto next = NextOn(*schedule, &kr, *ParseInstant("2026-09-23T07:00:00+09:00"));
  EXPECT_EQ(FormatInstant((*next)->at), "2026-09-27T21:00:00Z");
  const auto before = PreviousOn(*schedule, &kr, (*next)->at);
  EXPECT_EQ(FormatInstant(before->at), "2026-09-22T21:00:00Z");

  const auto last = NextOn(*schedule, &kr, *ParseInstant("2026-12-30T12:00:00Z"));
  EXPECT_EQ(FormatInstant((*last)->at), "2026-12-30T21:00:00Z");
  const auto past = NextOn(*schedule, &kr, (*last)->at);
  EXPECT_EQ(past.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(past.status().message()), HasSubstr("fire of 2027-01-01"));
}

TEST(Timetable, LosesNoFireOfABusinessDayThatTheClockGoesBackTo) {
  // In 2010 St. John's set its clock back at 00:01, from the Sunday into the Saturday.
  const Calendar work = List("2010-11-06 on\n");
  const auto schedule =
      Schedule::Parse("*/30 * * * *", {Dialect::kAuto, *LoadZone("America/St_Johns"), {}});
  absl::Time after = *ParseInstant("2010-11-07T01:00:00Z");
  for (const char* wanted : {"2010-11-07T01:30:00Z", "2010-11-07T02:00:00Z", "2010-11-07T03:00:00Z",
                             "2010-11-08T03:30:00Z"}) {
    const auto fire = NextOn(*schedule, &work, after);
    EXPECT_EQ(FormatInstant((*fire)->at), wanted);
    after = (*fire)->at;
  }
}

TEST(Timetable, PutInDaysFireWhereTheScheduleHasThem) {
  const Calendar cn = List("2026-10-01..2026-10-07 off\n2026-10-10 on\n");
  const auto daily = Schedule::Parse("0 9 * * *", {Dialect::kAuto, absl::UTCTimeZone(), {}});
  absl::Time after = *ParseInstant("2026-09-30T10:00:00Z");
  for (const char* wanted : {"2026-10-08T09:00:00Z", "2026-10-09T09:00:00Z", "2026-10-10T09:00:00Z",
                             "2026-10-12T09:00:00Z"}) {
    const auto fire = NextOn(*daily, &cn, after);
    EXPECT_EQ(FormatInstant((*fire)->at), wanted);
    after = (*fire)->at;
  }
}

}  // namespace
}  // namespace matins
