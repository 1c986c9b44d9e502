#include "schedule/period.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace matins {
namespace {

PeriodRule Rule(PeriodKind kind, const char* shift, const char* zone) {
  return {kind, *ParseBizShift(shift), std::nullopt, *LoadZone(zone)};
}

Fire FireAt(const char* at, const char* zone) {
  const absl::Time t = *ParseInstant(at);
  return {t, absl::ToCivilSecond(t, *LoadZone(zone))};
}

std::string Text(const absl::StatusOr<Period>& period) {
  if (!period.ok()) return std::string(period.status().message());
  return period->key + " " + FormatDay(period->biz_date) + " " + FormatInstant(period->start) +
         " " + FormatInstant(period->end);
}

TEST(PeriodOf, NightlyRunIsForTheDayBefore) {
  EXPECT_EQ(Text(PeriodOf(Rule(PeriodKind::kDay, "-1d", "Asia/Shanghai"),
                          FireAt("2026-10-30T17:00:00Z", "Asia/Shanghai"), std::nullopt)),
            "2026-10-30 2026-10-30 2026-10-29T16:00:00Z 2026-10-30T16:00:00Z");
}

TEST(PeriodOf, DayComesFromTheNominalTimeOfAFireThatWasMoved) {
  const auto nuuk = *LoadZone("America/Nuuk");
  const auto schedule = Schedule::Parse("30 23 * * *", {Dialect::kAuto, nuuk, {}});
  const auto fire = schedule->Next(*ParseInstant("2026-03-28T12:00:00Z"));
  ASSERT_TRUE(fire.has_value());
  EXPECT_EQ(absl::ToCivilDay(fire->at, nuuk), absl::CivilDay(2026, 3, 29));
  EXPECT_EQ(fire->nominal, absl::CivilSecond(2026, 3, 28, 23, 30, 0));
  const auto period = PeriodOf({PeriodKind::kDay, {}, std::nullopt, nuuk}, *fire, std::nullopt);
  EXPECT_EQ(period->key, "2026-03-28");
  EXPECT_EQ(period->end - period->start, absl::Hours(23));
}

TEST(PeriodOf, DaysHave23And25HoursAtTheClockChanges) {
  const PeriodRule rule = Rule(PeriodKind::kDay, "0d", "America/New_York");
  EXPECT_EQ(Text(PeriodFromKey(rule, "2026-03-08")),
            "2026-03-08 2026-03-08 2026-03-08T05:00:00Z 2026-03-09T04:00:00Z");
  EXPECT_EQ(Text(PeriodFromKey(rule, "2026-11-01")),
            "2026-11-01 2026-11-01 2026-11-01T04:00:00Z 2026-11-02T05:00:00Z");
}

TEST(PeriodOf, DayWithoutMidnightBeginsAtItsFirstInstant) {
  EXPECT_EQ(Text(PeriodFromKey(Rule(PeriodKind::kDay, "0d", "Africa/Cairo"), "2026-04-24")),
            "2026-04-24 2026-04-24 2026-04-23T22:00:00Z 2026-04-24T21:00:00Z");
}

TEST(PeriodOf, WeekIsIsoAndMonthIsOfTheCalendar) {
  const Fire fire = FireAt("2026-10-30T12:00:00Z", "UTC");
  EXPECT_EQ(Text(PeriodOf(Rule(PeriodKind::kWeek, "0d", "UTC"), fire, std::nullopt)),
            "2026-W44 2026-10-26 2026-10-26T00:00:00Z 2026-11-02T00:00:00Z");
  EXPECT_EQ(Text(PeriodOf(Rule(PeriodKind::kWeek, "-1w", "UTC"),
                          FireAt("2027-01-04T12:00:00Z", "UTC"), std::nullopt)),
            "2026-W53 2026-12-28 2026-12-28T00:00:00Z 2027-01-04T00:00:00Z");
  EXPECT_EQ(Text(PeriodOf(Rule(PeriodKind::kMonth, "-1M", "UTC"), fire, std::nullopt)),
            "2026-09 2026-09-01 2026-09-01T00:00:00Z 2026-10-01T00:00:00Z");
}

TEST(PeriodOf, FireRunsFromTheFireBefore) {
  const Fire fire = FireAt("2026-10-30T12:00:00Z", "UTC");
  const PeriodRule rule = Rule(PeriodKind::kFire, "-1d", "UTC");
  EXPECT_EQ(Text(PeriodOf(rule, fire, *ParseInstant("2026-10-29T12:00:00Z"))),
            "2026-10-30T12:00:00Z 2026-10-29 2026-10-29T12:00:00Z 2026-10-30T12:00:00Z");
  EXPECT_EQ(Text(PeriodOf(rule, fire, std::nullopt)),
            "2026-10-30T12:00:00Z 2026-10-29 2026-10-30T12:00:00Z 2026-10-30T12:00:00Z");
}

TEST(PeriodOf, RepeatedHourIsTwoHours) {
  const PeriodRule rule = Rule(PeriodKind::kHour, "-1h", "America/New_York");
  EXPECT_EQ(Text(PeriodOf(rule, FireAt("2026-11-01T06:00:00Z", "America/New_York"), std::nullopt)),
            "2026-11-01T05:00:00Z 2026-11-01 2026-11-01T05:00:00Z 2026-11-01T06:00:00Z");
  EXPECT_EQ(Text(PeriodOf(rule, FireAt("2026-11-01T07:00:00Z", "America/New_York"), std::nullopt)),
            "2026-11-01T06:00:00Z 2026-11-01 2026-11-01T06:00:00Z 2026-11-01T07:00:00Z");
}

TEST(PeriodOf, HoursTileThroughEveryKindOfChange) {
  for (const char* name : {"Australia/Lord_Howe", "America/New_York", "Antarctica/Troll",
                           "Asia/Kathmandu", "America/St_Johns", "Africa/Cairo"}) {
    const auto zone = *LoadZone(name);
    const PeriodRule rule{PeriodKind::kHour, {0, BizShift::Unit::kHour}, std::nullopt, zone};
    absl::Time t = *ParseInstant("2026-01-01T00:00:00Z");
    Period period = *PeriodOf(rule, {t, absl::ToCivilSecond(t, zone)}, std::nullopt);
    EXPECT_LE(period.start, t);
    while (period.end < *ParseInstant("2027-01-01T00:00:00Z")) {
      // Every instant inside has this key, the end has the next one.
      for (const absl::Time inside : {period.start, period.end - absl::Seconds(1)}) {
        const Fire fire{inside, absl::ToCivilSecond(inside, zone)};
        ASSERT_EQ(PeriodOf(rule, fire, std::nullopt)->key, period.key) << name;
      }
      ASSERT_EQ(absl::ToCivilSecond(period.end, zone).minute(), 0) << name << " " << period.end;
      ASSERT_GE(period.end - period.start, absl::Minutes(30));
      ASSERT_LE(period.end - period.start, absl::Minutes(90));
      const Fire fire{period.end, absl::ToCivilSecond(period.end, zone)};
      const Period next = *PeriodOf(rule, fire, std::nullopt);
      ASSERT_EQ(next.start, period.end) << name;
      ASSERT_EQ(Text(PeriodFromKey(rule, next.key)), Text(next));
      period = next;
    }
  }
}

TEST(PeriodOf, DaysWeeksAndMonthsTile) {
  for (const char* name :
       {"America/Santiago", "Pacific/Apia", "America/New_York", "Africa/Cairo"}) {
    for (const PeriodKind kind : {PeriodKind::kDay, PeriodKind::kWeek, PeriodKind::kMonth}) {
      const PeriodRule rule{kind, {}, std::nullopt, *LoadZone(name)};
      absl::CivilDay day(2011, 12, 1);
      Period period = *PeriodOf(rule, {absl::Time(), absl::CivilSecond(day)}, std::nullopt);
      for (; day < absl::CivilDay(2013, 1, 1); ++day) {
        const Period next = *PeriodOf(rule, {absl::Time(), absl::CivilSecond(day)}, std::nullopt);
        if (next.key != period.key) {
          ASSERT_EQ(next.start, period.end) << name << " " << day;
        }
        ASSERT_EQ(Text(PeriodFromKey(rule, next.key)), Text(next));
        period = next;
      }
    }
  }
}

TEST(PeriodOf, BusinessDayShiftSkipsWhatTheCalendarLeavesOut) {
  PeriodRule rule = Rule(PeriodKind::kDay, "-1bd", "Asia/Shanghai");
  const Fire fire = FireAt("2026-10-08T01:00:00Z", "Asia/Shanghai");
  EXPECT_EQ(PeriodOf(rule, fire, std::nullopt).status().code(), absl::StatusCode::kInvalidArgument);
  rule.calendar = *Calendar::Parse("cn", "2026-10-01..2026-10-07 off\n", std::nullopt);
  EXPECT_EQ(PeriodOf(rule, fire, std::nullopt)->key, "2026-09-30");
}

TEST(PeriodOf, MonthShiftOfADayStaysWithinTheMonth) {
  EXPECT_EQ(PeriodOf(Rule(PeriodKind::kDay, "-1M", "UTC"), FireAt("2026-03-31T12:00:00Z", "UTC"),
                     std::nullopt)
                ->key,
            "2026-02-28");
}

TEST(PeriodFromKey, RefusesKeysOfAnotherKindWithTheFormWanted) {
  EXPECT_EQ(Text(PeriodFromKey(Rule(PeriodKind::kDay, "0d", "UTC"), "2026-10")),
            "period '2026-10': is no key of this job's periods; write it like 2026-10-30");
  for (const auto& [kind, key] :
       {std::pair(PeriodKind::kDay, "2026-02-30"), std::pair(PeriodKind::kWeek, "2026-W54"),
        std::pair(PeriodKind::kWeek, "2026-W00"), std::pair(PeriodKind::kWeek, "2026-44"),
        std::pair(PeriodKind::kMonth, "2026-13"), std::pair(PeriodKind::kMonth, "2026-10-01"),
        std::pair(PeriodKind::kHour, "2026-10-30T02:30:00Z"),
        std::pair(PeriodKind::kFire, "2026-10-30")}) {
    EXPECT_FALSE(PeriodFromKey(Rule(kind, "0d", "UTC"), key).ok()) << key;
  }
}

TEST(BizShift, ReadsWhatItWrites) {
  for (const char* text : {"0d", "-1d", "-1h", "-2w", "-1M", "-1bd", "3d"}) {
    EXPECT_EQ(BizShiftText(*ParseBizShift(text)), text);
  }
  for (const char* bad : {"", "d", "-d", "1", "-1x", "--1d", "-1.5d", "-99999d", "- 1d"}) {
    EXPECT_FALSE(ParseBizShift(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace matins
