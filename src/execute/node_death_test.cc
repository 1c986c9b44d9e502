// What becomes of runs whose node is stopped or dead. The node is a process of its own (test_node).
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include "execute/give_back.h"
#include "execute/process_runner_test.h"

namespace matins {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTree[] =
    "trap '' TERM\n"
    "sleep 600 & echo $!\n"
    "setsid sh -c 'echo $$; exec sleep 600' &\n"
    "(setsid sh -c '(sleep 600 & echo $!) &' &)\n"
    "env | grep -c hunter2\n"
    "echo $$\n"
    "wait\n";

class Node {
 public:
  Node(const TempFolder& folder, const std::string& lease, const std::string& give_back,
       const std::string& text) {
    const std::string program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / "execute_test_node";
    int out[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<std::string> words = {program, folder.path(), lease, give_back, text};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    out_ = fdopen(out[0], "r");
  }
  ~Node() {
    Signal(SIGKILL);
    Wait();
    fclose(out_);
  }
  void Signal(int sig) {
    if (!waited_) kill(pid_, sig);
  }
  // Returns when it is stopped.
  void Stop() {
    Signal(SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void Wait() {
    if (!waited_) waitpid(pid_, nullptr, 0);
    waited_ = true;
  }
  std::string Line() {
    char line[256];
    if (fgets(line, sizeof(line), out_) == nullptr) return "";
    return std::string(line, strcspn(line, "\n"));
  }
  std::vector<int> Numbers(int count) {
    std::vector<int> numbers;
    while (count-- > 0) numbers.push_back(atoi(Line().c_str()));
    return numbers;
  }

 private:
  pid_t pid_ = 0;
  bool waited_ = false;
  FILE* out_ = nullptr;
};

// The tree's process ids, out of lines among which the count of leaked passwords is 0.
std::vector<pid_t> Pids(Node& node) {
  std::vector<pid_t> pids;
  for (int number : node.Numbers(5)) {
    if (number != 0) pids.push_back(number);
  }
  EXPECT_EQ(pids.size(), 4u) << "the store's URL reached the job's environment";
  return pids;
}

TEST(NodeDeath, ByKillEndsTheTreeAndGivesTheLeaseBack) {
  TempFolder folder;
  const std::string give_back =
      folder.Script("matins",
                    "#!/bin/sh\ncat > \"$0.in\"\necho \"$*\" > \"$0.args\"\nenv > \"$0.env\"\n"
                    "echo > \"$0.done\"\n");
  Node node(folder, "3600", give_back, kTree);
  const std::vector<pid_t> pids = Pids(node);
  node.Signal(SIGKILL);
  node.Wait();
  // Who gives back has seen everything dead: no waiting from here on.
  AwaitLine(give_back + ".done");
  for (pid_t pid : pids) EXPECT_FALSE(IsRunning(pid));
  const auto lease = ParseGiveBack(ReadWholeFile(give_back + ".in"));
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->store_url, "postgresql://u:hunter2@h/d");
  EXPECT_EQ(lease->job, "recon");
  EXPECT_EQ(lease->period, "2026-10-30");
  EXPECT_EQ(lease->fence, 77);
  EXPECT_EQ(lease->nonce, 1234567890123);
  EXPECT_EQ(ReadWholeFile(give_back + ".args"), "guard-return\n");
  EXPECT_THAT(ReadWholeFile(give_back + ".env"), Not(HasSubstr("hunter2")));
}

TEST(NodeDeath, AStoppedNodesRunIsDeadByItsDeadline) {
  TempFolder folder;
  const std::string give_back = folder.Script("matins", "#!/bin/sh\necho > \"$0.done\"\n");
  Node node(folder, "6", give_back, kTree);
  const std::vector<pid_t> pids = Pids(node);
  node.Signal(SIGSTOP);
  for (pid_t pid : pids) ASSERT_TRUE(AwaitGone(pid));
  // It is stopped, not dead: its lease is its own affair, and it learns what happened.
  node.Signal(SIGCONT);
  EXPECT_EQ(node.Line(), "ended: signal 9 (Killed), stopped: lease lost");
  EXPECT_FALSE(std::filesystem::exists(give_back + ".done"));
}

TEST(NodeDeath, AStoppedNodesRunMayEndInPeaceBeforeIt) {
  TempFolder folder;
  Node node(folder, "3600", "", "sleep 0.2; echo over; exit 3");
  node.Signal(SIGSTOP);
  node.Signal(SIGCONT);
  EXPECT_EQ(node.Line(), "over");
  EXPECT_EQ(node.Line(), "ended: exit 3");
}

// A program's child, and the program itself, whose node and guard were killed: both at once, so
// that neither can do what the other's death asks for.
constexpr char kTwo[] = "sleep 600 & echo $!\necho $$\nwait\n";

std::vector<pid_t> KillWithItsGuard(Node& node) {
  const std::vector<pid_t> pids = node.Numbers(2);
  node.Stop();
  kill(ParentOf(pids[1]), SIGKILL);
  node.Signal(SIGKILL);
  node.Wait();
  return pids;
}

TEST(NodeDeath, TogetherWithItsGuardLeavesATreeThatTheNextNodeEnds) {
  TempFolder folder;
  Node node(folder, "3600", "", kTwo);
  const std::vector<pid_t> pids = KillWithItsGuard(node);
  EXPECT_TRUE(AwaitGone(pids[1])) << "the program dies with its guard";
  EXPECT_TRUE(IsRunning(pids[0])) << "its child does not";
  WatchedRunner next({.folder = folder.path()});
  EXPECT_TRUE(AwaitGone(pids[0]));
}

TEST(NodeDeath, TogetherWithItsGuardLeavesATreeThatANodeBesideItEnds) {
  TempFolder folder;
  WatchedRunner beside({.folder = folder.path()});
  Node node(folder, "3600", "", kTwo);
  for (pid_t pid : KillWithItsGuard(node)) EXPECT_TRUE(AwaitGone(pid));
}

TEST(NodeDeath, LeavesAFolderThatTheNextNodeRemoves) {
  TempFolder folder;
  Node node(folder, "3600", "", "echo up; sleep 600");
  EXPECT_EQ(node.Line(), "up");
  node.Signal(SIGKILL);
  node.Wait();
  auto count = [&] {
    return std::distance(std::filesystem::directory_iterator(folder.path()),
                         std::filesystem::directory_iterator());
  };
  EXPECT_EQ(count(), 1);
  WatchedRunner next({.folder = folder.path()});
  // The next node's own, and, as long as its guard is at work, the dead one's.
  EXPECT_TRUE(AwaitThat([&] { return count() == 1; }));
}

// A child that does not say in its environment whose it is: only its guard can find it.
constexpr char kHidden[] = "env -i sleep 600 & echo $!\necho $$\nwait\n";

TEST(NodeDeath, WithAStoppedGuardEndsTheTreeWhenAnotherNodeIsThere) {
  TempFolder folder;
  const std::string give_back = folder.Script("matins", "#!/bin/sh\necho > \"$0.done\"\n");
  Node node(folder, "3600", give_back, kHidden);
  const std::vector<pid_t> pids = node.Numbers(2);
  const pid_t guard = ParentOf(pids.back());
  ASSERT_GT(guard, 1);
  kill(guard, SIGSTOP);
  ASSERT_TRUE(AwaitState(guard, 'T'));
  node.Signal(SIGKILL);
  node.Wait();
  for (pid_t pid : pids) ASSERT_TRUE(IsRunning(pid));
  WatchedRunner next({.folder = folder.path()});
  for (pid_t pid : pids) EXPECT_TRUE(AwaitGone(pid));
  AwaitLine(give_back + ".done");
  EXPECT_TRUE(AwaitGone(guard));
}

TEST(NodeDeath, WithAGuardThatIsStoppedLaterIsSeenByANodeThatWasThere) {
  TempFolder folder;
  Node node(folder, "3600", "", kHidden);
  const std::vector<pid_t> pids = node.Numbers(2);
  WatchedRunner other({.folder = folder.path()});
  kill(ParentOf(pids.back()), SIGSTOP);
  ASSERT_TRUE(AwaitState(ParentOf(pids.back()), 'T'));
  node.Signal(SIGKILL);
  node.Wait();
  for (pid_t pid : pids) EXPECT_TRUE(AwaitGone(pid));
}

}  // namespace
}  // namespace matins
