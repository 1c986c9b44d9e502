#include "store/alert_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"

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

// A thing that goes wrong and is mended at random, nodes that read it and write what they read much
// later and in any order, senders that fail and die.
class AnyOrder {
 public:
  explicit AnyOrder(uint64_t seed) : random_(seed) {}

  void Run() {
    for (now_ = 1; now_ < 300; ++now_) {
      if (Chance(10)) Toggle();
      if (Chance(3)) Look();
      if (Chance(3)) WriteOne();
      if (Chance(4)) Send();
    }
    // Then all is quiet: what was read is written, all looks and sends as it should.
    while (!read_.empty()) WriteOne();
    for (int i = 0; i < 10; ++i) {
      now_ += 200;
      Look();
      while (!read_.empty()) WriteOne();
      may_fail_ = false;
      Send();
    }
  }

  bool wrong() const { return wrong_; }
  int onsets() const { return onsets_; }
  const AlertRow& row() const { return row_; }
  // What was delivered, a repetition of the same message once.
  const std::vector<std::string>& told() const { return told_; }

 private:
  bool Chance(int one_in) { return random_.Next() % static_cast<uint64_t>(one_in) == 0; }
  void Toggle() {
    wrong_ = !wrong_;
    if (wrong_) {
      onset_ = now_;
      ++onsets_;
    }
  }
  void Look() { read_.push_back({wrong_, wrong_ ? onset_ : now_}); }
  void WriteOne() {
    if (read_.empty()) return;
    const size_t i = random_.Next() % read_.size();
    const auto [wrong, at] = read_[i];
    read_.erase(read_.begin() + static_cast<ptrdiff_t>(i));
    if (wrong) {
      AlertRaise raise = Gap(At(at));
      raise.remind = absl::InfiniteDuration();
      RaiseAlert(raise, At(now_), row_);
      row_.id = 1;
    } else if (row_.id != 0) {
      ResolveAlert(Good(At(at)), At(now_), false, row_);
    }
  }
  void Send() {
    if (row_.next_at > At(now_)) return;
    const AlertStep step = NextStep(row_);
    const int episode = row_.episode;
    ClaimAlert("n", At(now_), row_);
    const bool fails = may_fail_ && Chance(3), dies = may_fail_ && Chance(4);
    if (!fails) {
      std::string message = absl::StrCat(step == AlertStep::kFire ? "fire " : "resolve ", episode);
      if (told_.empty() || told_.back() != message) told_.push_back(std::move(message));
    }
    // What is read meanwhile is written meanwhile.
    if (Chance(2)) Look();
    if (Chance(2)) WriteOne();
    if (!dies) EndAlert({1, step, fails ? "no" : ""}, "n", At(now_), row_);
  }

  SeededRandom random_;
  int now_ = 0, onset_ = 0, onsets_ = 0;
  bool wrong_ = false, may_fail_ = true;
  AlertRow row_;
  std::vector<std::pair<bool, int>> read_;
  std::vector<std::string> told_;
};

TEST(AlertInAnyOrder, ComesToTheTruthAndTellsEachEpisodeOnceAndInOrder) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    AnyOrder run(seed);
    run.Run();
    SCOPED_TRACE(absl::StrCat("seed ", seed, ": ", absl::StrJoin(run.told(), ", ")));
    if (run.onsets() == 0) {
      ASSERT_TRUE(run.told().empty());
      continue;
    }
    ASSERT_EQ(run.row().id == 0 ? false : run.row().open(), run.wrong());
    if (run.wrong()) {
      ASSERT_TRUE(run.row().told());
      ASSERT_TRUE(absl::StartsWith(run.told().back(), "fire"));
    } else if (!run.told().empty()) {
      ASSERT_TRUE(absl::StartsWith(run.told().back(), "resolve"));
    }
    // An episode's fire comes before its resolve, each once; and none is of a thing that was not.
    std::set<std::string> once;
    for (const std::string& message : run.told()) ASSERT_TRUE(once.insert(message).second);
    for (const std::string& message : run.told()) {
      if (!absl::StartsWith(message, "resolve")) continue;
      ASSERT_TRUE(once.contains(absl::StrCat("fire", message.substr(7))));
    }
    ASSERT_LE(run.row().episode, run.onsets());
  }
}

}  // namespace
}  // namespace matins
