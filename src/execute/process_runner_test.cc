#include "execute/process_runner_test.h"

#include <fcntl.h>

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// ---- exit status ----

TEST(ProcessExit, TellsExitCodesApart) {
  WatchedRunner runner;
  for (int code : {0, 1, 3, 127, 255})
    runner->Start(ShellRun(code + 1, absl::StrCat("exit ", code)));
  for (int code : {0, 1, 3, 127, 255}) {
    const RunEnded ended = runner.AwaitEnd(code + 1);
    EXPECT_EQ(ended.exit_code, code);
    EXPECT_EQ(ended.signal, 0);
    EXPECT_EQ(ended.Succeeded(), code == 0);
    EXPECT_TRUE(ended.tree_dead);
  }
}

TEST(ProcessExit, DeathByASignalIsASignal) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "kill -9 $$"));
  runner->Start(ShellRun(2, "ulimit -c 0; kill -SEGV $$"));
  RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_EQ(ended.ShellCode(), 137);
  EXPECT_FALSE(ended.Succeeded());
  ended = runner.AwaitEnd(2);
  EXPECT_EQ(ended.signal, SIGSEGV);
  EXPECT_EQ(ended.ShellCode(), 139);
}

TEST(ProcessExit, IsJudgedByTheCodeAndNotByStderr) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "echo trouble >&2; exit 0"));
  runner->Start(ShellRun(2, "exit 5"));
  runner->Start(ShellRun(3, "false | cat"));
  EXPECT_TRUE(runner.AwaitEnd(1).Succeeded());
  EXPECT_EQ(runner.AwaitEnd(2).exit_code, 5);
  EXPECT_TRUE(runner.AwaitEnd(3).Succeeded()) << "a pipeline's status is the shell's";
}

TEST(ProcessExit, NamesTheFileThatIsNotThere) {
  WatchedRunner runner;
  runner->Start(CommandRun(1, {"./no-such-program"}));
  auto told = runner.AwaitOf<RunNotStarted>(1);
  EXPECT_EQ(told.exit_code, 127);
  EXPECT_THAT(std::string(told.error.message()), HasSubstr("./no-such-program"));
  runner->Start(CommandRun(2, {"matins-no-such-program"}));
  EXPECT_EQ(runner.AwaitOf<RunNotStarted>(2).exit_code, 127);
}

TEST(ProcessExit, NamesTheFileThatMayNotRun) {
  TempFolder folder;
  std::ofstream(folder.File("plain")) << "#!/bin/sh\n";
  std::ofstream(folder.File("text")) << "no program\n";
  chmod(folder.File("text").c_str(), 0755);
  WatchedRunner runner;
  runner->Start(CommandRun(1, {folder.File("plain")}));
  auto told = runner.AwaitOf<RunNotStarted>(1);
  EXPECT_EQ(told.exit_code, 126);
  EXPECT_THAT(std::string(told.error.message()), AllOf(HasSubstr("plain"), HasSubstr("chmod")));
  runner->Start(CommandRun(2, {folder.File("text")}));
  told = runner.AwaitOf<RunNotStarted>(2);
  EXPECT_EQ(told.exit_code, 126);
  EXPECT_THAT(std::string(told.error.message()), HasSubstr("#!/bin/sh"));
}

TEST(ProcessExit, NamesTheFolderThatIsNotThere) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "true");
  request.dir = "/no/such/folder";
  runner->Start(std::move(request));
  auto told = runner.AwaitOf<RunNotStarted>(1);
  EXPECT_THAT(std::string(told.error.message()),
              AllOf(StartsWith("dir:"), HasSubstr("/no/such/folder")));
}

TEST(ProcessExit, TellsWhatItUsed) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_GT(ended.cpu, absl::ZeroDuration());
  EXPECT_GT(ended.max_rss_bytes, 100 << 10);
}

TEST(ProcessExit, ThousandShortRunsKeepTheirCodes) {
  WatchedRunner runner;
  for (int i = 0; i < 1000; ++i) runner->Start(ShellRun(i + 1, absl::StrCat("(:&); exit ", i % 4)));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(runner.AwaitEnd(i + 1).exit_code, i % 4);
}

// ---- what a run finds ----

TEST(ProcessSurroundings, HasNoDescriptorsButItsThree) {
  const int leak = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as somebody's library does it
  WatchedRunner runner;
  runner->Start(ShellRun(1, "exec ls -l /proc/self/fd"));
  const std::string listing = runner.AwaitEnd(1).output.Joined();
  close(leak);
  int descriptors = 0;
  for (absl::string_view line : absl::StrSplit(listing, '\n')) {
    if (!absl::StrContains(line, " -> ")) continue;
    // The fourth is the one with which ls reads the folder.
    ++descriptors;
    EXPECT_THAT(std::string(line), Not(HasSubstr("socket:")));
  }
  EXPECT_EQ(descriptors, 4) << listing;
}

TEST(ProcessSurroundings, StandardInputIsEmpty) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "cat; read x || echo none"));
  EXPECT_EQ(runner.AwaitEnd(1).output.head, "none\n");
}

