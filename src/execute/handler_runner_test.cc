#include "execute/handler_runner.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "execute/scripted_runner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

struct Handlers : public ::testing::Test {
  ManualClock clock{absl::UnixEpoch()};
  HandlerRunnerOptions options{.clock = &clock};
  absl::Mutex mutex;
  bool woken = false;
  std::vector<RunnerEvent> events;
  std::unique_ptr<Runner> runner;  // last, so that its threads go before what they use

  void Open() {
    runner = NewHandlerRunner(options);
    runner->SetWakeUp([this] {
      absl::MutexLock lock(&mutex);
      woken = true;
    });
  }
  template <typename What>
  What Await(int64_t run) {
    while (true) {
      for (size_t i = 0; i < events.size(); ++i) {
        auto* what = std::get_if<What>(&events[i].what);
        if (events[i].run != run || what == nullptr) continue;
        What found = std::move(*what);
        events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
        return found;
      }
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&woken));
      woken = false;
      for (RunnerEvent& event : runner->Poll()) events.push_back(std::move(event));
    }
  }
  RunRequest Request(int64_t run, const std::string& handler, double lease = 3600) {
    RunRequest request{.run = run};
    request.program.handler = handler;
    request.lease = {.stop = absl::Seconds(lease), .kill = absl::Seconds(lease + 5)};
    return request;
  }
};

// Waits until the token is set.
void AwaitStop(std::stop_token token) {
  absl::Notification stopped;
  std::stop_callback callback(token, [&] { stopped.Notify(); });
  stopped.WaitForNotification();
}

TEST_F(Handlers, ReturnTheirStatusAndOutput) {
  options.handlers["good"] = [](HandlerContext& run) {
    run.Print("one ");
    run.Print("two");
    return absl::OkStatus();
  };
  options.handlers["bad"] = [](HandlerContext&) { return absl::DataLossError("no rows"); };
  options.handlers["throws"] = [](HandlerContext&) -> absl::Status {
    throw std::runtime_error("boom");
  };
  Open();
  for (int i = 1; const char* name : {"good", "bad", "throws"}) runner->Start(Request(i++, name));
  const auto good = Await<RunEnded>(1);
  EXPECT_TRUE(good.Succeeded());
  EXPECT_EQ(good.output.Joined(), "one two");
  EXPECT_EQ(Await<RunEnded>(2).status, absl::DataLossError("no rows"));
  const auto threw = Await<RunEnded>(3);
  EXPECT_FALSE(threw.Succeeded());
  EXPECT_THAT(threw.Text(), HasSubstr("boom"));
}

TEST_F(Handlers, ThatNobodyRegisteredAreNamed) {
  Open();
  runner->Start(Request(1, "nobody"));
  EXPECT_THAT(std::string(Await<RunNotStarted>(1).error.message()), HasSubstr("'nobody'"));
}

TEST_F(Handlers, AskAndWaitForTheStore) {
  options.handlers["h"] = [](HandlerContext& run) {
    auto first = run.Ask(AskKind::kCheckpoint, 3, "p");
    EXPECT_EQ(first.value(), "3");
    return run.Ask(AskKind::kFence, -1, "").status();
  };
  Open();
  runner->Start(Request(1, "h"));
  auto asked = Await<RunAsked>(1);
  EXPECT_EQ(asked.number, 3);
  EXPECT_EQ(asked.payload, "p");
  runner->Reply(1, asked.ask, {.text = "3"});
  asked = Await<RunAsked>(1);
  runner->Reply(1, asked.ask, {.status = absl::AbortedError("taken over")});
  EXPECT_EQ(Await<RunEnded>(1).status, absl::AbortedError("taken over"));
}

TEST_F(Handlers, SeeTheirTokenAtTheDeadlineAndMayEndInOrder) {
  absl::Notification begun;
  options.handlers["h"] = [&](HandlerContext& run) {
    EXPECT_EQ(run.stop_reason(), StopReason::kNone);
    begun.Notify();
    AwaitStop(run.stop_token());
    EXPECT_EQ(run.stop_reason(), StopReason::kLeaseLost);
    EXPECT_TRUE(absl::IsAborted(run.Ask(AskKind::kCheckpoint, 1, "late").status()));
    return absl::OkStatus();
  };
  Open();
  runner->Start(Request(1, "h", 10));
  begun.WaitForNotification();
  clock.Advance(absl::Seconds(10));
  const auto ended = Await<RunEnded>(1);
  EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_FALSE(ended.Succeeded());
}

TEST_F(Handlers, MayAskDuringTheGraceOfACancel) {
  options.handlers["h"] = [](HandlerContext& run) {
    AwaitStop(run.stop_token());
    EXPECT_EQ(run.stop_reason(), StopReason::kShutdown);
    return run.Ask(AskKind::kCheckpoint, 1, "last").status();
  };
  Open();
  runner->Start(Request(1, "h"));
  Await<RunStarted>(1);
  runner->Stop(1, StopReason::kShutdown, absl::Seconds(10));
  runner->Reply(1, Await<RunAsked>(1).ask, {});
  const auto ended = Await<RunEnded>(1);
  EXPECT_TRUE(ended.status.ok());
  EXPECT_EQ(ended.stopped, StopReason::kShutdown);
}

