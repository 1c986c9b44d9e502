// Guards that are none, and guards that do not go: played by processes of the test that hold a
// record's lock. Real ones: node_death_test.
#include "execute/dead_nodes.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "absl/cleanup/cleanup.h"
#include "execute/process_runner_test.h"
#include "execute/run_folder.h"

namespace matins {
namespace {

constexpr absl::Duration kGrace = absl::Seconds(5);

// A dead node's folder with one record, held by a shell that is called `name`, is stopped, and has
// a child below it.
class Left {
 public:
  explicit Left(const char* name) : folder_(parent_.path() + "/matins-node-dead") {
    std::filesystem::create_directories(folder_ + "/7");
    const std::ofstream lock(folder_ + "/lock");
    const std::string record = GuardRecordOf(folder_ + "/7");
    const std::string child = parent_.File("child");
    const std::string text = absl::StrCat("sleep 600 & echo $! > ", child, "; wait");
    pid_ = fork();
    if (pid_ == 0) {
      // Not closed by the shell: the lock stays while it is there.
      const int fd = open(record.c_str(), O_RDWR | O_CREAT, 0600);
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      if (fd < 0 || fcntl(fd, F_SETLK, &lock) != 0) _exit(1);
      execl("/bin/sh", name, "-c", text.c_str(), static_cast<char*>(nullptr));
      _exit(1);
    }
    child_ = atoi(AwaitLine(child).c_str());
    kill(pid_, SIGSTOP);
    EXPECT_TRUE(AwaitState(pid_, 'T'));
  }
  ~Left() {
    if (child_ > 1) kill(child_, SIGKILL);
    End();
  }
  void End() {
    if (pid_ > 1) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  bool IsStopped() const { return StateOf(pid_)[0] == "T"; }
  bool FolderIsThere() const { return std::filesystem::exists(folder_); }
  const std::string& parent() const { return parent_.path(); }
  const std::string& folder() const { return folder_; }
  pid_t child() const { return child_; }

 private:
  TempFolder parent_;
  std::string folder_;
  pid_t pid_ = 0;
  pid_t child_ = 0;
};

TEST(DeadNodes, WakeAGuardAndGiveItItsGrace) {
  Left left("matins-guard recon");
  DeadNodes dead(left.parent(), kGrace);
  EXPECT_LT(dead.Look(absl::Hours(1)), kGrace);
  EXPECT_FALSE(left.IsStopped());
  dead.Look(absl::Hours(1) + kGrace - absl::Milliseconds(1));
  EXPECT_TRUE(IsRunning(left.child()));
  EXPECT_TRUE(left.FolderIsThere());
}

TEST(DeadNodes, KillTheTreeOfAGuardThatDoesNotGo) {
  Left left("matins-guard recon");
  DeadNodes dead(left.parent(), kGrace);
  dead.Look(absl::Hours(1));
  dead.Look(absl::Hours(1) + kGrace);
  EXPECT_TRUE(AwaitGone(left.child()));
  left.End();
  dead.Look(absl::Hours(2));
  EXPECT_FALSE(left.FolderIsThere());
}

TEST(DeadNodes, LeaveAStrangerAloneWhateverItHolds) {
  Left left("sleeper");
  DeadNodes dead(left.parent(), kGrace);
  dead.Look(absl::Hours(1));
  dead.Look(absl::Hours(2));
  EXPECT_TRUE(left.IsStopped());
  EXPECT_TRUE(IsRunning(left.child()));
}

TEST(DeadNodes, LeaveTheGuardsOfALivingNodeAlone) {
  Left left("matins-guard recon");
  DeadNodes dead(left.parent(), kGrace);
  {
    const int fd = LockNodeFolder(left.folder());
    ASSERT_GE(fd, 0);
    const absl::Cleanup unlock = [fd] { close(fd); };
    dead.Look(absl::Hours(1));
    dead.Look(absl::Hours(2));
    EXPECT_TRUE(left.IsStopped());
  }
  dead.Look(absl::Hours(3));
  EXPECT_FALSE(left.IsStopped());
}

TEST(DeadNodes, RemoveAFolderWhoseRecordNobodyHolds) {
  TempFolder parent;
  const std::string folder = parent.File("matins-node-dead");
  std::filesystem::create_directories(folder + "/7");
  for (const char* name : {"/lock", "/7.guard", "/7/socket"}) std::ofstream(folder + name);
  DeadNodes(parent.path()).Look(absl::Hours(1));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace matins
