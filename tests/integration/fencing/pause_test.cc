// `matins fence sql` in each dialect, attacked: an old owner is paused at each step of its
// transaction and woken after the new one's.
#include <future>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/fence_sql.h"
#include "tests/integration/fencing/place.h"

namespace matins::demo {
namespace {

class Pause : public Place {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Place::SetUp());
    ASSERT_OK(MakeFence(sql()));
    ASSERT_OK(sql().DoAll("CREATE TABLE payment (step BIGINT NOT NULL, fence BIGINT NOT NULL);"));
    old_ = Connect();
    new_ = Connect();
    ASSERT_TRUE(old_ != nullptr && new_ != nullptr);
  }

  static Ownership Of(int64_t fence, int generation = 1) {
    return {"recon", "2026-10-30", generation, fence};
  }
  // One whole step, with its effect.
  static absl::Status Pay(Sql& sql, const Ownership& owner, int64_t step) {
    return InFencedStep(sql, owner, step, [&] { return Write(sql, owner, step); });
  }
  static absl::Status Write(Sql& sql, const Ownership& owner, int64_t step) {
    return sql.Do("INSERT INTO payment (step, fence) VALUES (?, ?)", {step, owner.fence}).status();
  }
  int64_t Payments(int64_t fence) {
    return Number(absl::StrCat("SELECT count(*) FROM payment WHERE fence = ", fence));
  }

  std::unique_ptr<Sql> old_, new_;
};

TEST_P(Pause, AnOldOwnerChangesNoRowWhenTheNewOneHasOnlyRaised) {
  ASSERT_OK_AND_ASSIGN(const int64_t before, RaiseFence(*old_, Of(10)));
  EXPECT_EQ(before, 0);
  ASSERT_OK_AND_ASSIGN(const int64_t last, RaiseFence(*new_, Of(11)));
  EXPECT_EQ(last, 0);
  EXPECT_TRUE(absl::IsAborted(Pay(*old_, Of(10), 1)));
  EXPECT_TRUE(absl::IsAborted(RaiseFence(*old_, Of(10)).status())) << "nor can it come back";
  EXPECT_EQ(Payments(10), 0);
  ASSERT_OK(Pay(*new_, Of(11), 1));
  EXPECT_EQ(Payments(11), 1);
}

// Its transaction is open, and has looked at rows, when the new one raises and writes. (SQLite lets
// nobody write meanwhile: there its snapshot is of a reader.)
TEST_P(Pause, AnOldOwnerInAnOpenTransactionChangesNoRowAfterTheNewOnesCommit) {
  ASSERT_OK(RaiseFence(*old_, Of(10)).status());
  ASSERT_OK(Pay(*old_, Of(10), 1));
  ASSERT_OK(old_->Do("BEGIN").status());
  ASSERT_OK(old_->Do("SELECT count(*) FROM payment").status());
  ASSERT_OK_AND_ASSIGN(const int64_t last, RaiseFence(*new_, Of(11)));
  EXPECT_EQ(last, 1);
  ASSERT_OK(Pay(*new_, Of(11), 2));
  const auto woken = old_->Do(FenceSql(old_->dialect()).step, {2, "recon", "2026-10-30", 10, 1});
  EXPECT_TRUE(!woken.ok() || woken->changed == 0);
  old_->Rollback();
  EXPECT_EQ(Payments(10), 1);
  EXPECT_EQ(Number("SELECT checkpoint FROM matins_fence"), 2);
}

// All of it is done but COMMIT: then its step stands, and the new owner waits for it before it
// reads where to go on.
TEST_P(Pause, AnOldOwnerPausedBeforeItsCommitIsWaitedForAndItsStepCounts) {
  ASSERT_OK(RaiseFence(*old_, Of(10)).status());
  ASSERT_OK(old_->Begin());
  ASSERT_OK_AND_ASSIGN(const Answer taken,
                       old_->Do(FenceSql(old_->dialect()).step, {1, "recon", "2026-10-30", 10, 0}));
  ASSERT_EQ(taken.changed, 1);
  ASSERT_OK(Write(*old_, Of(10), 1));
  auto raised = std::async(std::launch::async, [&] { return RaiseFence(*new_, Of(11)); });
  AwaitWaiter();
  ASSERT_OK(old_->Commit());
  const absl::StatusOr<int64_t> last = raised.get();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*last, 1) << "not done again";
  EXPECT_TRUE(absl::IsAborted(Pay(*new_, Of(11), 1)));
  ASSERT_OK(Pay(*new_, Of(11), 2));
  EXPECT_TRUE(absl::IsAborted(Pay(*old_, Of(10), 2)));
  EXPECT_EQ(Number("SELECT count(*) FROM payment"), 2);
}

// It never commits: what it wrote is gone with it.
TEST_P(Pause, AnOldOwnerThatDiesBeforeItsCommitLeavesTheStepToTheNewOne) {
  ASSERT_OK(RaiseFence(*old_, Of(10)).status());
  ASSERT_OK(old_->Begin());
  ASSERT_OK(old_->Do(FenceSql(old_->dialect()).step, {1, "recon", "2026-10-30", 10, 0}).status());
  ASSERT_OK(Write(*old_, Of(10), 1));
  auto raised = std::async(std::launch::async, [&] { return RaiseFence(*new_, Of(11)); });
  AwaitWaiter();
  old_.reset();
  const absl::StatusOr<int64_t> last = raised.get();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(*last, 0);
  ASSERT_OK(Pay(*new_, Of(11), 1));
  EXPECT_EQ(Payments(10), 0);
}

TEST_P(Pause, ANewGenerationBeginsAgainAndAnOlderOnesOwnerIsShutOut) {
  ASSERT_OK(RaiseFence(*old_, Of(10)).status());
  ASSERT_OK(Pay(*old_, Of(10), 1));
  const std::string once = FenceSql(sql().dialect()).once;
  ASSERT_OK_AND_ASSIGN(const Answer paid, sql().Do(once, {"recon", "2026-10-30", 1, 10}));
  EXPECT_EQ(paid.changed, 1);
  ASSERT_OK_AND_ASSIGN(const int64_t last, RaiseFence(*new_, Of(20, 2)));
  EXPECT_EQ(last, 0) << "a new generation's checkpoint is none";
  EXPECT_TRUE(absl::IsAborted(Pay(*old_, Of(10), 2)));
  ASSERT_OK(Pay(*new_, Of(20, 2), 1));
  ASSERT_OK_AND_ASSIGN(const Answer again, sql().Do(once, {"recon", "2026-10-30", 1, 20}));
  EXPECT_EQ(again.changed, 0) << "the key has no generation: nothing is paid twice";
  EXPECT_TRUE(absl::IsAborted(RaiseFence(*old_, Of(15, 1)).status()))
      << "a fence between the two is an old one";
}

MATINS_EACH_PLACE(Pause);

}  // namespace
}  // namespace matins::demo
