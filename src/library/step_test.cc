// Handlers under a test's clock: what the engine promises of processes, seen from a user's side.
#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "library/test_support.h"

namespace matins::testing {
namespace {

using Status = PeriodState::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Step : public Stepped {
 protected:
  std::vector<std::string> ran;
};

TEST_F(Step, RunsOnTimeForTheDayBefore) {
  Begin([&](RunContext& run) {
    ran.push_back(run.period());
    EXPECT_EQ(run.biz_date(), absl::CivilDay(2026, 10, 1));
    EXPECT_EQ(run.window_start(), At(1, 0));
    EXPECT_EQ(run.window_end(), At(2, 0));
    EXPECT_EQ(run.scheduled_for(), At(2, 1));
    EXPECT_EQ(run.attempt(), 1);
    EXPECT_FALSE(run.backfill());
    EXPECT_EQ(run.checkpoint(), std::nullopt);
    return absl::OkStatus();
  });
  StepAt(At(2, 0, 59));
  EXPECT_THAT(ran, IsEmpty());
  StepAt(At(2, 1));
  EXPECT_THAT(ran, ElementsAre("2026-10-01"));
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(Step, FillsTheMissedNightsInOrder) {
  Begin([&](RunContext& run) {
    ran.push_back(absl::StrCat(run.period(), run.backfill() ? " late" : ""));
    return absl::OkStatus();
  });
  StepAt(At(5, 12));
  EXPECT_THAT(
      ran, ElementsAre("2026-10-01 late", "2026-10-02 late", "2026-10-03 late", "2026-10-04 late"));
}

TEST_F(Step, ANightThatFailedHoldsBackTheLaterOnes) {
  job.backfill = Backfill{.start = absl::CivilDay(2026, 9, 28)};
  Begin([&](RunContext& run) {
    ran.push_back(run.period());
    return run.biz_date() == absl::CivilDay(2026, 9, 29) && clock.Now() < At(2, 0)
               ? absl::DataLossError("the file is not there yet")
               : absl::OkStatus();
  });
  EXPECT_THAT(ran, ElementsAre("2026-09-28", "2026-09-29"));
  EXPECT_EQ(Read("2026-09-29").status, Status::kFailed);
  StepAt(At(2, 1));
  EXPECT_THAT(ran,
              ElementsAre("2026-09-28", "2026-09-29", "2026-09-29", "2026-09-30", "2026-10-01"));
}

TEST_F(Step, NightsThatWaitAreLeftAloneUntilTheyAreLookedAt) {
  Begin([](RunContext&) { return absl::DataLossError("the file is not there yet"); });
  StepAt(At(4, 1));
  ASSERT_EQ(Read("2026-10-01").status, Status::kFailed);
  ASSERT_EQ(Read("2026-10-03").status, Status::kPlanned);
  Sqlite store(file);
  const int64_t changes = store.Number("SELECT sum(ver) FROM job_watermark");
  for (int second = 1; second < 5; ++second) StepAfter(absl::Seconds(1));
  EXPECT_EQ(store.Number("SELECT sum(ver) FROM job_watermark"), changes);
}

TEST_F(Step, AnotherAttemptGoesOnFromTheLastCheckpoint) {
  job.retry = Retry{.attempts = 2, .backoff_min = absl::Seconds(30)};
  Begin([&](RunContext& run) -> absl::Status {
    const Checkpoint from = run.checkpoint().value_or(Checkpoint{});
    ran.push_back(absl::StrCat(run.attempt(), " from ", from.number, " ", from.data));
    for (int64_t step = from.number + 1; step <= 4; ++step) {
      if (step == 3 && run.attempt() == 1) return absl::UnavailableError("the bank is away");
      const absl::Status saved = run.SaveCheckpoint(step, absl::StrCat("row ", step));
      EXPECT_TRUE(saved.ok()) << saved;
    }
    EXPECT_EQ(run.checkpoint()->number, 4);
    return absl::OkStatus();
  });
  StepAt(At(2, 1));
  EXPECT_THAT(ran, ElementsAre("1 from 0 "));
  EXPECT_EQ(Read("2026-10-01").checkpoint, 2);
  StepAfter(absl::Seconds(60));
  EXPECT_THAT(ran, ElementsAre("1 from 0 ", "2 from 2 row 2"));
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(Step, ACheckpointThatDoesNotRiseIsRefusedAndTheRunGoesOn) {
  Begin([&](RunContext& run) {
    EXPECT_TRUE(run.SaveCheckpoint(5, "five").ok());
    const absl::Status again = run.SaveCheckpoint(5);
    EXPECT_TRUE(absl::IsInvalidArgument(again));
    EXPECT_THAT(std::string(again.message()), HasSubstr("greater number"));
    EXPECT_TRUE(absl::IsInvalidArgument(run.SaveCheckpoint(0)));
    EXPECT_TRUE(absl::IsInvalidArgument(run.SaveCheckpoint(6, std::string(65 * 1024, 'x'))));
    EXPECT_EQ(run.checkpoint()->data, "five");
    return absl::OkStatus();
  });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").checkpoint, 5);
}

TEST_F(Step, AnOwnerThatSleptPastItsLeaseIsRefusedAndAnotherGoesOn) {
  std::vector<int64_t> fences;
  Begin([&](RunContext& run) {
    fences.push_back(run.fence());
    if (fences.size() > 1) {
      EXPECT_EQ(run.checkpoint()->number, 1) << "the last one that was accepted in time";
      return run.ConfirmOwner();
    }
    EXPECT_TRUE(run.SaveCheckpoint(1).ok());
    clock.Advance(absl::Minutes(5));  // no heartbeat: the whole program stood still
    EXPECT_TRUE(absl::IsAborted(run.SaveCheckpoint(2)));
    EXPECT_TRUE(run.stop_requested());
    EXPECT_EQ(run.stop_cause(), StopCause::kLeaseLost);
    return absl::OkStatus();
  });
  StepAt(At(2, 1));
  ASSERT_EQ(fences.size(), 2);
  EXPECT_GT(fences[1], fences[0]);
  EXPECT_EQ(Read("2026-10-01").fence, fences[1]);
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(Step, ALongRunKeepsItsLeaseWhileItIsStepped) {
  Begin([&](RunContext& run) {
    for (int minute = 0; minute < 10; ++minute) {
      for (int part = 0; part < 6; ++part) StepAfter(absl::Seconds(10));
      EXPECT_TRUE(run.ConfirmOwner().ok()) << minute;
    }
    ran.push_back(run.period());
    return absl::OkStatus();
  });
  StepAt(At(2, 1));
  EXPECT_THAT(ran, ElementsAre("2026-10-01"));
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(Step, ACancelledRunSeesItAtItsNextHeartbeat) {
  Begin([&](RunContext& run) {
    const absl::Status asked = scheduler->Cancel(run.fence(), "the wrong day");
    EXPECT_TRUE(asked.ok()) << asked;
    EXPECT_FALSE(run.stop_requested());
    StepAfter(absl::Seconds(8));
    EXPECT_TRUE(run.stop_requested());
    EXPECT_EQ(run.stop_cause(), StopCause::kCancelled);
    EXPECT_TRUE(run.SaveCheckpoint(1).ok()) << "it still owns its period during the grace";
    return absl::CancelledError("asked to stop");
  });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kFailed);
  EXPECT_EQ(Read("2026-10-01").reason, "cancelled");
  EXPECT_TRUE(absl::IsNotFound(scheduler->Cancel(1, "")));
}

TEST_F(Step, ATimeOutIsToldAndThenTheHandlerIsLetGo) {
  job.timeout = absl::Minutes(1);
  job.grace = absl::Seconds(10);
  Begin([&](RunContext& run) {
    for (int i = 0; i < 6; ++i) StepAfter(absl::Seconds(10));
    EXPECT_EQ(run.stop_cause(), StopCause::kTimeOut);
    EXPECT_TRUE(run.SaveCheckpoint(1).ok()) << "there is a grace";
    StepAfter(absl::Seconds(6));
    EXPECT_FALSE(run.SaveCheckpoint(2).ok());
    ran.push_back(run.period());
    return absl::OkStatus();
  });
  StepAt(At(2, 1));
  EXPECT_THAT(ran, ElementsAre("2026-10-01")) << "a time-out is no loss that is made good at once";
  EXPECT_EQ(Read("2026-10-01").status, Status::kFailed);
  EXPECT_EQ(Read("2026-10-01").reason, "timeout");
}

using StepDeathTest = Step;
TEST_F(StepDeathTest, AbortProcessEndsTheProcessWhereTheJobSaysSo) {
  job.on_lease_lost = OnLeaseLost::kAbortProcess;
  Begin([&](RunContext& run) {
    clock.Advance(absl::Minutes(5));
    return run.SaveCheckpoint(1);
  });
  clock.AdvanceTo(At(2, 1));
  EXPECT_EXIT(scheduler->Step().IgnoreError(), ::testing::KilledBySignal(SIGABRT),
              "on_lease_lost: abort_process");
}

TEST_F(Step, TheSameScriptGivesTheSameRuns) {
  std::vector<std::vector<std::string>> stories;
  for (int time = 0; time < 2; ++time) {
    TestClock own(At(1, 12));
    std::vector<std::string>& story = stories.emplace_back();
    SchedulerOptions with;
    with.clock = &own;
    with.slots = 3;
    with.on_event = [&](const SchedulerEvent& event) {
      story.push_back(absl::StrCat(event.name, " ", event.job, " ", event.period, " ", event.fence,
                                   " ", event.alarm));
    };
    auto many = Scheduler::Open(with);
    ASSERT_TRUE(many.ok()) << many.status();
    ASSERT_TRUE((*many)
                    ->AddHandler("close",
                                 [&](RunContext& run) {
                                   own.Advance(absl::Seconds(1));
                                   return run.SaveCheckpoint(1);
                                 })
                    .ok());
    for (const char* name : {"a", "b", "c", "d"}) {
      job.name = name;
      ASSERT_TRUE((*many)->Apply(job).ok());
    }
    ASSERT_TRUE((*many)->Start().ok());
    for (int night = 2; night < 5; ++night) {
      own.AdvanceTo(At(night, 1));
      ASSERT_TRUE((*many)->Step().ok());
    }
  }
  EXPECT_THAT(stories[0].size(), ::testing::Ge(4 * 3 * 4));
  EXPECT_EQ(stories[0], stories[1]);
}

TEST_F(Step, TwoNodesOnOneStoreShareTheNights) {
  std::vector<std::string> others;
  Begin([&](RunContext& run) {
    ran.push_back(run.period());
    return absl::OkStatus();
  });
  auto other = Scheduler::Open(options);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)
                  ->AddHandler("close",
                               [&](RunContext& run) {
                                 others.push_back(run.period());
                                 return absl::OkStatus();
                               })
                  .ok());
  ASSERT_TRUE((*other)->Start().ok());
  for (int night = 2; night < 8; ++night) {
    clock.AdvanceTo(At(night, 1));
    Scheduler* const first = night % 2 == 0 ? scheduler.get() : other->get();
    Scheduler* const second = night % 2 == 0 ? other->get() : scheduler.get();
    ASSERT_TRUE(first->Step().ok());
    ASSERT_TRUE(second->Step().ok());
  }
  EXPECT_THAT(ran, ElementsAre("2026-10-01", "2026-10-03", "2026-10-05"));
  EXPECT_THAT(others, ElementsAre("2026-10-02", "2026-10-04", "2026-10-06"));
}

TEST_F(Step, WhoIsLateWithItsPlansLeavesTheJobsToTheOtherForAWhile) {
  const auto none = [](RunContext&) { return absl::OkStatus(); };
  Begin(none);
  auto other = Scheduler::Open(options);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->AddHandler("close", none).ok());
  ASSERT_TRUE((*other)->Start().ok());
  int turns = 0;
  bool others_turn = false;
  SetFaultHook([&](absl::string_view point) {
    if (point != "plan.before_write" || others_turn) return absl::OkStatus();
    if (++turns > 1) return absl::OkStatus();
    others_turn = true;  // it reads and writes the same plan, between this one's reading and writing
    const absl::Status stepped = (*other)->Step();
    others_turn = false;
    return stepped;
  });
  StepAt(At(2, 1));
  EXPECT_EQ(turns, 1);
  job.name = "late";
  ASSERT_TRUE((*other)->Apply(job).ok());
  Stepped::Step();
  EXPECT_EQ(turns, 1);
  StepAfter(absl::Milliseconds(10));
  EXPECT_EQ(turns, 2);
  SetFaultHook(nullptr);
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(Step, ByHandRunsAnyPeriodWithParametersAndADoneOneOnlyAgain) {
  Begin([&](RunContext& run) {
    const auto mode = run.params().find("mode");
    ran.push_back(absl::StrCat(run.period(), " ", run.generation(), " ",
                               mode == run.params().end() ? "" : mode->second));
    return absl::OkStatus();
  });
  const auto period =
      scheduler->RunByHand({.job = "close", .date = "2026-09-15", .params = {{"mode", "dry"}}});
  ASSERT_TRUE(period.ok()) << period.status();
  const auto done = scheduler->Wait("close", *period, absl::Seconds(1));
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->status, Status::kDone);
  const auto twice = scheduler->RunByHand({.job = "close", .date = "2026-09-15"});
  EXPECT_TRUE(absl::IsFailedPrecondition(twice.status()));
  ASSERT_TRUE(
      scheduler
          ->RunByHand(
              {.job = "close", .date = "2026-09-15", .again = true, .reason = "new statement"})
          .ok());
  Stepped::Step();
  EXPECT_THAT(ran, ElementsAre("2026-09-15 1 dry", "2026-09-15 2 "));
}

TEST_F(Step, WaitsForNothingUnderItsClock) {
  Begin([](RunContext&) { return absl::OkStatus(); });
  EXPECT_TRUE(absl::IsNotFound(scheduler->Read("close", "2026-10-01").status()));
  EXPECT_TRUE(absl::IsNotFound(scheduler->Wait("close", "2026-10-01", absl::Hours(9)).status()));
}

TEST_F(Step, AHandlerThatThrowsHasFailed) {
  Begin([](RunContext&) -> absl::Status { throw std::runtime_error("no books"); });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kFailed);
  EXPECT_EQ(Read("2026-10-01").reason, "exit");
}

TEST_F(Step, AJobWhoseHandlerIsNotHereIsLeftToAProgramThatHasIt) {
  job.handler = "elsewhere";
  Begin([](RunContext&) { return absl::OkStatus(); });
  const auto applied = scheduler->Apply(job);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_THAT(applied->warnings, ElementsAre(HasSubstr("no handler 'elsewhere'")));
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kPlanned);
  EXPECT_EQ(Read("2026-10-01").attempts, 0);
}

TEST_F(Step, DrainTakesNothingNew) {
  Begin([&](RunContext& run) {
    ran.push_back(run.period());
    return absl::OkStatus();
  });
  ASSERT_TRUE(scheduler->Drain(absl::ZeroDuration()).ok());
  clock.AdvanceTo(At(3, 1));
  EXPECT_TRUE(absl::IsFailedPrecondition(scheduler->Step()));
  EXPECT_THAT(ran, IsEmpty());
}

}  // namespace
}  // namespace matins::testing
