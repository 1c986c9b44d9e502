#include "ops/why_then.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Time At(int seconds) { return absl::FromUnixSeconds(1793318400) + absl::Seconds(seconds); }

NodeRow Node(int from, int to, std::vector<std::string> labels = {}, bool left = false) {
  NodeRow node;
  node.started_at = At(from);
  node.seen_at = At(to);
  node.labels = std::move(labels);
  node.left = left;
  return node;
}

CountedRun Counted(int64_t fence, int from, int to, absl::string_view tenant = "",
                   absl::string_view key = "") {
  CountedRun run;
  run.run.key = {"j", "p"};
  run.run.fence = fence;
  run.run.claimed_at = At(from);
  run.run.finished_at = to < 0 ? absl::InfinitePast() : At(to);
  run.tenant = std::string(tenant);
  run.key = std::string(key);
  return run;
}

LimitRow Rule(LimitKind kind, absl::string_view name, int most) {
  LimitRow row;
  row.rule = {kind, std::string(name), most};
  return row;
}

std::vector<std::pair<int64_t, int64_t>> Spans(const std::vector<Wait>& gaps) {
  std::vector<std::pair<int64_t, int64_t>> spans;
  for (const Wait& gap : gaps) {
    spans.emplace_back(absl::ToInt64Seconds(gap.from - At(0)),
                       absl::ToInt64Seconds(gap.to - At(0)));
  }
  return spans;
}

TEST(WhyThen, SaysWhenNoNodeWasAlive) {
  // A sign of life holds for 30 s, unless the node has left.
  const std::vector<NodeRow> nodes = {Node(-100, 20), Node(200, 300, {}, true)};
  EXPECT_THAT(Spans(WithoutNode(nodes, {}, {At(0), At(400)})),
              ElementsAre(std::pair(50, 200), std::pair(300, 400)));
  EXPECT_THAT(WithoutNode({Node(-10, 500)}, {}, {At(0), At(400)}), IsEmpty());
  EXPECT_THAT(Spans(WithoutNode({Node(-10, 500, {"a"})}, {"a", "b"}, {At(0), At(9)})),
              ElementsAre(std::pair(0, 9)));
  EXPECT_THAT(Spans(WithoutNode({}, {}, {At(0), At(9)})), ElementsAre(std::pair(0, 9)));
}

TEST(WhyThen, SaysWhichLimitWasFullOfWhatAtThatTime) {
  CountedRun mine;
  mine.tenant = "payments";
  mine.key = "bank";
  const std::vector<LimitRow> rules = {Rule(LimitKind::kTenant, "payments", 2),
                                       Rule(LimitKind::kKey, "bank", 1),
                                       Rule(LimitKind::kGlobal, "", 9)};
  const std::vector<CountedRun> runs = {
      Counted(1, -5, 30, "payments"), Counted(2, 10, 40, "payments"), Counted(3, -5, 90, "other")};
  const std::vector<std::string> full = FullThen(rules, mine, runs, {At(0), At(60)});
  ASSERT_EQ(full.size(), 1u);
  EXPECT_THAT(full[0], HasSubstr("limits.tenant payments 2 was full at 2026-10-30T00:00:10Z"));
  EXPECT_THAT(full[0], HasSubstr("j p (run 1), j p (run 2)"));
  // Before, or after, it was not.
  EXPECT_THAT(FullThen(rules, mine, runs, {At(41), At(60)}), IsEmpty());
  mine.tenant = "";
  EXPECT_THAT(FullThen(rules, mine, runs, {At(0), At(60)}), IsEmpty());
}

TEST(WhyThen, AWaitIsFromDueToTheFirstClaimOfTheGeneration) {
  PeriodRow row;
  row.due = At(0);
  row.generation = 2;
  row.status = PeriodStatus::kDone;
  std::vector<RunRow> runs;  // newest first
  for (const auto& [generation, claimed] :
       {std::pair(2, 300), std::pair(2, 200), std::pair(1, 1)}) {
    RunRow run;
    run.generation = generation;
    run.planned_at = At(150);
    run.claimed_at = At(claimed);
    runs.push_back(run);
  }
  const auto wait = WaitOf(row, runs, At(900));
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->from, At(150));
  EXPECT_EQ(wait->to, At(200));
  row.generation = 1;
  EXPECT_FALSE(WaitOf(row, runs, At(900))) << "at once";
  row.status = PeriodStatus::kPlanned;
  row.generation = 3;
  EXPECT_EQ(WaitOf(row, runs, At(900))->to, At(900));
}

}  // namespace
}  // namespace matins