TEST(ProcessSurroundings, EnvironmentIsListed) {
  setenv("SECRET_OF_THE_NODE", "hunter2", 1);
  WatchedRunner runner;
  RunRequest request = CommandRun(1, {"env"});
  request.env = {{.name = "A", .value = "x y"}, {.name = "D", .value = "d={{biz_date}}"}};
  request.values.attempt = 2;
  runner->Start(std::move(request));
  const std::string output = runner.AwaitEnd(1).output.Joined();
  unsetenv("SECRET_OF_THE_NODE");
  EXPECT_THAT(output, Not(HasSubstr("hunter2")));
  for (const char* line :
       {"A=x y\n", "D=d=2026-10-30\n", "MATINS_JOB=recon\n", "MATINS_FENCE=1\n",
        "MATINS_RUN_ID=1\n", "MATINS_PERIOD=2026-10-30\n", "MATINS_BIZ_DATE=2026-10-30\n",
        "MATINS_ATTEMPT=2\n", "MATINS_BACKFILL=0\n", "MATINS_CHECKPOINT=\n", "MATINS_TENANT=\n",
        "MATINS_WINDOW_START=\n", "MATINS_WINDOW_END=\n", "MATINS_SCHEDULED_FOR=\n",
        "TRACEPARENT=00-", "MATINS_SOCKET=/", "LANG=C.UTF-8\n", "HOME=/"}) {
    EXPECT_THAT(output, HasSubstr(line));
  }
}

TEST(ProcessSurroundings, FolderAndUmaskAreTheJobs) {
  TempFolder folder;
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "pwd; umask; touch made");
  request.dir = folder.path();
  request.umask = 077;
  runner->Start(std::move(request));
  EXPECT_EQ(runner.AwaitEnd(1).output.head, folder.path() + "\n0077\n");
  struct stat info;
  ASSERT_EQ(stat(folder.File("made").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(ProcessSurroundings, IgnoredSignalsAreNotInherited) {
  signal(SIGPIPE, SIG_IGN);
  WatchedRunner runner;
  runner->Start(ShellRun(1, "yes | head -n 1; grep -i sigign /proc/self/status"));
  const std::string output = runner.AwaitEnd(1).output.head;
  EXPECT_THAT(output, AllOf(StartsWith("y\n"), HasSubstr("0000000000000000")));
}

TEST(ProcessSurroundings, HasASessionOfItsOwn) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "kill -KILL 0; echo not reached"));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_TRUE(ended.tree_dead) << "it reached its guard";
  EXPECT_EQ(ended.output.total_bytes, 0);
}

TEST(ProcessSurroundings, PercentSignsAreOrdinary) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "date -u -d @0 '+%H:%M'"));
  EXPECT_EQ(runner.AwaitEnd(1).output.head, "00:00\n");
}

TEST(ProcessSurroundings, ALargeCheckpointComesInAFile) {
  WatchedRunner runner;
  for (int run : {1, 2}) {
    RunRequest request = ShellRun(run, "wc -c < \"$MATINS_CHECKPOINT_FILE\"");
    request.values.checkpoint = std::string(900 << 10, 'x');
    request.values.checkpoint_number = 3;
    runner->Start(std::move(request));
    EXPECT_EQ(runner.AwaitEnd(run).output.head, "921600\n");
  }
}

// ---- output ----

TEST(ProcessOutput, KeepsHeadAndTailAndTellsTheTotal) {
  WatchedRunner runner;
  RunRequest request =
      ShellRun(1, "echo first; head -c 5242880 /dev/zero | tr '\\0' x; echo last; exit 3");
  request.output = {.head_bytes = 1024, .tail_bytes = 1000};
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.exit_code, 3);
  EXPECT_EQ(ended.output.total_bytes, 5242880 + 6 + 5);
  EXPECT_EQ(ended.output.head.size(), 1024u);
  EXPECT_EQ(ended.output.tail.size(), 1000u);
  EXPECT_THAT(ended.output.head, StartsWith("first\nxxx"));
  EXPECT_TRUE(absl::EndsWith(ended.output.tail, "xxlast\n"));
  EXPECT_THAT(ended.output.Joined(), HasSubstr("5240867 of 5242891 bytes cut"));
}

TEST(ProcessOutput, NothingIsCutWhereAllFits) {
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "printf 0123456789; printf abc >&2");
  request.output = {.head_bytes = 4, .tail_bytes = 100};
  runner->Start(std::move(request));
  EXPECT_EQ(runner.AwaitEnd(1).output.Joined(), "0123456789abc");
}

TEST(ProcessOutput, AnyBytesArriveAsTheyAre) {
  WatchedRunner runner;
  runner->Start(CommandRun(1, {"printf", "hi\\n\\x80\\xff\\000end\\n"}));
  EXPECT_EQ(runner.AwaitEnd(1).output.Joined(), absl::string_view("hi\n\x80\xff\0end\n", 10));
}

TEST(ProcessOutput, ComesAsItIsWritten) {
  TempFolder folder;
  mkfifo(folder.File("go").c_str(), 0600);
  WatchedRunner runner;
  runner->Start(ShellRun(1, absl::StrCat("echo early; read x < ", folder.File("go"))));
  const auto output = runner.AwaitOf<RunOutput>(1);
  EXPECT_EQ(output.offset, 0);
  EXPECT_EQ(output.bytes, "early\n");
  std::ofstream(folder.File("go")) << "on\n";
  EXPECT_TRUE(runner.AwaitEnd(1).Succeeded());
}

TEST(ProcessOutput, ARunThatClosesItsOutputGoesOn) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "echo a; exec >&- 2>&-; exit 4"));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_EQ(ended.output.head, "a\n");
}

TEST(ProcessOutput, ABackgroundChildThatHoldsThePipeIsNotWaitedFor) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "( sleep 300 & echo $! ) ; echo done; exit 0"));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_TRUE(ended.Succeeded());
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_TRUE(absl::EndsWith(ended.output.head, "\ndone\n"));
  EXPECT_FALSE(IsRunning(atoi(ended.output.head.c_str())));
}

}  // namespace
}  // namespace matins
