#include "view/timeline_view.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1793318400);  // 2026-10-30T00:00:00Z

TimelineBar Bar(absl::string_view title, std::vector<std::pair<char, double>> marks) {
  TimelineBar bar;
  bar.title = std::string(title);
  for (const auto& [letter, seconds] : marks) {
    bar.marks.push_back({letter, std::string(1, letter), kStart + absl::Seconds(seconds)});
  }
  return bar;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(Timeline, DrawsEachAttemptOnOneScale) {
  TimelineBar first = Bar("run 1", {{'P', 0}, {'C', 20}, {'S', 20}});
  first.lease_from = kStart + absl::Seconds(20);
  first.lease_until = kStart + absl::Seconds(50);
  const std::vector<std::string> lines =
      Lines(TimelineText("recon", {first, Bar("run 2", {{'C', 60}, {'F', 100}})}, 44));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_THAT(lines[1], HasSubstr("from 2026-10-30 00:00:00.000 UTC, 1m40s in"));
  //                     0   .   10   .   20  .   30  .   39
  EXPECT_EQ(lines[3], " |P-------CS===========                   |");
  EXPECT_EQ(lines[6], " |                       C---------------F|");
}

TEST(Timeline, MarksThatFallTogetherStandSideBySideInTheirOrder) {
  const std::string text =
      TimelineText("x", {Bar("a", {{'P', 0}, {'D', 0}, {'C', 99.9}, {'S', 100}, {'F', 100}})}, 44);
  EXPECT_THAT(text, HasSubstr("|PD-----------------------------------CSF|"));
}

TEST(Timeline, NoLineIsWiderThanAsked) {
  TimelineBar bar = Bar("run 1099511627781 of a node with a very long name indeed, in a far place",
                        {{'P', 0}, {'D', 1}, {'C', 2}, {'S', 3}, {'K', 4}, {'F', 5}});
  bar.notes = {
      "refused at 2026-10-30T00:00:09Z by a node with a long name: its lease had ended by then"};
  for (const std::string& line : Lines(TimelineText("title", {bar, bar}, 60))) {
    EXPECT_LE(line.size(), 60u) << line;
  }
}

TEST(Timeline, OneInstantIsNoScale) {
  EXPECT_THAT(TimelineText("x", {Bar("a", {{'P', 7}})}, 44), HasSubstr("|P "));
  EXPECT_EQ(TimelineText("nothing", {}, 44), "nothing\n");
}

}  // namespace
}  // namespace matins
