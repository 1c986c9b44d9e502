// The lanes of one node on the model store, stepped by hand. When it has nothing to do: what it
// asks then, and that it misses nothing by asking less. When all is due at one instant: what goes
// first.
#include "engine/lanes.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "engine/engine.h"
#include "execute/scripted_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/json.h"
#include "lab/faulty_store.h"
#include "lab/referee.h"
#include "store/model/model_database.h"

namespace matins {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// 2026-10-30T00:00:00Z.
constexpr absl::Time kMidnight = absl::FromUnixSeconds(1793318400);

class TellingStore final : public FaultyStore {
 public:
  TellingStore(std::unique_ptr<Store> store, Network& network, Referee& referee, int& told)
      : FaultyStore(std::move(store), network, referee), told_(told) {}
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override {
    told_ += request.stirs;
    return FaultyStore::Tick(request);
  }

 private:
  int& told_;
};

class Quiet : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(database_.Migrate().ok());
    Apply("a", "0 1 * * *");
    lanes_ = Open("n1", runner_);
    ASSERT_NE(lanes_, nullptr);
    lanes_->node().hears = true;
    network_.fate = [this](absl::string_view verb) {
      ++asked_[std::string(verb)];
      verbs_.emplace_back(verb);
      return away_ ? CallFate::kAway : CallFate::kFine;
    };
  }

  std::unique_ptr<Lanes> Open(const std::string& name, Runner& runner, int slots = 64) {
    NodeParts parts;
    parts.options.slots = slots;
    parts.options.id.name = name;
    parts.clock = &clock_;
    parts.runner = &runner;
    parts.random = std::make_unique<SeededRandom>(1);
    parts.open_store = [this](LaneKind) -> absl::StatusOr<std::unique_ptr<Store>> {
      ASSIGN_OR_RETURN(std::unique_ptr<Store> store, database_.Open());
      return std::make_unique<TellingStore>(std::move(store), network_, referee_, told_);
    };
    auto lanes = Lanes::Open(std::move(parts));
    EXPECT_TRUE(lanes.ok()) << lanes.status();
    return lanes.ok() ? *std::move(lanes) : nullptr;
  }

  // Without a schedule it is a one-off of now.
  void Apply(const std::string& name, const std::string& schedule) {
    Apply(name, schedule, clock_.WallNow());
  }
  void Apply(const std::string& name, const std::string& schedule, absl::Time at) {
    Job job;
    job.name = name;
    job.schedule = schedule;
    if (schedule.empty()) job.at = at;
    job.period = PeriodKind::kFire;
    job.run.kind = RunKind::kHandler;
    job.run.handler = "work";
    referee_.Knows({job, {{absl::InfinitePast(), absl::Minutes(1)}}});
    auto acts = database_.OpenActs();
    ASSERT_TRUE(acts.ok());
    ApplyRequest apply;
    apply.jobs = {{job, JobToJson(job)}};
    apply.source = name;
    ASSERT_TRUE((*acts)->Apply(apply).ok());
  }

  // Each lane when it wants to be stepped, or is rung.
  void Until(absl::Time until) {
    for (;;) {
      absl::Duration next = absl::InfiniteDuration();
      for (const LaneKind kind : kAllLanes) {
        absl::Duration& at = next_[static_cast<size_t>(kind)];
        if (lanes_->node().bell(kind).IsRung()) at = clock_.BootNow();
        if (at <= clock_.BootNow()) at = lanes_->Step(kind);
        next = std::min(next, lanes_->node().bell(kind).IsRung() ? clock_.BootNow() : at);
      }
      const absl::Duration left = until - clock_.WallNow();
      if (left <= absl::ZeroDuration()) return;
      clock_.Advance(std::clamp(next - clock_.BootNow(), absl::Microseconds(1), left));
    }
  }
  void For(absl::Duration d) { Until(clock_.WallNow() + d); }

  ManualClock clock_{kMidnight};
  model::ModelDatabase database_{{.clock = [this] { return clock_.WallNow(); }}};
  Referee referee_{[this] { return clock_.WallNow(); }};
  Network network_;
  bool away_ = false;
  int told_ = 0;  // ticks that tell others that the node works again
  std::map<std::string, int> asked_;
  std::vector<std::string> verbs_;  // in the order asked
  Script script_{.then = absl::Seconds(20)};
  ScriptedRunner runner_{clock_, [this](const RunRequest&) { return script_; }};
  std::unique_ptr<Lanes> lanes_;
  std::array<absl::Duration, kAllLanes.size()> next_{};
};

