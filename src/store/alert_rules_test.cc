#include "store/alert_rules.h"

#include <gtest/gtest.h>

namespace matins {
namespace {

absl::Time At(double seconds) { return absl::FromUnixSeconds(1793318400) + absl::Seconds(seconds); }

AlertRaise Gap(absl::Time seen, int level = 2) {
  AlertRaise raise;
  raise.key = {"gap", "recon", "2026-10-29"};
  raise.channel = "ops";
  raise.kind = "failed";
  raise.level = level;
  raise.period = "2026-10-29";
  raise.due = At(-3600);
  raise.text = "FAILED: exit 1";
  raise.seen_at = seen;
  raise.remind = absl::Hours(24);
  return raise;
}

AlertResolve Good(absl::Time seen) { return {Gap(seen).key, seen, "DONE"}; }

class Alert : public ::testing::Test {
 protected:
  void Raise(double at, int level = 2) {
    changed_ = RaiseAlert(Gap(At(at), level), At(at), row_);
    if (row_.id == 0) row_.id = 1;
  }
  void Resolve(double seen, double now, bool silenced = false) {
    changed_ = ResolveAlert(Good(At(seen)), At(now), silenced, row_);
  }
  // Answers what was sent.
  AlertStep Send(double at, std::string error = "") {
    EXPECT_LE(row_.next_at, At(at));
    const AlertStep step = NextStep(row_);
    ClaimAlert("n1", At(at), row_);
    changed_ = EndAlert({row_.id, step, std::move(error)}, "n1", At(at), row_);
    return step;
  }

