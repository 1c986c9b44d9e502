#include "base/time.h"

#include <gtest/gtest.h>

namespace matins {
namespace {

TEST(ParseInstant, ReadsUtcAndOffsetsAndRefusesTheRest) {
  EXPECT_EQ(FormatInstant(*ParseInstant("2026-11-29T02:00:00Z")), "2026-11-29T02:00:00Z");
  EXPECT_EQ(FormatInstant(*ParseInstant("2026-11-29T10:00:00+08:00")), "2026-11-29T02:00:00Z");
  EXPECT_EQ(FormatInstant(*ParseInstant("2026-11-29 02:00:00.25Z")), "2026-11-29T02:00:00.25Z");
  for (const char* bad : {"", "now", "2026-11-29", "2026-11-29T02:00:00", "2026-13-01T00:00:00Z",
                          "infinite-future"}) {
    EXPECT_FALSE(ParseInstant(bad).ok()) << bad;
  }
}

TEST(ParseDay, RefusesDaysThatDoNotExist) {
  EXPECT_EQ(FormatDay(*ParseDay("2028-02-29")), "2028-02-29");
  for (const char* bad : {"2026-02-29", "2026-2-9", "20260209", "2026-11-3x", "+026-11-30"}) {
    EXPECT_FALSE(ParseDay(bad).ok()) << bad;
  }
}

TEST(ParseDuration, ReadsWhatFormatDurationWrites) {
  for (const char* text : {"90s", "10m", "2h", "7d", "1h30m", "250ms", "0s"}) {
    const auto d = ParseDuration(text);
    ASSERT_TRUE(d.ok()) << text;
    EXPECT_EQ(*ParseDuration(DurationText(*d)), *d) << text;
  }
  for (const char* bad : {"", "5", "-5s", "1y", "s", "1 h", "99999999999999999999s", "9999999d"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

TEST(ParseInstant, ALeapSecondIsTheOneAfterIt) {
  EXPECT_EQ(ParseInstant("2015-06-30T23:59:60Z").value(),
            ParseInstant("2015-07-01T00:00:00Z").value());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseInstant("2015-06-30T23:59:61Z").status()));
}

}  // namespace
}  // namespace matins