TEST_F(Quiet, ANodeWithNothingToDoAsksByItsTickAlone) {
  For(absl::Minutes(1));
  asked_.clear();
  For(absl::Minutes(1));
  EXPECT_LE(asked_["Tick"], 21);
  EXPECT_GE(asked_["Tick"], 19);
  EXPECT_LE(asked_["Purge"], 1);
  asked_.erase("Tick");
  asked_.erase("Purge");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(Quiet, ADeafNodeGoesOnLooking) {
  lanes_->node().hears = false;
  For(absl::Minutes(1));
  asked_.clear();
  For(absl::Minutes(1));
  for (const char* verb : {"Tick", "ReadDue", "Hold", "ReadStale"}) {
    EXPECT_GE(asked_[verb], 59) << verb;
  }
}

TEST_F(Quiet, AFireIsPlannedAndStartedAtItsInstant) {
  Until(kMidnight + absl::Hours(1) - absl::Microseconds(1));
  EXPECT_THAT(runner_.Alive(), IsEmpty());
  For(absl::Milliseconds(2));
  EXPECT_THAT(runner_.Alive(), SizeIs(1));
  EXPECT_FALSE(lanes_->node().quiet);
}

TEST_F(Quiet, WhatIsAppliedUnheardIsFoundByTheNextTick) {
  For(absl::Minutes(1));
  ASSERT_TRUE(lanes_->node().quiet);
  Apply("b", "");
  For(lanes_->node().options.quiet_tick);
  For(absl::Milliseconds(1));
  EXPECT_THAT(runner_.Alive(), SizeIs(1));
}

// Host and guard are gone, and nobody has said that anything ran.
TEST_F(Quiet, WhatAnotherNodeLeavesBehindIsTakenBackWhenItsLeaseEnds) {
  For(absl::Minutes(1));
  ASSERT_TRUE(lanes_->node().quiet);
  Apply("b", "");
  ScriptedRunner others(clock_, [this](const RunRequest&) { return script_; });
  {
    const std::unique_ptr<Lanes> other = Open("n2", others);
    ASSERT_NE(other, nullptr);
    for (const LaneKind kind :
         {LaneKind::kTick, LaneKind::kPlan, LaneKind::kPlan, LaneKind::kStart}) {
      other->Step(kind);
    }
  }
  ASSERT_THAT(others.Alive(), SizeIs(1));
  ASSERT_TRUE(lanes_->node().quiet);
  For(LockSpec{}.ttl + lanes_->node().options.sweep + absl::Milliseconds(10));
  EXPECT_THAT(runner_.Alive(), SizeIs(1));
}

// START relies on what planning has seen a moment ago, not on what it saw before the node came to
// rest: a row that it refused would have to wait for seconds.
TEST_F(Quiet, WhatAnotherNodePlansIsStartedAtOnceByOneThatIsToldOfIt) {
  For(absl::Minutes(1));
  ASSERT_TRUE(lanes_->node().quiet);
  Apply("b", "");
  ScriptedRunner none(clock_, [this](const RunRequest&) { return script_; });
  const std::unique_ptr<Lanes> other = Open("n2", none, /*slots=*/0);
  ASSERT_NE(other, nullptr);
  for (const LaneKind kind : {LaneKind::kTick, LaneKind::kPlan}) other->Step(kind);
  ASSERT_TRUE(lanes_->node().quiet);
  lanes_->node().freed = true;
  next_[static_cast<size_t>(LaneKind::kStart)] = lanes_->Step(LaneKind::kStart);
  lanes_->node().Ring(LaneKind::kPlan);
  For(absl::Milliseconds(1));
  EXPECT_THAT(runner_.Alive(), SizeIs(1));
  EXPECT_EQ(lanes_->node().counters.starts_refused, 0);
}

TEST_F(Quiet, ANodeThatWorksAgainTellsTheOthersOnce) {
  Until(kMidnight + absl::Hours(1) - absl::Seconds(30));
  ASSERT_TRUE(lanes_->node().quiet);
  EXPECT_EQ(told_, 0);
  lanes_->node().Stir();
  EXPECT_FALSE(lanes_->node().quiet);
  For(absl::Seconds(2));
  EXPECT_EQ(told_, 1);
}

TEST_F(Quiet, WhereTheStoreIsAwayNobodyRests) {
  For(absl::Minutes(1));
  ASSERT_TRUE(lanes_->node().quiet);
  away_ = true;
  For(lanes_->node().options.quiet_tick);
  EXPECT_FALSE(lanes_->node().quiet);
  asked_.clear();
  For(absl::Seconds(10));
  EXPECT_GE(asked_["ReadDue"], 3);
}

TEST_F(Quiet, AWordOfTheOthersIsWorthATickASecondAtMost) {
  For(absl::Minutes(1));
  ASSERT_TRUE(lanes_->node().quiet);
  asked_.clear();
  for (int i = 0; i < 100; ++i) {
    lanes_->node().Ring(LaneKind::kTick);
    For(absl::Milliseconds(20));
  }
  EXPECT_LE(asked_["Tick"], 3);
  EXPECT_GE(asked_["Tick"], 1);
}

class Burst : public Quiet {
 protected:
  std::ptrdiff_t StartsBeforeTheFirstFinish() const {
    return std::count(verbs_.begin(), std::find(verbs_.begin(), verbs_.end(), "Finish"), "Start");
  }
};

TEST_F(Burst, AllThatIsDueAtOneInstantIsStartedBeforeTheEndsOfTheFirstAreWritten) {
  lanes_ = Open("n2", runner_, /*slots=*/2000);
  script_.then = absl::ZeroDuration();
  for (int i = 0; i < 1200; ++i) {
    Apply(absl::StrCat("burst-", i), "", clock_.WallNow() + absl::Seconds(10));
  }
  For(absl::Milliseconds(9'990));
  verbs_.clear();
  asked_.clear();
  For(absl::Milliseconds(20));
  EXPECT_GE(StartsBeforeTheFirstFinish(), 3) << absl::StrJoin(verbs_, " ");
  EXPECT_EQ(lanes_->node().counters.finished, 1200);
}

TEST_F(Burst, EndsWaitForStartsNoLongerThanAMoment) {
  script_.then = absl::Milliseconds(10);
  Apply("b", "");
  For(absl::Milliseconds(5));
  ASSERT_THAT(runner_.Alive(), SizeIs(1));
  lanes_->node().starts_go_on = true;  // and is never taken back
  lanes_->node().starts_first_us = absl::ToInt64Microseconds(clock_.BootNow()) + 40'000;
  For(absl::Milliseconds(10));
  lanes_->node().Ring(LaneKind::kFinish);  // as a runner does whose run has ended
  For(absl::Milliseconds(10));
  EXPECT_EQ(asked_["Finish"], 0);
  For(absl::Milliseconds(30));
  EXPECT_EQ(asked_["Finish"], 1);
}

// Where slots are short, ends are what the next starts wait for.
TEST_F(Burst, NoEndWaitsWhereThereIsNoFreeSlot) {
  lanes_ = Open("n2", runner_, /*slots=*/10);
  script_.then = absl::ZeroDuration();
  for (int i = 0; i < 50; ++i) {
    Apply(absl::StrCat("burst-", i), "", clock_.WallNow() + absl::Seconds(10));
  }
  For(absl::Seconds(10));
  For(absl::Milliseconds(30));
  EXPECT_EQ(lanes_->node().counters.finished, 50);
}

class EventsHeard : public EngineEvents {
 public:
  void OnEvent(const EngineEvent& event) override {
    absl::MutexLock lock(&mutex_);
    names_.emplace_back(event.name);
  }
  std::vector<std::string> Until(const std::string& last) {
    absl::MutexLock lock(&mutex_);
    const auto came = [this, &last]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::find(names_.begin(), names_.end(), last) != names_.end();
    };
    mutex_.Await(absl::Condition(&came));
    return names_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

// A node that comes back plans knowing that it does: what fails in its first run is not owed to the
// time in which no node was there, and so is not run again.
TEST(Beginning, ANodeTicksBeforeItPlans) {
  model::ModelDatabase database({.clock = [] { return absl::Now(); }});
  ASSERT_TRUE(database.Migrate().ok());
  Job job;
  job.name = "a";
  job.at = absl::Now();
  job.run.kind = RunKind::kHandler;
  job.run.handler = "work";
  ApplyRequest apply;
  apply.jobs = {{job, JobToJson(job)}};
  apply.source = "a";
  auto acts = database.OpenActs();
  ASSERT_TRUE(acts.ok() && (*acts)->Apply(apply).ok());
  ScriptedRunner runner(SystemClock(), [](const RunRequest&) { return Script{}; });
  EventsHeard heard;
  NodeParts parts;
  parts.options.id.name = "n1";
  parts.clock = &SystemClock();
  parts.runner = &runner;
  parts.events = &heard;
  parts.random = std::make_unique<SeededRandom>(1);
  parts.open_store = [&](LaneKind) { return database.Open(); };
  auto engine = Engine::Create(std::move(parts));
  ASSERT_TRUE(engine.ok()) << engine.status();
  (*engine)->Start();
  const std::vector<std::string> names = heard.Until("claimed");
  const auto at = [&](const char* name) { return std::find(names.begin(), names.end(), name); };
  EXPECT_LT(at(event::kReturned), at(event::kPlanned)) << absl::StrJoin(names, " ");
}

}  // namespace
}  // namespace matins
