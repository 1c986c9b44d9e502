#include "store/set_aside.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace matins {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1793318400);

SetAside Of(absl::string_view period, absl::string_view labels, int64_t tag) {
  return AsideOf({"a", std::string(period)}, labels, tag, kNow, absl::Seconds(5));
}

TEST(SetAside, RowsOfAListStandByTheirTags) {
  const std::string one = Of("1", "[\"db\"]", 9).waits_for, two = Of("2", "[\"db\"]", 10).waits_for;
  const std::string without = Of("3", "[\"db\"]", 0).waits_for;
  const std::string more = Of("4", "[\"db\",\"east\"]", 1).waits_for;
  EXPECT_LT(one, two);
  EXPECT_LT(without, one);
  const absl::string_view list = AsideListOf(two);
  EXPECT_EQ(list, AsideListOf(without));
  EXPECT_EQ(LabelsOfAside(list), "[\"db\"]");
  EXPECT_EQ(LabelsOfAside(AsideListOf(more)), "[\"db\",\"east\"]");
  EXPECT_LE(AsideFrom(list, true), one);
  EXPECT_GT(AsideFrom(list, true), without);
  EXPECT_LE(AsideFrom(list, false), without);
  EXPECT_GT(AsideEnd(list), Of("5", "[\"db\"]", INT64_MAX).waits_for);
  const bool within = more >= AsideFrom(list, false) && more < AsideEnd(list);
  EXPECT_FALSE(within) << "of a list that begins alike";
}

TEST(SetAside, StandsBehindAllElseThatIsWaitedFor) {
  for (const char* other :
       {"after/z", "backfill_share", "global", "job/z", "key/z", "lock/z", "tenant/z"}) {
    EXPECT_LT(std::string(other), kAside);
  }
}

TEST(SetAside, NotAllIsLookedAtAgainAtOneInstant) {
  std::vector<absl::Time> times;
  for (int i = 0; i < 1000; ++i) times.push_back(Of(std::to_string(i), "[\"db\"]", 0).look_at);
  std::sort(times.begin(), times.end());
  EXPECT_GE(times.front(), kNow + kAsideFor);
  EXPECT_LT(times.back(), kNow + 2 * kAsideFor);
  EXPECT_GT(times[500] - times[400], absl::Minutes(1));
}

TEST(SetAside, LabelsThatAreTooLongAreWaitedForForAMoment) {
  const SetAside long_ones = Of("1", std::string(501, 'x'), 1);
  EXPECT_EQ(long_ones.waits_for, "");
  EXPECT_EQ(long_ones.look_at, kNow + absl::Seconds(5));
  EXPECT_EQ(Of("1", "", 1).waits_for, "") << "of a suspended job";
}

}  // namespace
}  // namespace matins
