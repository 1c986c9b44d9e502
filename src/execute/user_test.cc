#include "execute/user.h"

#include "execute/process_runner_test.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

// A user that no machine has an entry for; the lookup stands in for the name service.
UserLookup Fixed(UserAccount account) {
  return [account](const std::string&) { return account; };
}

constexpr uint32_t kUid = 47110;

UserAccount Batch() {
  return {
      .name = "batch", .uid = kUid, .gid = kUid + 1, .groups = {kUid + 1, kUid + 2}, .home = "/"};
}

TEST(User, ThatIsUnknownIsToldByName) {
  const auto status = LookUpUser("no-such-user-of-matins").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-user-of-matins"));
  WatchedRunner runner;
  RunRequest request = ShellRun(1, "true");
  request.user = "no-such-user-of-matins";
  runner->Start(std::move(request));
  EXPECT_THAT(std::string(runner.AwaitOf<RunNotStarted>(1).error.message()), HasSubstr("no user"));
}

TEST(User, ThatIsLockedIsRefused) {
  UserAccount account = Batch();
  account.locked = true;
  WatchedRunner runner({.lookup = Fixed(account)});
  RunRequest request = ShellRun(1, "true");
  request.user = "batch";
  runner->Start(std::move(request));
  EXPECT_THAT(std::string(runner.AwaitOf<RunNotStarted>(1).error.message()), HasSubstr("locked"));
}

TEST(User, IsLockedByAMarkBeforeAPasswordOrByItsDate) {
  EXPECT_TRUE(IsLocked("!$y$j9T$abc", -1, 20000));
  EXPECT_TRUE(IsLocked("!!$6$abc", -1, 20000));
  EXPECT_TRUE(IsLocked("*", 19999, 20000));
  EXPECT_FALSE(IsLocked("$y$j9T$abc", -1, 20000));
  EXPECT_FALSE(IsLocked("*", -1, 20000)) << "a service account never had a password";
  EXPECT_FALSE(IsLocked("!", 20001, 20000));
  EXPECT_FALSE(IsLocked("!*", -1, 20000));
}

TEST(User, TheOwnOneNeedsNoLookup) {
  const UserAccount own = OwnUser();
  EXPECT_EQ(own.uid, geteuid());
  EXPECT_TRUE(CheckCanBecome(own).ok());
}

TEST(User, CannotBeAnotherWithoutRoot) {
  if (geteuid() == 0) GTEST_SKIP() << "needs a process that is not root";
  EXPECT_THAT(std::string(CheckCanBecome(Batch()).message()), HasSubstr("as root"));
}

TEST(User, IsBecomeForGood) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  TempFolder folder;
  chmod(folder.path().c_str(), 0711);
  WatchedRunner runner({.folder = folder.path(), .lookup = Fixed(Batch())});
  RunRequest request =
      ShellRun(1,
               "id -u; id -g; id -G; grep -E '^(NoNewPrivs|CapEff|CapPrm)' /proc/self/status; "
               "echo $USER; ls -ld \"${MATINS_SOCKET%%\\?*}\" | cut -c1-10; echo x > /dev/stdout");
  request.user = "batch";
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.output.head,
            "47110\n47111\n47111 47112\n"
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n"
            "batch\nsrw-------\nx\n");
}

TEST(User, ItsTreeIsKilledByAGuardThatStayedRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  WatchedRunner runner({.lookup = Fixed(Batch())});
  RunRequest request =
      ShellRun(1, "setsid sleep 600 & kill -9 $PPID; kill -STOP $PPID; echo alive; wait");
  request.user = "batch";
  request.time_out = Soon(3, 3);
  runner->Start(std::move(request));
  const RunEnded ended = runner.AwaitEnd(1);
  EXPECT_EQ(ended.stopped, StopReason::kTimeOut) << "it must not reach its guard";
  EXPECT_TRUE(ended.tree_dead);
  EXPECT_THAT(ended.output.head, HasSubstr("alive"));
}

}  // namespace
}  // namespace matins
