// `recovery: hold`: where an effect cannot be done twice, a person decides what a lost lease means.
#include "demo/fence.h"
#include "demo/sql.h"
#include "job/values.h"
#include "tests/integration/fencing/place.h"
#include "tests/integration/stage.h"

namespace matins::demo {
namespace {

using ::matins::testing::Stage;

class Hold : public Place {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Place::SetUp());
    ASSERT_OK(MakeFence(sql()));
    ASSERT_OK(sql().DoAll("CREATE TABLE payment (step BIGINT NOT NULL, fence BIGINT NOT NULL);"));
    auto stage = Stage::Open(StoreUrl());
    ASSERT_TRUE(stage.ok()) << stage.status();
    stage_ = *std::move(stage);
    ASSERT_OK(stage_.Apply("pay", absl::Seconds(1)));
    ASSERT_OK(stage_.Plan("pay", 0, 1));
  }

  // Its lease of a second ends, and its period is held for a person.
  void LoseAndHold(const Claim& claim) {
    for (;;) {  // the store says when
      const auto stale = stage_.store->ReadStale(10);
      ASSERT_TRUE(stale.ok()) << stale.status();
      if (!stale->empty()) break;
    }
    ReapRequest reap;
    reap.ticket = TicketOf(claim);
    reap.to = Outcome::Kind::kHeld;
    reap.reason = reason::kLost;
    const auto taken = stage_.store->Reap({&reap, 1});
    ASSERT_TRUE(taken.ok()) << taken.status();
    ASSERT_TRUE(taken->front());
  }
  static Ownership Of(const Claim& claim) {
    return {claim.key.job, claim.key.period, claim.generation, claim.fence};
  }
  absl::Status Pay(Sql& by, const Claim& owner, int64_t step) {
    return InFencedStep(by, Of(owner), step, [&] {
      return by.Do("INSERT INTO payment (step, fence) VALUES (?, ?)", {step, owner.fence}).status();
    });
  }

  Stage stage_;
};

TEST_P(Hold, APausedOwnerIsRefusedFromWhereAPersonLetsItGoOn) {
  const PeriodKey key = testing::KeyOf("pay", 0);
  ASSERT_OK_AND_ASSIGN(const Claim old, stage_.Claimed(key));
  ASSERT_OK(RaiseFence(sql(), Of(old)).status());
  ASSERT_OK(Pay(sql(), old, 1));
  ASSERT_NO_FATAL_FAILURE(LoseAndHold(old));

  // Nobody takes it over by himself, and the old owner's end is refused.
  ASSERT_OK_AND_ASSIGN(const PeriodRow held, stage_.Row(key));
  EXPECT_EQ(held.status, PeriodStatus::kFailed);
  EXPECT_TRUE(held.held);
  EXPECT_FALSE(stage_.Claimed(key, "n2").ok());
  const FinishRequest end = testing::DoneOf(old);
  ASSERT_OK_AND_ASSIGN(const auto ends, stage_.store->Finish({&end, 1}));
  EXPECT_FALSE(ends[0].accepted());
  // The books have heard of no newer owner yet: up to here they take what it still writes, and the
  // person who looks finds it there.
  EXPECT_TRUE(Pay(sql(), old, 2).ok());

  ASSERT_OK(stage_.acts->Reopen(key, "", {"cli:alice", "two of three were paid"}));
  ASSERT_OK_AND_ASSIGN(const Claim next, stage_.Claimed(key, "n2"));
  EXPECT_GT(next.fence, old.fence);
  const std::unique_ptr<Sql> books = Connect();
  ASSERT_OK(RaiseFence(*books, Of(next)).status());
  EXPECT_TRUE(absl::IsAborted(Pay(sql(), old, 3)));
  ASSERT_OK(Pay(*books, next, 1));
  EXPECT_EQ(Number("SELECT count(*) FROM payment WHERE step = 3"), 0);
}

MATINS_EACH_PLACE(Hold);

}  // namespace
}  // namespace matins::demo
