#include "job/lint.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/parse.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const absl::Time kNow = absl::FromCivil(absl::CivilSecond(2026, 1, 15), absl::UTCTimeZone());

// The warnings of one job whose last line is `line`, the fifth of the file.
std::vector<std::string> Warnings(const std::string& schedule, const std::string& line,
                                  absl::Time now = kNow) {
  MemoryFiles files({{"m.yaml", absl::StrCat("calendars: { kr: { file: kr.txt, until: 2026-12-31 } "
                                             "}\njobs:\n  - name: a\n    schedule: \"",
                                             schedule, "\"\n    ", line,
                                             "\n    misfire: latest\n    run: { handler: h }\n")},
                     {"kr.txt", "2026-09-24 off\n2026-09-25 off\n"}});
  const LintResult result = LintJobFile("m.yaml", {.files = &files, .now = now});
  std::vector<std::string> texts;
  for (const Problem& problem : result.problems) texts.push_back(problem.Text());
  EXPECT_TRUE(result.file.has_value());
  return texts;
}

TEST(Lint, SaysNothingOfAPlainJob) { EXPECT_THAT(Warnings("0 1 * * *", "period: day"), IsEmpty()); }

TEST(Lint, ALeaseThatHeartbeatsCannotKeep) {
  EXPECT_THAT(Warnings("0 1 * * *", "lock: { ttl: 5s }"),
              ElementsAre(AllOf(StartsWith("m.yaml:5:13: warning: a lease of 5s"),
                                HasSubstr("write ttl: 30s"))));
  EXPECT_THAT(Warnings("0 1 * * *", "lock: { ttl: 10s }"), IsEmpty());
}

TEST(Lint, AScheduleOrOneOffWithoutAFuture) {
  EXPECT_THAT(Warnings("0 0 0 1 1 ? 2020", "priority: 1"),
              ElementsAre(AllOf(StartsWith("m.yaml:4:5: warning: "), HasSubstr("never fires"))));
  const auto one_off = [](const std::string& at) {
    MemoryFiles files({{"m.yaml", absl::StrCat("jobs:\n  - name: a\n    at: ", at,
                                               "\n    misfire: skip\n    start_deadline: 10m\n"
                                               "    run: { handler: h }\n")}});
    return LintJobFile("m.yaml", {.files = &files, .now = kNow}).problems;
  };
  EXPECT_THAT(one_off("2026-01-14T23:50:00Z"), IsEmpty());
  const std::vector<Problem> past = one_off("2026-01-14T23:49:59Z");
  ASSERT_EQ(past.size(), 1);
  EXPECT_THAT(past[0].Text(), AllOf(StartsWith("m.yaml:3:5: warning: "), HasSubstr("has passed"),
                                    HasSubstr("write an instant to come")));
}

TEST(Lint, MonthsThatADayPassesOver) {
  EXPECT_THAT(
      Warnings("0 1 31 * *", "priority: 1"),
      ElementsAre(AllOf(StartsWith("m.yaml:4:5: warning: "),
                        HasSubstr("passes over February, April, June, September, November"))));
  EXPECT_THAT(Warnings("0 1 30 * *", "priority: 1"),
              ElementsAre(HasSubstr("passes over February;")));
  EXPECT_THAT(Warnings("0 1 29,31 * *", "priority: 1"),
              ElementsAre(HasSubstr("February outside leap years")));
  EXPECT_THAT(Warnings("0 0 1 31 * ?", "priority: 1"), ElementsAre(HasSubstr("passes over")));
  EXPECT_THAT(Warnings("0 1 28,31 * *", "priority: 1"), IsEmpty());
  EXPECT_THAT(Warnings("0 1 31 1 *", "priority: 1"), IsEmpty());
  EXPECT_THAT(Warnings("0 1 31 * 1", "priority: 1"), IsEmpty());
}

TEST(Lint, DatesOnWhichAClockChangeLeavesNoFireOrTwo) {
  const std::string york = "timezone: America/New_York\n    dst: ";
  EXPECT_THAT(Warnings("30 2 * * *", york + "{ gap: skip }"),
              ElementsAre(AllOf(HasSubstr("no fire on 2026-03-08, 2027-03-14: "),
                                HasSubstr("America/New_York"), HasSubstr("gap: next"))));
  EXPECT_THAT(Warnings("30 1 * * *", york + "{ overlap: both }"),
              ElementsAre(AllOf(HasSubstr("two fires on 2026-11-01, 2027-11-07: "),
                                HasSubstr("overlap: first"))));
  // The house's own rule fires once on both days.
  EXPECT_THAT(Warnings("30 2 * * *", "timezone: America/New_York"), IsEmpty());
  EXPECT_THAT(Warnings("30 1 * * *", "timezone: America/New_York"), IsEmpty());
  // An interval job by day has no fire in the night that lacks its hour.
  EXPECT_THAT(Warnings("*/15 2 * * *", "timezone: America/New_York\n    period: day"),
              ElementsAre(HasSubstr("no fire on 2026-03-08, 2027-03-14")));
  // Weekends are meant.
  EXPECT_THAT(Warnings("30 3 * * 1-5", "timezone: America/New_York"), IsEmpty());
  EXPECT_THAT(Warnings("*/5 * * * *", "timezone: America/New_York"), IsEmpty());
}

// A table of holidays that ends is told before it ends, by name and day.
TEST(Lint, ACalendarThatEnds) {
  const std::string line = "timezone: Asia/Seoul\n    calendar: kr";
  EXPECT_THAT(Warnings("0 6 * * 1-5", line), IsEmpty());
  const absl::Time late = absl::FromCivil(absl::CivilSecond(2026, 11, 15), absl::UTCTimeZone());
  EXPECT_THAT(Warnings("0 6 * * 1-5", line, late),
              ElementsAre(AllOf(StartsWith("m.yaml:6:5: warning: "),
                                HasSubstr("calendar kr ends on 2026-12-31"), HasSubstr("extend"))));
  EXPECT_THAT(Warnings("0 6 * * 1-5", line, late + absl::Hours(24 * 90)),
              ElementsAre(HasSubstr("calendar kr ended on 2026-12-31")));
}

TEST(Lint, LocksAndOrdersThatDoNotHoldWhatTheySay) {
  EXPECT_THAT(Warnings("0 1 * * *", "lock: { scope: period }"),
              ElementsAre(HasSubstr("in spite of overlap: forbid")));
  EXPECT_THAT(Warnings("0 1 * * *", "lock: { scope: 'x-{{biz_date}}' }"),
              ElementsAre(HasSubstr("in spite of overlap: forbid")));
  EXPECT_THAT(Warnings("0 1 * * *", "lock: { scope: 'x-{{job}}' }"), IsEmpty());
  EXPECT_THAT(Warnings("0 1 * * *", "check: { command: [./count] }"),
              ElementsAre(AllOf(StartsWith("m.yaml:5:5: "), HasSubstr("'./count' is a path"))));
  EXPECT_THAT(
      Warnings("0 1 * * *", "after: [{ job: settle }]"),
      ElementsAre(AllOf(StartsWith("m.yaml:5:5: "), HasSubstr("'settle', which is not here"))));
}

TEST(Lint, NothingIsWarnedOfWithoutAClock) {
  EXPECT_THAT(Warnings("0 1 31 * *", "lock: { ttl: 5s }", absl::InfinitePast()), IsEmpty());
}

}  // namespace
}  // namespace matins
