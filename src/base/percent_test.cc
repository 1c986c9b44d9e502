#include "base/percent.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

TEST(PercentDecoded, TakesTwoDigitsAndLeavesTheRest) {
  EXPECT_EQ(PercentDecoded(""), "");
  EXPECT_EQ(PercentDecoded("plain"), "plain");
  EXPECT_EQ(PercentDecoded("p%40ss%2fw%2Ford%00"), std::string("p@ss/w/ord\0", 11));
  EXPECT_EQ(PercentDecoded("%"), "%");
  EXPECT_EQ(PercentDecoded("100%"), "100%");
  EXPECT_EQ(PercentDecoded("%4"), "%4");
  EXPECT_EQ(PercentDecoded("%zz%4g"), "%zz%4g");
  EXPECT_EQ(PercentDecoded("%2541"), "%41") << "once";
}

}  // namespace
}  // namespace matins
