#include "lease/door.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/assert_ok.h"
#include "tests/support/redis_server.h"

namespace matins {
namespace {

// Long enough for no renewal to come by itself.
constexpr absl::Duration kTtl = absl::Minutes(10);
// That of a door which is to be told something, on whatever machine; with its own it may take a
// slow answer for none.
constexpr absl::Duration kPatience = absl::Minutes(1);

class DoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = testing::RedisServer::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    mine_ = Open("host/1");
    theirs_ = Open("host/2");
  }

  std::unique_ptr<Door> Open(absl::string_view who, absl::Duration patience = kPatience) const {
    return OpenRedisDoor(*ParseRedisUrl(server_->url()), who, SystemClock(), patience);
  }

  static DoorAnswer Enter(Door& door, const std::string& key, absl::Duration ttl = kTtl) {
    return door.Enter({{key, ttl}})[0];
  }
  // Until somebody else's release has reached the server.
  void AwaitFree(const std::string& key) const {
    while (server_->Ask({"EXISTS", "matins:lock:" + key}) != "0") {
    }
  }

  std::unique_ptr<testing::RedisServer> server_;
  std::unique_ptr<Door> mine_, theirs_;
};

TEST_F(DoorTest, IsClosedToOthersAndOpenToOurselvesUntilWeLeave) {
  EXPECT_TRUE(Enter(*mine_, "job/recon").open);
  EXPECT_TRUE(Enter(*mine_, "job/recon").open);
  const DoorAnswer closed = Enter(*theirs_, "job/recon");
  EXPECT_FALSE(closed.open);
  EXPECT_EQ(closed.held_by, "host/1");
  EXPECT_GT(closed.left, absl::Minutes(5));
  EXPECT_TRUE(Enter(*theirs_, "job/other").open);
  mine_->Leave({"job/recon", "job/nobodys"});
  AwaitFree("job/recon");
  EXPECT_TRUE(Enter(*theirs_, "job/recon").open);
}

TEST_F(DoorTest, IsOpenAgainAtOnceToOneWhoJustLeft) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Enter(*mine_, "job/recon").open) << i;
    mine_->Leave({"job/recon"});
  }
}

TEST_F(DoorTest, KeepsWhatItEnteredWhileItIsThere) {
  ASSERT_TRUE(Enter(*mine_, "job/recon", absl::Seconds(4)).open);
  const std::string value = server_->Ask({"GET", "matins:lock:job/recon"});
  // Two leases later it is the same holding.
  const absl::Duration until = SystemClock().BootNow() + absl::Seconds(9);
  while (SystemClock().BootNow() < until) {
    ASSERT_EQ(server_->Ask({"GET", "matins:lock:job/recon"}), value);
  }
  mine_ = nullptr;
  AwaitFree("job/recon");
}

TEST_F(DoorTest, WhatTheServerForgotIsNotPutBackOverAnother) {
  ASSERT_TRUE(Enter(*mine_, "job/recon", absl::Milliseconds(1500)).open);
  server_->Ask({"FLUSHALL"});
  server_->Ask({"SET", "matins:lock:job/recon", "host/9:x"});
  const absl::Duration until = SystemClock().BootNow() + absl::Seconds(1);
  while (SystemClock().BootNow() < until) {
    ASSERT_EQ(server_->Ask({"GET", "matins:lock:job/recon"}), "host/9:x");
  }
  mine_->Leave({"job/recon"});
  EXPECT_EQ(Enter(*theirs_, "job/recon").held_by, "host/9");
}

TEST_F(DoorTest, IsOpenWhereItCannotTell) {
  theirs_ = Open("host/2", kDoorPatience);
  ASSERT_TRUE(Enter(*mine_, "job/recon").open);
  server_->Ask({"RPUSH", "matins:lock:job/list", "x"});
  EXPECT_TRUE(Enter(*theirs_, "job/list").open);  // another type at the key
  while (Enter(*theirs_, "job/recon").open) {
  }
  server_->Pause();
  EXPECT_TRUE(Enter(*theirs_, "job/recon").open);  // no answer
  EXPECT_TRUE(Enter(*theirs_, "job/recon").open);  // and nobody waits for it a second time
  server_->Continue();
  while (Enter(*theirs_, "job/recon").open) {
  }  // it is asked again
  server_->Crash();
  EXPECT_TRUE(Enter(*theirs_, "job/recon").open);
  EXPECT_TRUE(OpenRedisDoor(*ParseRedisUrl("redis://nowhere.invalid"), "host/3", SystemClock())
                  ->Enter({{"job/recon", kTtl}})[0]
                  .open);
}

TEST_F(DoorTest, NeverTakesMoreThanItsPatience) {
  mine_ = Open("host/1", kDoorPatience);
  ASSERT_TRUE(Enter(*mine_, "job/recon").open);
  server_->Pause();
  const absl::Duration begun = SystemClock().BootNow();
  Enter(*mine_, "job/other");
  // A busy machine adds to it; a door that waited for the server would stand here for ever.
  EXPECT_LT(SystemClock().BootNow() - begun, absl::Seconds(20));
  server_->Continue();
}

}  // namespace
}  // namespace matins
