// What a run says, through the real socket of a real run: by the client of the commands, and by
// hand.
#include <sys/socket.h>
#include <sys/un.h>

#include <thread>

#include "base/status.h"
#include "execute/process_runner_test.h"
#include "execute/run_client.h"
#include "execute/run_protocol.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

// A run that lasts until it is stopped, and the address of its socket.
class RunSocketTest : public ::testing::Test {
 protected:
  RunSocketTest() {
    runner_->Start(ShellRun(1, "echo $MATINS_SOCKET; sleep 600"));
    address_ = runner_.AwaitOf<RunOutput>(1).bytes;
    address_.pop_back();
    path_ = address_.substr(0, address_.find('?'));
  }

  int Connect() {
    sockaddr_un to{.sun_family = AF_UNIX};
    memcpy(to.sun_path, path_.data(), path_.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  static std::string Exchange(int fd, const std::string& bytes) {
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    return Receive(fd);
  }
  static std::string Receive(int fd) {
    std::string line;
    char byte;
    while (recv(fd, &byte, 1, 0) == 1 && byte != '\n') line += byte;
    return line;
  }
  std::string Key() { return address_.substr(address_.find('=') + 1); }

  WatchedRunner runner_;
  std::string address_;
  std::string path_;
};

TEST_F(RunSocketTest, IsForTheRunsUserAlone) {
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(std::filesystem::path(path_).parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(Key().size(), 32u);
}

TEST_F(RunSocketTest, ACheckpointIsAnsweredOnlyAfterTheReply) {
  const std::string payload("page 7\0\xff", 8);
  absl::Mutex mutex;
  bool answered = false;
  absl::StatusOr<std::string> answer;
  std::thread client([&] {
    auto told = AskNode(address_, {.kind = AskKind::kCheckpoint, .number = 7, .payload = payload});
    absl::MutexLock lock(&mutex);
    answer = std::move(told);
    answered = true;
  });
  const RunAsked asked = runner_.AwaitOf<RunAsked>(1);
  EXPECT_EQ(asked.kind, AskKind::kCheckpoint);
  EXPECT_EQ(asked.number, 7);
  EXPECT_EQ(asked.payload, payload);
  {
    absl::MutexLock lock(&mutex);
    EXPECT_FALSE(answered);
  }
  runner_->Reply(1, asked.ask, {.text = "7"});
  client.join();
  EXPECT_EQ(answer.value(), "7");
}

TEST_F(RunSocketTest, ARefusalComesWithItsCode) {
  std::thread node([&] {
    const RunAsked asked = runner_.AwaitOf<RunAsked>(1);
    runner_->Reply(1, asked.ask, {.status = absl::AbortedError("the lease is lost")});
  });
  const auto answer = AskNode(address_, {.kind = AskKind::kFence});
  node.join();
  EXPECT_EQ(answer.status(), absl::AbortedError("the lease is lost"));
}

TEST_F(RunSocketTest, AWrongKeyReachesNobody) {
  std::string wrong = address_;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_TRUE(absl::IsPermissionDenied(AskNode(wrong, {.kind = AskKind::kFence}).status()));
  runner_->Stop(1, StopReason::kCancelled, absl::ZeroDuration());
  runner_.AwaitEnd(1);
  for (const RunnerEvent& event : runner_->Poll()) {
    EXPECT_FALSE(std::holds_alternative<RunAsked>(event.what));
  }
}

TEST_F(RunSocketTest, OneConnectionAsksManyTimesAndIsAnsweredInOrder) {
  const int fd = Connect();
  std::string lines;
  for (int i = 0; i < 3; ++i) {
    lines += QuestionLine({.key = Key(), .kind = AskKind::kCheckpoint, .number = i + 1}) + "\n";
  }
  ASSERT_EQ(send(fd, lines.data(), lines.size(), 0), static_cast<ssize_t>(lines.size()));
  std::vector<int64_t> asks;
  for (int i = 0; i < 3; ++i) asks.push_back(runner_.AwaitOf<RunAsked>(1).ask);
  for (int i : {2, 0, 1}) runner_->Reply(1, asks[i], {.text = absl::StrCat("answer ", i)});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ParseAnswer(Receive(fd)).value(), absl::StrCat("answer ", i));
  }
  close(fd);
}

TEST_F(RunSocketTest, WhoHasSaidAllStillGetsTheAnswer) {
  const int fd = Connect();
  const std::string line = QuestionLine({.key = Key()}) + "\n";
  send(fd, line.data(), line.size(), 0);
  shutdown(fd, SHUT_WR);
  runner_->Reply(1, runner_.AwaitOf<RunAsked>(1).ask, {.text = "77"});
  EXPECT_EQ(ParseAnswer(Receive(fd)).value(), "77");
  close(fd);
}

TEST_F(RunSocketTest, WhoAsksAndGoesIsStillHeard) {
  const int fd = Connect();
  const std::string line =
      QuestionLine({.key = Key(), .kind = AskKind::kResult, .payload = "{\"rows\": 3}"}) + "\n";
  send(fd, line.data(), line.size(), 0);
  close(fd);
  const RunAsked asked = runner_.AwaitOf<RunAsked>(1);
  EXPECT_EQ(asked.kind, AskKind::kResult);
  EXPECT_EQ(asked.payload, "{\"rows\": 3}");
  runner_->Reply(1, asked.ask, {});
}

TEST_F(RunSocketTest, NonsenseIsRefusedAndHarmsNobody) {
  const int fd = Connect();
  for (const char* line : {"hello\n", "{}\n", "[]\n", "\n", "{\"key\": 3}\n", "\xff\xfe\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseAnswer(Exchange(fd, line)).status())) << line;
  }
  close(fd);
  const int endless = Connect();
  const std::string part(1 << 20, 'x');
  for (int i = 0; i < 8 && send(endless, part.data(), part.size(), MSG_NOSIGNAL) > 0; ++i) {
  }
  EXPECT_FALSE(ParseAnswer(Receive(endless)).ok());
  close(endless);
}

TEST_F(RunSocketTest, WhoComesWhenItIsFullWaits) {
  std::vector<int> many(20);
  for (int& fd : many) fd = Connect();
  std::thread client([&] {
    const auto answer = AskNode(address_, {.kind = AskKind::kFence});
    EXPECT_TRUE(answer.ok()) << answer.status();
  });
  for (int fd : many) close(fd);
  runner_->Reply(1, runner_.AwaitOf<RunAsked>(1).ask, {.text = "1"});
  client.join();
}

TEST_F(RunSocketTest, ANodeThatGoesLeavesTheAnswerInDoubt) {
  std::thread client([&] {
    const auto answer = AskNode(address_, {.kind = AskKind::kCheckpoint, .number = 1});
    EXPECT_TRUE(IsInDoubt(answer.status())) << answer.status();
  });
  runner_.AwaitOf<RunAsked>(1);
  runner_.Close();
  client.join();
}

TEST(RunClient, OutsideARunItSaysSo) {
  EXPECT_TRUE(absl::IsFailedPrecondition(AskNode("", {}).status()));
  EXPECT_TRUE(absl::IsUnavailable(AskNode("/no/such/socket?key=1", {}).status()));
}

TEST(RunProtocol, TellsWhatIsWrongWithAQuestion) {
  auto error = [](const char* line) { return std::string(ParseQuestion(line).status().message()); };
  EXPECT_THAT(error(R"({"ask":"checkpoint"})"), HasSubstr("number"));
  EXPECT_THAT(error(R"({"ask":"checkpoint","number":-1})"), HasSubstr("from 1"));
  EXPECT_THAT(error(R"({"ask":"checkpoint","number":"4"})"), HasSubstr("number"));
  EXPECT_THAT(error(R"({"ask":"result","payload":"{"})"), HasSubstr("not JSON"));
  EXPECT_THAT(error(R"({"ask":"sing"})"), HasSubstr("sing"));
}

}  // namespace
}  // namespace matins
