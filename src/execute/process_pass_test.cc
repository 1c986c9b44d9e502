// What a run shares with the program that called for it: its environment, standard streams,
// signals.
#include <fcntl.h>
#include <sys/socket.h>

#include "execute/process_runner_test.h"

namespace matins {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Standard output and error of this process are `out` and `error` for as long as it lives; a guard
// that is started meanwhile has them.
class StandardFiles {
 public:
  StandardFiles(int out, int error) : out_(dup(1)), error_(dup(2)) {
    fflush(nullptr);
    dup2(out, 1);
    dup2(error, 2);
  }
  ~StandardFiles() {
    dup2(out_, 1);
    dup2(error_, 2);
    close(out_);
    close(error_);
  }

 private:
  const int out_, error_;
};

RunRequest PassedRun(int64_t run, std::string text) {
  RunRequest request = ShellRun(run, std::move(text));
  request.pass_streams = true;
  return request;
}

std::string ReadToEnd(int fd) {
  std::string text;
  char bytes[4096];
  for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;) text.append(bytes, n);
  return text;
}

int OpenFile(const TempFolder& folder, const std::string& name) {
  return open(folder.File(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

TEST(ProcessPass, OutputAndErrorComeApartAndAreKeptTogether) {
  TempFolder folder;
  WatchedRunner runner;
  const int out = OpenFile(folder, "out"), error = OpenFile(folder, "error");
  RunEnded ended;
  {
    const StandardFiles files(out, error);
    runner->Start(PassedRun(1, "echo good; echo bad >&2"));
    ended = runner.AwaitEnd(1);
  }
  EXPECT_EQ(ReadWholeFile(folder.File("out")), "good\n");
  EXPECT_EQ(ReadWholeFile(folder.File("error")), "bad\n");
  EXPECT_THAT(ended.output.head, HasSubstr("good\n"));
  EXPECT_THAT(ended.output.head, HasSubstr("bad\n"));
}

TEST(ProcessPass, OneFileForBothKeepsTheOrder) {
  TempFolder folder;
  WatchedRunner runner;
  const int both = OpenFile(folder, "both");
  {
    const StandardFiles files(both, both);
    runner->Start(PassedRun(1, "for i in 1 2 3; do echo o$i; echo e$i >&2; done"));
    EXPECT_TRUE(runner.AwaitEnd(1).Succeeded());
  }
  EXPECT_EQ(ReadWholeFile(folder.File("both")), "o1\ne1\no2\ne2\no3\ne3\n");
}

TEST(ProcessPass, APipeThatNobodyReadsYetMakesTheJobWaitAndTheEndToo) {
  WatchedRunner runner;
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  {
    const StandardFiles files(pipe_fds[1], pipe_fds[1]);
    runner->Start(PassedRun(1, "head -c 1000000 /dev/zero"));
    runner.AwaitOf<RunStarted>(1);
  }
  EXPECT_EQ(fcntl(pipe_fds[1], F_GETFL) & O_NONBLOCK, 0) << "it is shared with others";
  close(pipe_fds[1]);
  EXPECT_EQ(ReadToEnd(pipe_fds[0]).size(), 1000000);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_TRUE(ended.Succeeded());
  EXPECT_EQ(ended.output.total_bytes, 1000000);
  close(pipe_fds[0]);
}

TEST(ProcessPass, ADeadlineHoldsWhereNobodyEverReads) {
  WatchedRunner runner;
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  {
    const StandardFiles files(pipe_fds[1], pipe_fds[1]);
    RunRequest request = PassedRun(1, "head -c 1000000 /dev/zero");
    request.time_out = Soon(0.5, 0.6);
    runner->Start(std::move(request));
    EXPECT_EQ(runner.AwaitEnd(1).stopped, StopReason::kTimeOut);
  }
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST(ProcessPass, AReaderThatGoesStopsNothing) {
  WatchedRunner runner;
  int pipe_fds[2], sockets[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  close(pipe_fds[0]);
  {
    const StandardFiles files(pipe_fds[1], sockets[1]);
    runner->Start(PassedRun(1, "head -c 200000 /dev/zero; echo there >&2"));
    const RunEnded ended = runner.AwaitEnd(1);
    EXPECT_TRUE(ended.Succeeded()) << ended.Text();
    EXPECT_EQ(ended.output.total_bytes, 200006);
  }
  close(pipe_fds[1]);
  close(sockets[1]);
  EXPECT_EQ(ReadToEnd(sockets[0]), "there\n");
  close(sockets[0]);
}

TEST(ProcessPass, TheEnvironmentIsTheCallersWithoutWhatIsOurs) {
  setenv("MATINS_PASS_TEST", "no", 1);
  setenv("PASS_TEST", "yes", 1);
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "env");
  request.inherit_environment = true;
  request.env = {{"OF_THE_JOB", "too", ""}};
  runner->Start(std::move(request));
  const std::string all = runner.AwaitEnd(1).output.head;
  EXPECT_THAT(all, HasSubstr("PASS_TEST=yes\n"));
  EXPECT_THAT(all, HasSubstr("OF_THE_JOB=too\n"));
  EXPECT_THAT(all, HasSubstr("MATINS_JOB=recon\n"));
  EXPECT_THAT(all, Not(HasSubstr("MATINS_PASS_TEST")));
  unsetenv("MATINS_PASS_TEST");
  unsetenv("PASS_TEST");
}

TEST(ProcessPass, ASignalReachesTheWholeTreeAndChangesNothing) {
  WatchedRunner runner;
  runner->Start(
      ShellRun(1,
               "trap 'echo mine' USR1\n"
               "sh -c 'trap \"echo child; exit 0\" USR1; echo up; while :; do sleep 0.02; done' &\n"
               "wait; wait; exit 0"));
  EXPECT_EQ(runner.AwaitOf<RunOutput>(1).bytes, "up\n");
  runner->PassSignal(1, SIGUSR1);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kNone);
  EXPECT_THAT(ended.output.head, HasSubstr("mine"));
  EXPECT_THAT(ended.output.head, HasSubstr("child"));
}

TEST(ProcessPass, AStopMayAskByAnotherSignal) {
  WatchedRunner runner;
  runner->Start(ShellRun(1,
                         "trap 'echo int; exit 4' INT; trap 'echo term; exit 5' TERM; echo up; "
                         "while :; do sleep 0.02; done"));
  runner.AwaitOf<RunOutput>(1);
  runner->StopBySignal(1, StopReason::kShutdown, absl::Seconds(30), SIGINT);
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.exit_code, 4);
  EXPECT_EQ(ended.stopped, StopReason::kShutdown);
}

// I19: a node that slept between START and the start of the process.
TEST(ProcessPass, NothingIsStartedThatWouldHaveToBeDead) {
  TempFolder folder;
  WatchedRunner runner;
  RunRequest late = ShellRun(1, absl::StrCat("echo ran > ", folder.File("ran")));
  late.lease = Soon(-2, -1);
  runner->Start(std::move(late));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kLeaseLost);
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_EQ(access(folder.File("ran").c_str(), F_OK), -1);
}

}  // namespace
}  // namespace matins
