// Stopping, deadlines, and what is left after them: nothing (I19, I21).
#include "execute/process_runner_test.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

// The first `count` words of the output, as process ids, once they are there.
std::vector<pid_t> AwaitPids(WatchedRunner& runner, int64_t run, size_t count) {
  std::string text;
  std::vector<pid_t> pids;
  while (pids.size() < count) {
    text += runner.AwaitOf<RunOutput>(run).bytes;
    pids.clear();
    for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      pids.push_back(atoi(std::string(line).c_str()));
    }
  }
  return pids;
}

// A tree as people write it: children in the background, and two that ran away: one into a session
// of its own, and one, by a double fork, to another parent.
constexpr char kTree[] =
    "sleep 600 & echo $!\n"
    "setsid sh -c 'echo $$; exec sleep 600' &\n"
    "(setsid sh -c '(sleep 600 & echo $!) &' &)\n"
    "echo $$\n"
    "wait";

void ExpectAllDead(const std::vector<pid_t>& pids) {
  for (pid_t pid : pids) EXPECT_FALSE(IsRunning(pid)) << pid;
}

TEST(ProcessKill, ATimeOutReachesTheWholeTree) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, absl::StrCat("trap '' TERM\n", kTree));
  request.time_out = Soon(6, 6.2);
  runner->Start(std::move(request));
  const std::vector<pid_t> pids = AwaitPids(runner, 1, 4);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kTimeOut);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_TRUE(ended.tree_dead);
  ExpectAllDead(pids);
}

TEST(ProcessKill, ACancelReachesTheWholeTree) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, kTree));
  const std::vector<pid_t> pids = AwaitPids(runner, 1, 4);
  runner->Stop(1, StopReason::kCancelled, absl::Seconds(30));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kCancelled);
  EXPECT_EQ(ended.signal, SIGTERM);
  ExpectAllDead(pids);
}

TEST(ProcessKill, ARunMayUseItsGraceToEndInOrder) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done"));
  runner.AwaitOf<RunOutput>(1);
  runner->Stop(1, StopReason::kShutdown, absl::Seconds(30));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.stopped, StopReason::kShutdown);
  EXPECT_FALSE(ended.Succeeded());
  EXPECT_TRUE(absl::EndsWith(ended.output.head, "bye\n"));
}

TEST(ProcessKill, AfterTheGraceItIsKilled) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "trap '' TERM; echo up; while :; do sleep 1; done"));
  runner.AwaitOf<RunOutput>(1);
  const absl::Duration before = SystemClock().BootNow();
  runner->Stop(1, StopReason::kCancelled, absl::Milliseconds(300));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_GE(SystemClock().BootNow() - before, absl::Milliseconds(300));
}

TEST(ProcessKill, AStoppedTreeIsKilledToo) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "sleep 600 & kill -STOP $!; kill -STOP $$");
  request.lease = Soon(0.5, 0.5);
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
  EXPECT_TRUE(ended.tree_dead);
}

// C093: a START whose answer came after its lease, or a node that slept.
TEST(ProcessKill, NothingIsStartedAfterTheLeaseThoughTheGraceIsNotOver) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "echo begun");
  request.lease = Soon(-0.1, 600);
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_EQ(ended.output.total_bytes, 0);
}

TEST(ProcessKill, ALeaseThatIsMovedLetsItGoOn) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "echo up; sleep 3.5; echo survived");
  request.lease = Soon(3, 3);
  runner->Start(std::move(request));
  runner->MoveDeadlines({{.run = 1, .lease = Soon(3600, 3600)}});
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_TRUE(ended.Succeeded()) << ended.Text();
  EXPECT_EQ(ended.output.head, "up\nsurvived\n");
}

TEST(ProcessKill, NoBeatMovesTheTimeOut) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "sleep 600");
  request.time_out = Soon(3.1, 3.1);
  request.lease = Soon(3, 3);
  runner->Start(std::move(request));
  runner->MoveDeadlines({{.run = 1, .lease = Soon(3600, 3600)}});
  EXPECT_EQ(runner.AwaitEnd(1).stopped, StopReason::kTimeOut);
}