  AlertRow row_;
  bool changed_ = false;
};

TEST_F(Alert, IsFiredRemindedOfAndResolvedOnce) {
  Raise(0);
  EXPECT_EQ(row_.next_at, At(0));
  EXPECT_EQ(Send(1), AlertStep::kFire);
  EXPECT_EQ(row_.next_at, At(1) + absl::Hours(24));
  EXPECT_EQ(Send(1 + 24 * 3600), AlertStep::kRemind);
  Resolve(90000, 90001);
  EXPECT_TRUE(changed_);
  EXPECT_EQ(row_.resolved_at, At(90000));
  EXPECT_EQ(Send(90001), AlertStep::kResolve);
  EXPECT_EQ(row_.next_at, absl::InfiniteFuture());
  Resolve(90002, 90002);
  EXPECT_FALSE(changed_);
}

TEST_F(Alert, SeenAgainIsTheSameAndWorseIsToldAgain) {
  Raise(0);
  Send(0);
  Raise(10);
  EXPECT_TRUE(row_.told());
  Raise(20, 4);
  EXPECT_EQ(row_.next_at, At(20));
  EXPECT_EQ(Send(20), AlertStep::kFire);
  Raise(30, 2);
  EXPECT_EQ(row_.level, 4) << "what it was told to be";
  EXPECT_TRUE(row_.told());
}

TEST_F(Alert, WhatWasReadLongAgoUndoesNothing) {
  Raise(10);
  Send(10);
  Resolve(5, 11);
  EXPECT_TRUE(row_.open()) << "it was made good before it came";
  Resolve(12, 13);
  Send(13);
  EXPECT_FALSE(RaiseAlert(Gap(At(11)), At(14), row_));
  EXPECT_FALSE(row_.open()) << "it came before it was made good";
  Raise(14);
  EXPECT_TRUE(row_.open());
  EXPECT_EQ(row_.episode, 2);
  EXPECT_EQ(Send(14), AlertStep::kFire);
}

TEST_F(Alert, AClockSetBackHoldsUpNothing) {
  Raise(7200);
  Send(7200);
  Resolve(60, 61);
  EXPECT_FALSE(row_.open()) << "what was seen at 7200 lies ahead of the clock now";
  Send(62);
  EXPECT_FALSE(RaiseAlert(Gap(At(7200)), At(70), row_)) << "and is not new when it is read again";
}

TEST_F(Alert, BackBeforeAnybodyWasToldThatItHadGoneIsOneEpisode) {
  Raise(0);
  Send(0);
  Resolve(10, 10);
  Raise(11);
  EXPECT_EQ(row_.episode, 1);
  EXPECT_EQ(row_.next_at, At(11) + absl::Hours(24)) << "no message of either";
}

TEST_F(Alert, BackWhileThatItHadGoneIsBeingToldIsToldAnew) {
  Raise(0);
  Send(0);
  Resolve(10, 10);
  ClaimAlert("n1", At(10), row_);
  Raise(11);
  EXPECT_FALSE(EndAlert({1, AlertStep::kResolve, ""}, "n1", At(12), row_));
  EXPECT_EQ(row_.episode, 2);
  EXPECT_EQ(Send(12), AlertStep::kFire);
}

TEST_F(Alert, MadeGoodBeforeItWasToldIsToldInOrder) {
  Raise(0);
  Resolve(1, 1);
  EXPECT_EQ(Send(2), AlertStep::kFire);
  EXPECT_EQ(Send(2), AlertStep::kResolve);
  EXPECT_EQ(row_.next_at, absl::InfiniteFuture());
}

TEST_F(Alert, WhatCameAndWentInSilenceIsNotTold) {
  Raise(0);
  Resolve(1, 1, true);
  EXPECT_EQ(row_.next_at, absl::InfiniteFuture());
}

TEST_F(Alert, IsTriedAgainLaterAndLater) {
  Raise(0);
  Send(0, "refused");
  EXPECT_EQ(row_.last_error, "refused");
  EXPECT_EQ(row_.next_at, At(30));
  Send(30, "refused");
  EXPECT_EQ(row_.next_at, At(90));
  EXPECT_EQ(AlertBackoff(50), absl::Hours(1));
  EXPECT_EQ(Send(90), AlertStep::kFire);
  EXPECT_EQ(row_.attempts, 0);
}

TEST_F(Alert, WhoeverHasLostItsClaimSaysNothing) {
  Raise(0);
  ClaimAlert("n1", At(0), row_);
  EXPECT_EQ(row_.next_at, At(0) + kAlertLease);
  ClaimAlert("n2", At(0) + kAlertLease, row_);
  EXPECT_FALSE(EndAlert({1, AlertStep::kFire, ""}, "n1", At(200), row_));
  EXPECT_TRUE(EndAlert({1, AlertStep::kFire, ""}, "n2", At(200), row_));
}

TEST_F(Alert, AcknowledgedIsNotRemindedOfAndResolvesAllTheSame) {
  Raise(0);
  Send(0);
  EXPECT_TRUE(AckAlert({"cli:ann", "on it"}, At(5), row_));
  EXPECT_FALSE(AckAlert({"cli:bob", "me too"}, At(6), row_));
  EXPECT_EQ(row_.next_at, absl::InfiniteFuture());
  Resolve(10, 10);
  EXPECT_EQ(Send(10), AlertStep::kResolve);
}

TEST_F(Alert, OfAMomentIsOverOnceItIsTold) {
  AlertRaise zombie = Gap(At(0));
  zombie.momentary = true;
  RaiseAlert(zombie, At(0), row_);
  row_.id = 1;
  Send(1);
  EXPECT_FALSE(row_.open());
  EXPECT_EQ(row_.next_at, absl::InfiniteFuture());
  zombie.seen_at = At(50);
  EXPECT_FALSE(RaiseAlert(zombie, At(50), row_));
}

TEST_F(Alert, OfAWholeJobCountsItsPeriods) {
  AlertRaise first = Gap(At(0));
  first.by_job = true;
  RaiseAlert(first, At(0), row_);
  row_.id = 1;
  Send(0);
  AlertRaise next = first;
  next.period = "2026-10-30";
  next.due = At(0);
  next.seen_at = At(60);
  EXPECT_TRUE(RaiseAlert(next, At(60), row_));
  EXPECT_EQ(row_.count, 2);
  EXPECT_EQ(row_.period, "2026-10-30");
  EXPECT_TRUE(row_.told()) << "it is one episode";
}

}  // namespace
}  // namespace matins
