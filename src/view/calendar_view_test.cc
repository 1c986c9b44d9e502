#include "view/calendar_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace matins {
namespace {

TEST(CalendarText, PutsDaysUnderTheirWeekdays) {
  std::map<absl::CivilDay, DayMark> days;
  days[absl::CivilDay(2026, 11, 1)] = DayMark::kDone;    // a Sunday
  days[absl::CivilDay(2026, 11, 2)] = DayMark::kFailed;  // a Monday
  const std::string text = CalendarText(days, false);
  EXPECT_THAT(
      text,
      testing::HasSubstr(
          "November 2026\n Mo  Tu  We  Th  Fr  Sa  Su\n                         1D \n 2F  3. "));
  EXPECT_THAT(text, testing::HasSubstr("D DONE: 1 day(s)   F FAILED: 1 day(s)\n"));
}

TEST(Worse, TakesTheOneThatNeedsAPerson) {
  EXPECT_EQ(Worse(DayMark::kDone, DayMark::kHeld), DayMark::kHeld);
  EXPECT_EQ(Worse(DayMark::kRunning, DayMark::kSkipped), DayMark::kRunning);
}

}  // namespace
}  // namespace matins
