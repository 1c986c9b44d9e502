#include "store/sqlite/watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "store/sqlite/folder_test_support.h"

namespace matins::sqlite {
namespace {

using absl::Microseconds;
using absl::Milliseconds;
using absl::Seconds;

constexpr absl::Duration kNow = Seconds(100);

TEST(CommitLooks, NothingIsLookedForWhereNothingWasWritten) {
  CommitLooks looks;
  looks.Looked(kNow, false, false);
  EXPECT_EQ(looks.Next(kNow), absl::InfiniteDuration());
  EXPECT_TRUE(looks.Listens(kNow));
}

TEST(CommitLooks, AWriteIsLookedAtUntilItsCommitIsSeen) {
  CommitLooks looks;
  absl::Duration now = kNow;
  looks.Looked(now, true, false);
  int count = 0;
  for (; now < kNow + Seconds(2); now = looks.Next(now)) {
    EXPECT_FALSE(looks.Listens(now)) << "each page of a large commit would wake it";
    EXPECT_LE(looks.Next(now) - now, std::max(Microseconds(250), now - kNow));
    if (now < kNow + Milliseconds(5)) {
      EXPECT_LE(looks.Next(now) - now, Milliseconds(3));
    }
    looks.Looked(now, false, false);
    ++count;
  }
  EXPECT_LT(count, 25);
  looks.Looked(now, false, true);
  EXPECT_EQ(looks.Next(now + Milliseconds(25)), absl::InfiniteDuration());
}

TEST(CommitLooks, AWriteBesideACommitMayBeOfTheNextOne) {
  CommitLooks looks;
  looks.Looked(kNow, true, false);
  looks.Looked(kNow + Milliseconds(1), true, true);
  EXPECT_LT(looks.Next(kNow + Milliseconds(25)), kNow + Milliseconds(45));
}

TEST(CommitLooks, AWriteWithoutACommitIsForgotten) {
  CommitLooks looks;
  absl::Duration now = kNow;
  looks.Looked(now, true, false);
  for (int i = 0; i < 100 && looks.Next(now) != absl::InfiniteDuration(); ++i) {
    now = looks.Next(now);
    looks.Looked(now, false, false);
  }
  EXPECT_EQ(looks.Next(now), absl::InfiniteDuration());
  EXPECT_LT(now, kNow + Seconds(21));
}

TEST(CommitLooks, WhoWritesAllTheTimeIsLookedAtNowAndThen) {
  CommitLooks looks;
  looks.Looked(kNow, true, true);
  EXPECT_EQ(looks.Next(kNow), kNow + Milliseconds(25));
  looks.Looked(kNow, false, true);
  EXPECT_EQ(looks.Next(kNow), kNow + Milliseconds(25));
  EXPECT_FALSE(looks.Listens(kNow));
  EXPECT_TRUE(looks.Listens(kNow + Milliseconds(25)));
}

class WatchedFile : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    path_ = folder_ + "/file";
  }
  void Write() {
    const int fd = open(path_.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, "x", 1), 1);
    close(fd);
  }

  std::string path_;
};

TEST_F(WatchedFile, AWriteEndsAWaitThatListens) {
  Write();
  WriteWatch watch(path_);
  watch.Listen();
  ASSERT_TRUE(watch.listening());
  EXPECT_FALSE(watch.TakeTouched());
  std::thread other([&] { Write(); });
  const absl::Time before = absl::Now();
  watch.Wait(absl::Minutes(5), true);
  other.join();
  EXPECT_LT(absl::Now() - before, absl::Minutes(4));
  EXPECT_TRUE(watch.TakeTouched());
  EXPECT_FALSE(watch.TakeTouched());
}

TEST_F(WatchedFile, ARingEndsEachWaitOnce) {
  WriteWatch watch(path_);
  watch.Ring();
  const absl::Time before = absl::Now();
  watch.Wait(absl::Minutes(5), false);
  EXPECT_LT(absl::Now() - before, absl::Minutes(4));
  watch.Wait(Milliseconds(1), true);  // it was taken
  EXPECT_GE(absl::Now() - before, Milliseconds(1));
}

TEST_F(WatchedFile, AFileThatComesAnewIsListenedToAnew) {
  WriteWatch watch(path_);
  watch.Listen();
  EXPECT_FALSE(watch.listening());
  Write();
  watch.Listen();
  EXPECT_TRUE(watch.listening());
  unlink(path_.c_str());
  watch.Wait(absl::Minutes(5), true);
  EXPECT_TRUE(watch.TakeTouched());
  EXPECT_FALSE(watch.listening());
  Write();
  watch.Listen();
  Write();
  EXPECT_TRUE(watch.TakeTouched());
}

}  // namespace
}  // namespace matins::sqlite
