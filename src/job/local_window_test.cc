#include "job/local_window.h"

#include "gtest/gtest.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

LocalWindow Window(absl::string_view text, absl::string_view zone) {
  return *LocalWindow::Parse(text, *LoadZone(zone));
}

absl::Time At(absl::string_view text) {
  absl::Time t;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &t, &error)) << error;
  return t;
}

TEST(LocalWindow, OpensAtItsFirstTimeAndClosesAtItsSecond) {
  const LocalWindow day = Window("09:00-17:00", "Asia/Shanghai");
  EXPECT_FALSE(day.Contains(At("2026-10-30T08:59:59+08:00")));
  EXPECT_TRUE(day.Contains(At("2026-10-30T09:00:00+08:00")));
  EXPECT_TRUE(day.Contains(At("2026-10-30T16:59:59+08:00")));
  EXPECT_FALSE(day.Contains(At("2026-10-30T17:00:00+08:00")));
}

TEST(LocalWindow, ReachesOverMidnight) {
  const LocalWindow night = Window("19:00-07:00", "Asia/Shanghai");
  EXPECT_TRUE(night.Contains(At("2026-10-30T19:00:00+08:00")));
  EXPECT_TRUE(night.Contains(At("2026-10-31T00:00:00+08:00")));
  EXPECT_TRUE(night.Contains(At("2026-10-31T06:59:59+08:00")));
  EXPECT_FALSE(night.Contains(At("2026-10-31T07:00:00+08:00")));
  EXPECT_EQ(night.NextOpening(At("2026-10-31T07:00:00+08:00")), At("2026-10-31T19:00:00+08:00"));
  EXPECT_EQ(night.NextOpening(At("2026-10-31T03:00:00+08:00")), At("2026-10-31T03:00:00+08:00"));
}

TEST(LocalWindow, ATimeThatIsLeftOutIsTheFirstInstantAfterTheGap) {
  // 02:00 becomes 03:00 on 2026-03-08.
  const LocalWindow opens = Window("02:30-05:00", "America/New_York");
  EXPECT_FALSE(opens.Contains(At("2026-03-08T01:59:59-05:00")));
  EXPECT_TRUE(opens.Contains(At("2026-03-08T03:00:00-04:00")));
  const LocalWindow closes = Window("22:00-02:30", "America/New_York");
  EXPECT_TRUE(closes.Contains(At("2026-03-08T01:59:59-05:00")));
  EXPECT_FALSE(closes.Contains(At("2026-03-08T03:00:00-04:00")));
  // One that lies in the gap opens on the next day.
  const LocalWindow within = Window("02:10-02:50", "America/New_York");
  EXPECT_FALSE(within.Contains(At("2026-03-08T03:00:00-04:00")));
  EXPECT_EQ(within.NextOpening(At("2026-03-08T00:00:00-05:00")), At("2026-03-09T02:10:00-04:00"));
}

TEST(LocalWindow, ATimeThatComesTwiceIsTheFirst) {
  // 02:00 becomes 01:00 on 2026-11-01.
  const LocalWindow opens = Window("01:30-05:00", "America/New_York");
  EXPECT_TRUE(opens.Contains(At("2026-11-01T01:30:00-04:00")));
  EXPECT_TRUE(opens.Contains(At("2026-11-01T01:10:00-05:00")));
  const LocalWindow closes = Window("22:00-01:30", "America/New_York");
  EXPECT_TRUE(closes.Contains(At("2026-11-01T01:29:59-04:00")));
  EXPECT_FALSE(closes.Contains(At("2026-11-01T01:10:00-05:00")));
}

TEST(LocalWindow, RefusesWhatIsNoWindow) {
  for (const char* text : {"", "19:00", "7-9", "19:00-24:00", "19:60-20:00", "19:00-07:00-08:00",
                           "08:00-08:00", "+1:00-02:00"}) {
    EXPECT_FALSE(LocalWindow::Parse(text, absl::UTCTimeZone()).ok()) << text;
  }
}

}  // namespace
}  // namespace matins
