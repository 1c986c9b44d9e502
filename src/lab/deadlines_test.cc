// A whole node over a slow network: what stops its runs is counted from before each request (I19).
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/lanes.h"
#include "engine/timing.h"
#include "execute/scripted_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/json.h"
#include "lab/faulty_store.h"
#include "lab/referee.h"
#include "store/model/model_database.h"

namespace matins {
namespace {

using ::testing::ElementsAre;

// Answers so many calls of Finish as a store does whose rows another transaction has.
class BusyStore final : public FaultyStore {
 public:
  BusyStore(std::unique_ptr<Store> store, Network& network, Referee& referee, int& times)
      : FaultyStore(std::move(store), network, referee), times_(times) {}
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override {
    if (times_ == 0) return FaultyStore::Finish(requests);
    --times_;
    return std::vector<Refusal>(requests.size(), Refusal{"busy"});
  }

 private:
  int& times_;
};

struct Commits final : History {
  void Record(const HistoryEvent& event) override {
    if (event.type == "commit") commits.push_back(std::string(event.result));
  }
  std::vector<std::string> commits;
};

class Deadlines : public ::testing::Test {
 protected:
  void SetUp() override {
    job_.name = "a";
    job_.schedule = "* * * * *";
    job_.period = PeriodKind::kFire;
    job_.lock.ttl = absl::Seconds(60);
    job_.grace = absl::Seconds(3);
    job_.run.kind = RunKind::kHandler;
    job_.run.handler = "work";
    referee_.Knows({job_, {{absl::InfinitePast(), absl::Minutes(1)}}});
    ASSERT_TRUE(database_.Migrate().ok());
    auto acts = database_.OpenActs();
    ASSERT_TRUE(acts.ok());
    ApplyRequest apply;
    apply.jobs = {{job_, JobToJson(job_)}};
    apply.source = "test";
    ASSERT_TRUE((*acts)->Apply(apply).ok());
    NodeParts parts;
    parts.options.id.name = "n1";
    parts.clock = &clock_;
    parts.history = &history_;
    parts.runner = &runner_;
    parts.random = std::make_unique<SeededRandom>(1);
    parts.open_store = [this](LaneKind) -> absl::StatusOr<std::unique_ptr<Store>> {
      ASSIGN_OR_RETURN(std::unique_ptr<Store> store, database_.Open());
      return std::make_unique<BusyStore>(std::move(store), network_, referee_, busy_);
    };
    auto lanes = Lanes::Open(std::move(parts));
    ASSERT_TRUE(lanes.ok()) << lanes.status();
    lanes_ = *std::move(lanes);
    network_.fate = [this](absl::string_view verb) {
      if (verb == slow_) {
        sent_ = clock_.BootNow();
        if (meanwhile_ && runner_.Alive().empty()) meanwhile_();
        clock_.Advance(absl::Seconds(4));
      }
      return CallFate::kFine;
    };
    // Up to the first fire, and a run of it that goes on for ever.
    slow_ = "Start";
    for (int second = 0; second < 120 && runner_.Alive().empty(); ++second) {
      clock_.Advance(absl::Seconds(1));
      for (const LaneKind kind : {LaneKind::kTick, LaneKind::kPlan, LaneKind::kStart}) {
        lanes_->Step(kind);
      }
    }
    ASSERT_EQ(runner_.Alive().size(), 1u);
    runner_.Poll();  // it has started; NextAt is its deadline from now on
  }
  absl::Duration StopOf(absl::Duration sent) const {
    return LeaseDeadline(sent, job_.lock.ttl, job_.grace).stop;
  }

  Job job_;
  ManualClock clock_{absl::FromUnixSeconds(1793318400)};
  model::ModelDatabase database_{{.clock = [this] { return clock_.WallNow(); }}};
  Referee referee_{[this] { return clock_.WallNow(); }};
  Network network_;
  absl::string_view slow_;           // the verb whose request is under way for long
  absl::Duration sent_;              // when it was sent last
  std::function<void()> meanwhile_;  // what happens while the first run's START is under way
  int busy_ = 0;                     // calls of Finish that find their rows locked
  Commits history_;
  Script script_{.then = absl::InfiniteDuration()};
  ScriptedRunner runner_{clock_, [this](const RunRequest&) { return script_; }};
  std::unique_ptr<Lanes> lanes_;
};

TEST_F(Deadlines, OfAClaimCountFromBeforeItsRequest) { EXPECT_EQ(runner_.NextAt(), StopOf(sent_)); }

TEST_F(Deadlines, OfABeatCountFromBeforeItsRequest) {
  clock_.Advance(BeatEvery(job_.lock.ttl));
  slow_ = "Extend";
  lanes_->Step(LaneKind::kBeat);
  EXPECT_EQ(sent_ + absl::Seconds(4), clock_.BootNow());
  EXPECT_EQ(runner_.NextAt(), StopOf(sent_));
}

class BusyRow : public Deadlines {
 protected:
  BusyRow() {
    script_.then = absl::Seconds(1);
    busy_ = 1;
  }
};

// "refused" would be a last word, and the end that is taken right after it would belie it (I9).
TEST_F(BusyRow, IsNoRefusalOfAnEndThatIsSentAgain) {
  clock_.Advance(absl::Seconds(1));
  lanes_->Step(LaneKind::kFinish);
  EXPECT_THAT(history_.commits, ElementsAre("inv", "busy"));
  clock_.Advance(absl::Seconds(1));
  lanes_->Step(LaneKind::kFinish);
  EXPECT_THAT(history_.commits, ElementsAre("inv", "busy", "inv", "ok"));
}

class DrainDuringStart : public Deadlines {
 protected:
  DrainDuringStart() {
    script_.ignores_term = true;
    meanwhile_ = [this] {
      lanes_->BeginDrain();
      EXPECT_FALSE(lanes_->Drained()) << "what it grants is still to come";
      lanes_->StopRuns();
    };
  }
};

TEST_F(DrainDuringStart, StopsWhatItHasGranted) {
  EXPECT_LE(runner_.NextAt(), clock_.BootNow() + job_.grace);
  EXPECT_FALSE(lanes_->Drained());
}

}  // namespace
}  // namespace matins
