#include "execute/scripted_runner.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Scripted : public ::testing::Test {
  ManualClock clock{absl::UnixEpoch()};
  Script script;
  ScriptedRunner runner{clock, [this](const RunRequest&) { return script; }};

  absl::Duration In(double s) { return clock.BootNow() + absl::Seconds(s); }
  void Start(int64_t run, Deadline lease = {}, Deadline time_out = {}) {
    runner.Start({.run = run, .lease = lease, .time_out = time_out});
  }
  RunEnded Ended(const RunnerEvent& event) { return std::get<RunEnded>(event.what); }
};

TEST_F(Scripted, StartsAndEndsByTheClock) {
  script.then = absl::Seconds(5);
  script.exit_code = 3;
  Start(7);
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<RunStarted>(events[0].what));
  EXPECT_EQ(runner.NextAt(), In(5));
  clock.Advance(absl::Seconds(4));
  EXPECT_THAT(runner.Poll(), IsEmpty());
  clock.Advance(absl::Seconds(1));
  events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Ended(events[0]).exit_code, 3);
  EXPECT_EQ(runner.NextAt(), absl::InfiniteDuration());
}

TEST_F(Scripted, AnAskWaitsForItsAnswer) {
  script.steps = {{.after = absl::Seconds(1),
                   .kind = ScriptStep::Kind::kCheckpoint,
                   .number = 4,
                   .payload = "p"}};
  Start(7);
  clock.Advance(absl::Seconds(100));
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 2u);
  const auto asked = std::get<RunAsked>(events[1].what);
  EXPECT_EQ(asked.number, 4);
  EXPECT_THAT(runner.Alive(), ElementsAre(7));
  runner.Reply(7, asked.ask, {});
  events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(Ended(events[0]).Succeeded());
}

TEST_F(Scripted, ARefusedAskEndsIt) {
  script.steps = {{.kind = ScriptStep::Kind::kFence}};
  script.then = absl::Hours(1);
  Start(7);
  ASSERT_EQ(runner.Poll().size(), 2u);
  runner.Reply(7, 1, {.status = absl::AbortedError("lease lost")});
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Ended(events[0]).exit_code, 1);
}

TEST_F(Scripted, ANodeThatDoesNotLookCannotKeepARunAlive) {
  script.then = absl::InfiniteDuration();
  script.ignores_term = true;
  Start(7, {.stop = In(10), .kill = In(12)});
  Start(8, {.stop = In(10), .kill = In(14)});
  clock.Advance(absl::Hours(1));
  runner.MoveDeadlines({{.run = 7, .lease = {.stop = In(30), .kill = In(30)}}});
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[2].run, 7);
  EXPECT_EQ(Ended(events[2]).signal, SIGKILL);
  EXPECT_EQ(Ended(events[2]).stopped, StopReason::kLeaseLost);
  EXPECT_EQ(events[3].run, 8);
}

TEST_F(Scripted, AStopTermsAndThenKills) {
  script.then = absl::InfiniteDuration();
  Start(7);
  script.ignores_term = true;
  Start(8);
  runner.Poll();
  runner.Stop(7, StopReason::kCancelled, absl::Seconds(10));
  runner.Stop(8, StopReason::kCancelled, absl::Seconds(10));
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Ended(events[0]).signal, SIGTERM);
  EXPECT_EQ(runner.NextAt(), In(10));
  clock.Advance(absl::Seconds(10));
  events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Ended(events[0]).signal, SIGKILL);
}

TEST_F(Scripted, ANodeThatDiesTakesItsRunsAlongWithoutAWord) {
  script.then = absl::Hours(1);
  Start(7);
  Start(8);
  auto alive = runner.KillNode();
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].run, 7);
  clock.Advance(absl::Hours(2));
  EXPECT_THAT(runner.Poll(), IsEmpty());
}

TEST_F(Scripted, WakesWhenAVerbMadeAnEvent) {
  int woken = 0;
  runner.SetWakeUp([&] { ++woken; });
  script.not_started = absl::NotFoundError("no such file");
  Start(7);
  EXPECT_EQ(woken, 1);
  auto events = runner.Poll();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<RunNotStarted>(events[0].what));
}

}  // namespace
}  // namespace matins