TEST(ProcessKill, AStopThatComesAtOnceIsNotLost) {
  WatchedRunner runner;
  for (int i = 1; i <= 20; ++i) {
    runner->Start(ShellRun(i, "sleep 600"));
    runner->Stop(i, StopReason::kReplaced, absl::ZeroDuration());
  }
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(runner.AwaitEnd(i).stopped, StopReason::kReplaced);
}

TEST(ProcessKill, AStormOfForksEnds) {
  TempFolder folder;
  // Each lives for a moment and leaves two or none behind; another chain always leaves one.
  const std::string chain = folder.Script("chain", "#!/bin/sh\n\"$0\" &\nexit 0\n");
  WatchedRunner runner;
  RunRequest request =
      ShellRun(1, absl::StrCat("trap '' TERM; ", chain, "; ", chain,
                               "; i=0; while [ $i -lt 100 ]; do (sleep 600 &); i=$((i+1)); done; "
                               "echo up; sleep 600"));
  // A mark of this test alone: others may run on the same machine.
  request.env = {{.name = "STORM", .value = folder.path()}};
  runner->Start(std::move(request));
  runner.AwaitOf<RunOutput>(1);
  runner->Stop(1, StopReason::kCancelled, absl::ZeroDuration());
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_EQ(KillByEnvironment(absl::StrCat("STORM=", folder.path())), 0);
}

TEST(ProcessKill, ClosingTheRunnerIsTheNodesDeath) {
  TempFolder folder;
  const std::string give_back = folder.Script("matins", "#!/bin/sh\ncat > \"$0.in\"\n");
  WatchedRunner runner;
  RunRequest request = ShellRun(1, kTree);
  request.give_back = {.program = give_back, .store_url = "sqlite:x.db", .nonce = 5};
  runner->Start(std::move(request));
  const std::vector<pid_t> pids = AwaitPids(runner, 1, 4);
  runner.Close();
  ExpectAllDead(pids);
  EXPECT_THAT(ReadWholeFile(give_back + ".in"), HasSubstr("\"nonce\":\"5\""));
}

// ---- when somebody lays hands on the guard ----

TEST(Guard, IgnoresTheSignalsOfAGroup) {
  TempFolder folder;
  WatchedRunner runner;
  runner->Start(ShellRun(
      1, absl::StrCat("while test ! -e ", folder.File("go"), "; do sleep 0.02; done; exit 7")));
  const pid_t guard = ParentOf(runner.AwaitOf<RunStarted>(1).pid);
  ASSERT_GT(guard, 1);
  for (int sig : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) kill(guard, sig);
  std::ofstream(folder.File("go")) << "\n";
  EXPECT_EQ(runner.AwaitEnd(1).exit_code, 7);
}

TEST(Guard, ThatIsStoppedDoesNotKeepItsTreeAlive) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, absl::StrCat("trap '' TERM\n", kTree));
  request.time_out = Soon(6, 6);
  runner->Start(std::move(request));
  const std::vector<pid_t> pids = AwaitPids(runner, 1, 4);
  const pid_t guard = ParentOf(runner.AwaitOf<RunStarted>(1).pid);
  ASSERT_GT(guard, 1);
  kill(guard, SIGSTOP);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kTimeOut);
  EXPECT_TRUE(ended.tree_dead);
  ExpectAllDead(pids);
}

TEST(Guard, ThatIsKilledTakesItsTreeAlongButProvesNothing) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, kTree));
  const std::vector<pid_t> pids = AwaitPids(runner, 1, 4);
  const pid_t guard = ParentOf(runner.AwaitOf<RunStarted>(1).pid);
  ASSERT_GT(guard, 1);
  kill(guard, SIGKILL);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_FALSE(ended.tree_dead);
  EXPECT_FALSE(ended.Succeeded());
  for (pid_t pid : pids) EXPECT_TRUE(AwaitGone(pid));
}

TEST(Guard, CannotBeReadByItsJob) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1,
                                "id -u; tr '\\0' '\\n' < /proc/$PPID/environ | wc -l; "
                                "tr '\\0' ' ' < /proc/$PPID/cmdline");
  request.give_back = {.program = "/bin/true", .store_url = "postgresql://u:hunter2@h/d"};
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_THAT(ended.output.head, HasSubstr("matins-guard recon 2026-10-30"));
  EXPECT_THAT(ended.output.head, ::testing::Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace matins