TEST_F(Handlers, ThatDoNotStopAreLetGoAndRefused) {
  absl::Notification go;
  absl::Notification refused;
  options.threads = 1;
  options.handlers["h"] = [&](HandlerContext& run) {
    go.WaitForNotification();
    run.Print("not kept");
    EXPECT_TRUE(absl::IsAborted(run.Ask(AskKind::kCheckpoint, 1, "zombie").status()));
    refused.Notify();
    return absl::OkStatus();
  };
  options.handlers["next"] = [](HandlerContext&) { return absl::OkStatus(); };
  Open();
  runner->Start(Request(1, "h", 10));
  Await<RunStarted>(1);
  runner->Start(Request(2, "next"));
  clock.Advance(absl::Seconds(15));
  const auto ended = Await<RunEnded>(1);
  EXPECT_FALSE(ended.tree_dead);
  EXPECT_FALSE(ended.Succeeded());
  // The only thread hangs in the first; the second still runs.
  EXPECT_TRUE(Await<RunEnded>(2).Succeeded());
  go.Notify();
  refused.WaitForNotification();
  runner.reset();
  for (const RunnerEvent& event : events)
    EXPECT_FALSE(std::holds_alternative<RunAsked>(event.what));
}

TEST_F(Handlers, AbortTheProcessWhereTheJobSaysSo) {
  std::vector<int64_t> aborted;
  absl::Notification go;
  options.abort_process = [&](const RunRequest& request) { aborted.push_back(request.run); };
  options.handlers["h"] = [&](HandlerContext&) {
    go.WaitForNotification();
    return absl::OkStatus();
  };
  Open();
  RunRequest request = Request(1, "h", 10);
  request.abort_on_lease_lost = true;
  runner->Start(request);
  request.run = 2;
  request.lease = {};
  runner->Start(request);
  Await<RunStarted>(1);
  Await<RunStarted>(2);
  runner->Stop(2, StopReason::kCancelled, absl::ZeroDuration());
  Await<RunEnded>(2);
  EXPECT_THAT(aborted, ::testing::IsEmpty()) << "a cancelled run has not lost its lease";
  clock.Advance(absl::Seconds(15));
  Await<RunEnded>(1);
  EXPECT_THAT(aborted, ::testing::ElementsAre(1));
  go.Notify();
  runner.reset();
}

TEST_F(Handlers, ThatWaitForAThreadPastTheirDeadlineNeverStart) {
  options.threads = 1;
  options.handlers["h"] = [](HandlerContext& run) {
    AwaitStop(run.stop_token());
    return absl::OkStatus();
  };
  Open();
  runner->Start(Request(1, "h"));
  Await<RunStarted>(1);
  runner->Start(Request(2, "h", 10));
  clock.Advance(absl::Seconds(10));
  const auto ended = Await<RunEnded>(2);
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
  runner->Stop(1, StopReason::kCancelled, absl::Hours(1));
  Await<RunEnded>(1);
}

// C093: a START whose answer came after its lease, or a process that slept.
TEST_F(Handlers, ThatComeAfterTheirLeaseNeverStart) {
  std::atomic<int> called = 0;
  options.handlers["h"] = [&](HandlerContext&) {
    ++called;
    return absl::OkStatus();
  };
  Open();
  clock.Advance(absl::Seconds(20));
  for (int run = 1; run <= 100; ++run) runner->Start(Request(run, "h", 10));
  for (int run = 1; run <= 100; ++run) {
    const auto ended = Await<RunEnded>(run);
    EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
    EXPECT_TRUE(ended.tree_dead);
    EXPECT_FALSE(ended.Succeeded());
  }
  EXPECT_EQ(called, 0);
}

TEST_F(Handlers, AreStoppedWhenTheRunnerGoes) {
  options.handlers["h"] = [](HandlerContext& run) {
    AwaitStop(run.stop_token());
    return absl::OkStatus();
  };
  options.handlers["asks"] = [](HandlerContext& run) {
    return run.Ask(AskKind::kFence, -1, "").status();
  };
  Open();
  runner->Start(Request(1, "h"));
  runner->Start(Request(2, "asks"));
  Await<RunStarted>(1);
  Await<RunAsked>(2);
  runner.reset();
}

TEST(JoinedRunner, SendsHandlersOneWayAndProcessesTheOther) {
  ManualClock clock{absl::UnixEpoch()};
  auto writer = [](const RunRequest&) { return Script{.then = absl::Hours(1)}; };
  auto processes = std::make_unique<ScriptedRunner>(clock, writer);
  auto handlers = std::make_unique<ScriptedRunner>(clock, writer);
  ScriptedRunner* const p = processes.get();
  ScriptedRunner* const h = handlers.get();
  auto runner = JoinRunners(std::move(processes), std::move(handlers));
  RunRequest request{.run = 1};
  request.program.shell = "true";
  runner->Start(request);
  request = {.run = 2};
  request.program.handler = "f";
  runner->Start(request);
  EXPECT_THAT(p->Alive(), ::testing::ElementsAre(1));
  EXPECT_THAT(h->Alive(), ::testing::ElementsAre(2));
  EXPECT_EQ(runner->Poll().size(), 2u);
  runner->Stop(2, StopReason::kCancelled, absl::ZeroDuration());
  runner->MoveDeadlines({{.run = 1, .lease = {}}});
  ASSERT_EQ(runner->Poll().size(), 1u);
  EXPECT_THAT(h->Alive(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace matins
