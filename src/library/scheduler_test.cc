// A scheduler that runs by itself, and what all of them refuse.
#include "matins/scheduler.h"

#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "library/test_support.h"

namespace matins::testing {
namespace {

using Status = PeriodState::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Running : public ::testing::Test {
 protected:
  void Open() {
    auto opened = Scheduler::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    scheduler = *std::move(opened);
  }
  std::string RunNow(const std::string& date) {
    const auto period = scheduler->RunByHand({.job = "close", .date = date});
    EXPECT_TRUE(period.ok()) << period.status();
    return period.value_or("");
  }
  PeriodState Wait(const std::string& period) {
    const auto state = scheduler->Wait("close", period, absl::Minutes(2));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(PeriodState());
  }
  // A store without a live node that gets one gives every job a trigger, and with it what has
  // FAILED another attempt: a test that counts attempts starts behind that.
  void AwaitTriggerByReturn() {
    Sqlite store(folder.File("matins.db"));
    while (store.Number("SELECT count(*) FROM job_event WHERE kind = 'return'") == 0 ||
           store.Number("SELECT count(*) FROM job WHERE pending IS NOT NULL") > 0) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }

  Folder folder;
  SchedulerOptions options{.store = "sqlite:" + folder.File("matins.db")};
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(Running, RunsWhatAPersonAsksFor) {
  Open();
  ASSERT_TRUE(scheduler
                  ->AddHandler("close",
                               [](RunContext& run) {
                                 run.Print("closing " + run.period() + "\n");
                                 EXPECT_TRUE(run.SaveCheckpoint(1, "half").ok());
                                 return run.SetResult("{\"rows\": 3}");
                               })
                  .ok());
  ASSERT_TRUE(scheduler->Apply(NightlyJob()).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  const PeriodState state = Wait(RunNow("2026-10-01"));
  EXPECT_EQ(state.status, Status::kDone);
  EXPECT_EQ(state.checkpoint, 1);
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  Sqlite store(folder.File("matins.db"));
  EXPECT_EQ(store.Number("SELECT count(*) FROM job_run WHERE result = '{\"rows\": 3}'"), 1);
  EXPECT_EQ(store.Number("SELECT count(*) FROM job_output WHERE CAST(head AS TEXT) = "
                         "'closing 2026-10-01\n'"),
            1);
}

TEST_F(Running, WaitsForTheNewAttemptsAndNotForTheOldFailure) {
  int calls = 0;
  Open();
  ASSERT_TRUE(scheduler
                  ->AddHandler("close",
                               [&](RunContext&) {
                                 return ++calls < 3 ? absl::NotFoundError("no file yet")
                                                    : absl::OkStatus();
                               })
                  .ok());
  ASSERT_TRUE(scheduler->Apply(NightlyJob()).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  AwaitTriggerByReturn();
  EXPECT_EQ(Wait(RunNow("2026-10-01")).status, Status::kFailed);
  EXPECT_EQ(Wait(RunNow("2026-10-01")).status, Status::kFailed);
  const auto other =
      scheduler->RunByHand({.job = "close", .date = "2026-10-01", .params = {{"mode", "dry"}}});
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << "it keeps the parameters it has";
  EXPECT_EQ(Wait(RunNow("2026-10-01")).status, Status::kDone);
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(Running, RunsProcessesBesideHandlers) {
  Open();
  Job job = NightlyJob();
  job.handler = "";
  job.command = {"/bin/sh", "-c", "test \"$MATINS_BIZ_DATE\" = 2026-10-01"};
  ASSERT_TRUE(scheduler->Apply(job).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  EXPECT_EQ(Wait(RunNow("2026-10-01")).status, Status::kDone);
  EXPECT_EQ(Wait(RunNow("2026-10-02")).status, Status::kFailed);
  EXPECT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
}

TEST_F(Running, DrainTellsAHandlerToStopAndHandsItsPeriodOver) {
  absl::Notification entered;
  StopCause cause = StopCause::kNone;
  Open();
  ASSERT_TRUE(scheduler
                  ->AddHandler("close",
                               [&](RunContext& run) {
                                 absl::Notification stop;
                                 std::stop_callback on_stop(run.stop_token(), [&] {
                                   if (!stop.HasBeenNotified()) stop.Notify();
                                 });
                                 if (!entered.HasBeenNotified()) entered.Notify();
                                 stop.WaitForNotification();
                                 cause = run.stop_cause();
                                 return run.SaveCheckpoint(7, "so far");
                               })
                  .ok());
  ASSERT_TRUE(scheduler->Apply(NightlyJob()).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  const std::string period = RunNow("2026-10-01");
  entered.WaitForNotification();
  const absl::Status left = scheduler->Drain(absl::ZeroDuration());
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_EQ(cause, StopCause::kShutdown);
  const auto state = scheduler->Read("close", period);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->status, Status::kPlanned);
  EXPECT_EQ(state->checkpoint, 7);
  EXPECT_EQ(state->attempts, 0) << "handing over uses up nothing";
}

TEST_F(Running, DrainLetsAHandlerGoThatDoesNotStopAndRefusesWhatItStillWrites) {
  absl::Notification entered, go, refused;
  Open();
  ASSERT_TRUE(scheduler
                  ->AddHandler("close",
                               [&](RunContext& run) {
                                 if (!entered.HasBeenNotified()) entered.Notify();
                                 go.WaitForNotification();
                                 EXPECT_TRUE(absl::IsAborted(run.SaveCheckpoint(1)));
                                 EXPECT_TRUE(absl::IsAborted(run.ConfirmOwner()));
                                 if (!refused.HasBeenNotified()) refused.Notify();
                                 return absl::OkStatus();
                               })
                  .ok());
  Job job = NightlyJob();
  job.grace = absl::ZeroDuration();
  ASSERT_TRUE(scheduler->Apply(job).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  const std::string period = RunNow("2026-10-01");
  entered.WaitForNotification();
  const absl::Status left = scheduler->Drain(absl::ZeroDuration());
  EXPECT_TRUE(left.ok()) << left;
  EXPECT_EQ(scheduler->Read("close", period)->status, Status::kPlanned);
  go.Notify();
  refused.WaitForNotification();
  EXPECT_EQ(scheduler->Read("close", period)->checkpoint, 0);
}

TEST_F(Running, SaysWhatHappens) {
  absl::Mutex mutex;
  std::vector<std::string> names;
  options.on_event = [&](const SchedulerEvent& event) {
    absl::MutexLock lock(&mutex);
    if (event.job == "close") names.push_back(event.name);
  };
  Open();
  ASSERT_TRUE(scheduler->AddHandler("close", [](RunContext&) { return absl::OkStatus(); }).ok());
  ASSERT_TRUE(scheduler->Apply(NightlyJob()).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  Wait(RunNow("2026-10-01"));
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"claimed", "run_started", "run_ended", "finished"}));
}

TEST_F(Running, AppliesATextAndTellsWhatChanged) {
  Open();
  const std::string text =
      "jobs:\n  - { name: a, schedule: '0 1 * * *', misfire: skip, run: { handler: h } }\n";
  auto applied = scheduler->Apply(text);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_THAT(applied->added, ElementsAre("a"));
  EXPECT_THAT(scheduler->Apply(text)->unchanged, ElementsAre("a"));
  Job job = NightlyJob();
  EXPECT_THAT(scheduler->Apply(job)->missing, IsEmpty()) << "a set of its own";
  job.timeout = absl::Minutes(5);
  EXPECT_THAT(scheduler->Apply(job)->changed, ElementsAre("close"));
}

TEST_F(Running, TakesEveryFieldOfAJob) {
  Open();
  Job job = NightlyJob();
  job.timezone = "Asia/Shanghai";
  job.backfill = Backfill{.start = absl::CivilDay(2026, 10, 1),
                          .max_periods = 5,
                          .max_age = absl::Hours(72),
                          .source_window = absl::Hours(240),
                          .max_parallel = 1,
                          .strict = true};
  job.overlap = Overlap::kQueue;
  job.start_deadline = absl::Minutes(3);
  job.lease = absl::Seconds(20);
  job.limit = 2;
  job.timeout = absl::Minutes(90);
  job.grace = absl::Milliseconds(1500);
  job.retry = Retry{.attempts = 3, .backoff_min = absl::Seconds(1)};
  job.recovery = Recovery::kResume;
  job.commit = CommitBy::kJob;
  job.on_lease_lost = OnLeaseLost::kAbortProcess;
  job.nodes = {"app"};
  job.more = {{"dst", "{ gap: skip }"}, {"tenant", "payments"}, {"priority", "3"}};
  Job before = NightlyJob();
  before.name = "settle";
  ASSERT_TRUE(scheduler->Apply(before).ok());
  job.after = {"settle"};
  const auto applied = scheduler->Apply(job);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_THAT(scheduler->Apply(job)->unchanged, ElementsAre("close"));
}

TEST_F(Running, RefusesABadJobWithEachMistakeAndItsMend) {
  Open();
  Job job = NightlyJob();
  job.misfire.reset();
  job.schedule = "61 1 * * *";
  const absl::Status status = scheduler->Apply(job).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("misfire is not given"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("61"));
  const absl::Status elsewhere = scheduler->Apply("store: sqlite:other.db\njobs: []\n").status();
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("SchedulerOptions::store"));
}

TEST_F(Running, TakesNothingOfAFileThatItWouldNotKeep) {
  options.audit = "7 * * * *";
  options.redis = "redis://127.0.0.1:1";
  Open();
  const auto refusal = [&](const std::string& line) {
    return std::string(scheduler->Apply(line + "\njobs: []\n").status().message());
  };
  EXPECT_THAT(refusal("audit: \"8 * * * *\""), HasSubstr("SchedulerOptions::audit"));
  EXPECT_THAT(refusal("redis: redis://127.0.0.1:2"), HasSubstr("SchedulerOptions::redis"));
  EXPECT_THAT(refusal("limits: { global: 3 }"), HasSubstr("SchedulerOptions::global_limit"));
  EXPECT_THAT(refusal("ping: 'https://ping.example/1'"), HasSubstr("matins serve"));
  EXPECT_EQ(refusal("audit: \"7 * * * *\"\nredis: redis://127.0.0.1:1"), "");
}

TEST_F(Running, AuditsAllJobsWhenItIsTold) {
  options.audit = "* * * * * *";
  Open();
  ASSERT_TRUE(scheduler->Apply(NightlyJob()).ok());
  ASSERT_TRUE(scheduler->Start().ok());
  Sqlite store(folder.File("matins.db"));
  // A second one within an hour: not by the default.
  while (store.Number("SELECT count(*) FROM job_audit WHERE beat = 'store' AND finished_at IS NOT "
                      "NULL") < 2) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

TEST_F(Running, RefusesBadOptions) {
  const auto refusal = [&] { return std::string(Scheduler::Open(options).status().message()); };
  options.slots = 0;
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::slots"));
  options.slots = 1;
  options.labels = {"not a label"};
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::labels"));
  options.labels.clear();
  options.audit = "61 * * * *";
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::audit"));
  options.audit.clear();
  options.redis = "localhost";
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::redis"));
  options.redis.clear();
  options.store = "";
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::store"));
  TestClock clock(At(1, 0));
  options.clock = &clock;
  options.store = "postgresql://nobody@127.0.0.1/none";
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::clock"));
  options.store.clear();
  options.redis = "redis://127.0.0.1:1";
  EXPECT_THAT(refusal(), HasSubstr("SchedulerOptions::redis"));
}

TEST_F(Running, RefusesWhatComesAtTheWrongTime) {
  Open();
  const RunHandler handler = [](RunContext&) { return absl::OkStatus(); };
  EXPECT_TRUE(scheduler->AddHandler("h", handler).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(scheduler->AddHandler("h", handler)));
  EXPECT_TRUE(absl::IsInvalidArgument(scheduler->AddHandler("no name", handler)));
  EXPECT_TRUE(absl::IsFailedPrecondition(scheduler->Step()));
  ASSERT_TRUE(scheduler->Start().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(scheduler->Start()));
  EXPECT_TRUE(absl::IsFailedPrecondition(scheduler->AddHandler("late", handler)));
  const absl::Status step = scheduler->Step();
  EXPECT_THAT(std::string(step.message()), HasSubstr("TestClock"));
  EXPECT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
}

}  // namespace
}  // namespace matins::testing
