#include "schedule/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"

namespace matins {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Schedule Parsed(absl::string_view text, absl::string_view zone = "UTC", DstRule dst = {}) {
  const auto schedule = Schedule::Parse(text, {Dialect::kAuto, *LoadZone(zone), dst});
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  return *schedule;
}

std::vector<std::string> Lint(absl::string_view text, PeriodKind kind,
                              absl::string_view zone = "UTC", DstRule dst = {}) {
  const PeriodRule rule{kind, {}, std::nullopt, *LoadZone(zone)};
  return LintPeriods(Parsed(text, zone, dst), rule, nullptr, *ParseInstant("2026-01-01T00:00:00Z"));
}

TEST(ShortestStep, IsTheLeastDistanceOnTheWall) {
  EXPECT_EQ(ShortestStep(Parsed("0 9 * * 1-5")), absl::Hours(24));
  EXPECT_EQ(ShortestStep(Parsed("0 9,17 * * *")), absl::Hours(8));
  EXPECT_EQ(ShortestStep(Parsed("0 1,23 * * *")), absl::Hours(2));
  EXPECT_EQ(ShortestStep(Parsed("0 1,23 * * 1")), absl::Hours(22));
  EXPECT_EQ(ShortestStep(Parsed("* * * * * *")), absl::Seconds(1));
  EXPECT_EQ(ShortestStep(Parsed("0 0 1 * *")), absl::Hours(28 * 24));
  EXPECT_EQ(ShortestStep(Parsed("0 0 31 * *")), absl::Hours(31 * 24));
  EXPECT_EQ(ShortestStep(Parsed("0 0 29 2 *")), absl::Hours(1461 * 24));
  EXPECT_EQ(ShortestStep(Parsed("@every 36h")), absl::Hours(36));
  EXPECT_EQ(ShortestStep(Parsed("0 0 0 1 1 ? 2027")), std::nullopt);
  EXPECT_EQ(ShortestStep(Parsed("@reboot")), std::nullopt);
}

TEST(CheckPeriod, RefusesPeriodsThatMostFiresPassOver) {
  EXPECT_TRUE(CheckPeriod(Parsed("0 9 * * 1-5"), PeriodKind::kDay).ok());
  EXPECT_TRUE(CheckPeriod(Parsed("0 0 31 * *"), PeriodKind::kMonth).ok());
  EXPECT_TRUE(CheckPeriod(Parsed("0 0 1 1 *"), PeriodKind::kFire).ok());
  EXPECT_TRUE(CheckPeriod(Parsed("*/5 * * * *"), PeriodKind::kDay).ok());
  EXPECT_THAT(std::string(CheckPeriod(Parsed("0 1 * * *"), PeriodKind::kHour).message()),
              HasSubstr("period hour: is shorter than the schedule's shortest step, 1d"));
  EXPECT_FALSE(CheckPeriod(Parsed("0 1 * * 1"), PeriodKind::kDay).ok());
  EXPECT_FALSE(CheckPeriod(Parsed("0 0 1 1,4,7,10 *"), PeriodKind::kMonth).ok());
}

// C192
TEST(LintSchedule, ShowsThatAWildMinuteIsSixtyFires) {
  EXPECT_THAT(LintSchedule(Parsed("* 9 * * *", "America/Los_Angeles")),
              ElementsAre(HasSubstr("fires each minute from 09:00 to 09:59, 60 times a day")));
  EXPECT_THAT(LintSchedule(Parsed("* 9-10 * * *")), IsEmpty());
  EXPECT_THAT(LintSchedule(Parsed("*/5 9 * * *")), IsEmpty());
  EXPECT_THAT(LintSchedule(Parsed("* * * * *")), IsEmpty());
}

TEST(LintSchedule, NamesTheMonthsThatArePassedOver) {
  EXPECT_THAT(
      LintSchedule(Parsed("0 0 31 * *")),
      ElementsAre("never fires in February, April, June, September and November, which have "
                  "no such day; the month's last day is L"));
  EXPECT_THAT(LintSchedule(Parsed("0 0 29 * *")),
              ElementsAre(HasSubstr("does not fire every year in February,")));
  EXPECT_THAT(LintSchedule(Parsed("0 0 31 1,3 *")), IsEmpty());
  EXPECT_THAT(LintSchedule(Parsed("0 0 L * *")), IsEmpty());
  EXPECT_THAT(LintSchedule(Parsed("0 1 * * *")), IsEmpty());
}

TEST(LintSchedule, SaysHowTwoDayFieldsAreJoined) {
  EXPECT_THAT(LintSchedule(Parsed("0 0 1 * 1")), ElementsAre(HasSubstr("match either")));
  EXPECT_THAT(LintSchedule(Parsed("0 0 */2 * 1")), ElementsAre(HasSubstr("match both")));
  EXPECT_THAT(LintSchedule(Parsed("Fri *-*-1..7 18:00")), IsEmpty());
}

TEST(LintPeriods, NamesDaysWithNoFireAndWithTwo) {
  EXPECT_THAT(Lint("30 2 * * *", PeriodKind::kDay, "America/New_York"), IsEmpty());
  EXPECT_THAT(Lint("30 2 * * *", PeriodKind::kDay, "America/New_York", {GapRule::kSkip, {}}),
              ElementsAre("2026-03-08 and 2027-03-14 have no fire within the next two years"));
  EXPECT_THAT(Lint("30 1 * * *", PeriodKind::kDay, "America/New_York",
                   {GapRule::kNext, OverlapRule::kBoth}),
              ElementsAre("2026-11-01 and 2027-11-07 have two fires or more within the next two "
                          "years"));
  // A fire of the 28th that the clock moved into the 29th is the 28th's.
  EXPECT_THAT(Lint("30 23 * * *", PeriodKind::kDay, "America/Nuuk"), IsEmpty());
}

TEST(LintPeriods, DaysThatTheFieldsLeaveOutAreNoGaps) {
  EXPECT_THAT(Lint("0 9 * * 1-5", PeriodKind::kDay), IsEmpty());
  EXPECT_THAT(Lint("0 9-17 * * 1-5", PeriodKind::kHour), IsEmpty());
  EXPECT_THAT(Lint("*/5 * * * *", PeriodKind::kDay), IsEmpty());
  EXPECT_THAT(Lint("* * * * * *", PeriodKind::kMonth), IsEmpty());
}

TEST(LintPeriods, NamesMonthsAndWeeksWithoutAFire) {
  EXPECT_THAT(Lint("0 0 31 * *", PeriodKind::kMonth),
              ElementsAre("2026-02, 2026-04, 2026-06, 2026-09, 2026-11, 2027-02 and 4 more periods "
                          "have no fire within the next two years"));
  EXPECT_THAT(Lint("0 0 1,8,15,22 * *", PeriodKind::kWeek), ElementsAre(HasSubstr("have no fire")));
}

TEST(LintPeriods, NamesBusinessDatesThatSeveralFiresShare) {
  PeriodRule rule{PeriodKind::kDay, *ParseBizShift("-1bd"), std::nullopt, absl::UTCTimeZone()};
  rule.calendar = *Calendar::Parse("cn", "", std::nullopt);
  const auto warnings =
      LintPeriods(Parsed("0 1 * * *"), rule, nullptr, *ParseInstant("2026-01-01T00:00:00Z"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("2026-01-02, 2026-01-09")));
  // On the calendar's own days each date has one.
  EXPECT_THAT(LintPeriods(Parsed("0 1 * * *"), rule, &*rule.calendar,
                          *ParseInstant("2026-01-01T00:00:00Z")),
              IsEmpty());
}

TEST(LintPeriods, WarnsOfTheEndOfTheCalendar) {
  const Calendar cn = *Calendar::Parse("cn", "", absl::CivilDay(2026, 12, 31));
  const PeriodRule rule{PeriodKind::kDay, {}, std::nullopt, absl::UTCTimeZone()};
  EXPECT_THAT(LintPeriods(Parsed("0 1 * * *"), rule, &cn, *ParseInstant("2026-06-01T00:00:00Z")),
              ElementsAre(HasSubstr("end on 2026-12-31")));
}

}  // namespace
}  // namespace matins
