// The audits that nodes make by themselves, and that each looks after the other.
#include "audit/beats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/world_test_support.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Beats : public AuditWorld {
 protected:
  std::unique_ptr<AuditBeats> Node(const std::string& name) {
    return std::make_unique<AuditBeats>(
        database_->OpenActs().value(),
        AuditBeatsOptions{.by = absl::StrCat("node:", name),
                          .store_schedule = "",
                          .tell = [this](const MadeAudit& audit) {
                            made_.push_back(
                                absl::StrCat(audit.beat, " ", FormatInstant(audit.due)));
                            for (const AuditFinding& finding : audit.report.findings) {
                              if (finding.kind == AuditKind::kUnwatched) {
                                unwatched_.push_back(finding.why);
                              }
                            }
                          }});
  }
  void Until(AuditBeats& node, absl::string_view until) {
    for (const absl::Time end = ParseInstant(until).value(); now_ < end;) {
      const absl::Duration wait = node.Step().value();
      ASSERT_LE(wait, absl::Minutes(1));
      now_ = std::min(end, now_ + wait);
    }
  }

  std::vector<std::string> made_;
  std::vector<std::string> unwatched_;
};

TEST_F(Beats, AreHourlyForAllJobsAndDailyAtNineInEachJobsZone) {
  Apply(Daily("recon"));
  Job shanghai = Daily("shanghai");
  shanghai.timezone = "Asia/Shanghai";
  Apply(shanghai);
  const auto node = Node("a");
  ASSERT_OK(node->Step().status());
  made_.clear();  // the last instants before the store was there
  Until(*node, "2026-10-30T10:00:00Z");
  EXPECT_THAT(
      made_,
      ElementsAre("store 2026-10-30T00:37:00Z", "jobs 0 9 * * * Asia/Shanghai 2026-10-30T01:00:00Z",
                  "store 2026-10-30T01:37:00Z", "store 2026-10-30T02:37:00Z",
                  "store 2026-10-30T03:37:00Z", "store 2026-10-30T04:37:00Z",
                  "store 2026-10-30T05:37:00Z", "store 2026-10-30T06:37:00Z",
                  "store 2026-10-30T07:37:00Z", "store 2026-10-30T08:37:00Z",
                  "jobs 0 9 * * * UTC 2026-10-30T09:00:00Z", "store 2026-10-30T09:37:00Z"));
  EXPECT_THAT(unwatched_, IsEmpty());
}

TEST_F(Beats, OneAuditABeatOverAnyNumberOfNodes) {
  Apply(Daily("recon"));
  const auto a = Node("a"), b = Node("b"), c = Node("c");
  for (int hour = 0; hour < 24; ++hour) {
    for (AuditBeats* node : {a.get(), b.get(), c.get()}) ASSERT_OK(node->Step().status());
    Sleep(absl::Hours(1));
  }
  std::vector<std::string> once = made_;
  std::sort(once.begin(), once.end());
  EXPECT_EQ(std::adjacent_find(once.begin(), once.end()), once.end());
  EXPECT_GE(once.size(), 24u);
}

TEST_F(Beats, ANightWithoutAnyNodeIsToldByTheFirstAuditAfterIt) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  Until(*node, "2026-10-30T20:00:00Z");
  ASSERT_THAT(unwatched_, IsEmpty());
  Sleep(absl::Hours(15));  // all nodes are dead: nobody notices but from outside
  ASSERT_OK_AND_ASSIGN(const std::string outside, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_THAT(outside, HasSubstr("the last audit is of 2026-10-30T19:37:00Z"));
  ASSERT_OK(Node("b")->Step().status());
  EXPECT_THAT(unwatched_, Contains(HasSubstr("no node was there to make it")));
  ASSERT_OK_AND_ASSIGN(const std::string well, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_EQ(well, "");
}

TEST_F(Beats, EachLooksWhetherTheOthersLastWasMade) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  Until(*node, "2026-10-30T20:00:00Z");
  // The daily one is taken by a node that dies over it; a while later the hourly one sees it.
  now_ = ParseInstant("2026-10-31T09:00:00Z").value();
  ASSERT_OK_AND_ASSIGN(const int64_t id,
                       acts_->BeginAudit("jobs 0 9 * * * UTC", now_, "node:dead"));
  ASSERT_NE(id, 0);
  now_ += absl::Minutes(20);
  ASSERT_OK_AND_ASSIGN(
      const int64_t again,
      acts_->BeginAudit("jobs 0 9 * * * UTC", now_ - absl::Minutes(20), "node:dead2"));
  ASSERT_EQ(again, id) << "and so does the one that took it over";
  now_ += absl::Minutes(5);
  ASSERT_OK(node->Step().status());
  EXPECT_THAT(unwatched_, Contains(AllOf(HasSubstr("beat 'jobs 0 9 * * * UTC'"),
                                         HasSubstr("due at 2026-10-31T09:00:00Z was not made"))));
}

TEST_F(Beats, AnAuditThatWasBlindIsToldByTheOther) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  Until(*node, "2026-10-30T20:00:00Z");
  now_ = ParseInstant("2026-10-31T09:00:00Z").value();
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts_->BeginAudit("jobs 0 9 * * * UTC", now_, "node:b"));
  AuditRow blind;
  blind.id = id;
  blind.by = "node:b";
  ASSERT_OK(acts_->EndAudit(blind));
  ASSERT_OK_AND_ASSIGN(const std::string outside, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_THAT(outside, HasSubstr("did not find the miss that was planted"));
  unwatched_.clear();
  Until(*node, "2026-10-31T09:40:00Z");
  EXPECT_THAT(unwatched_, Contains(HasSubstr("did not find the miss that was planted")));
}

TEST_F(Beats, AStoreThatIsNewIsNotToldThatNobodyAudited) {
  ASSERT_OK_AND_ASSIGN(const std::string none, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_THAT(none, HasSubstr("no audit was ever made"));
  Apply(Daily("recon"));
  const auto node = Node("a");
  Until(*node, "2026-11-02T12:00:00Z");
  EXPECT_THAT(unwatched_, IsEmpty());
}

}  // namespace
}  // namespace matins
