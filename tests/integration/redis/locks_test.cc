#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lease/redis_locks.h"
#include "tests/support/assert_ok.h"
#include "tests/support/redis_server.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(200);

class RedisLocksTest : public ::testing::Test {
 protected:
  void SetUp() override { Serve({}); }

  void Serve(const testing::RedisServer::Options& options) {
    server_ = nullptr;
    auto server = testing::RedisServer::Start(options);
    ASSERT_OK(server.status());
    server_ = *std::move(server);
    locks_ = Open(server_->url());
  }

  static std::unique_ptr<RedisLocks> Open(const std::string& text) {
    auto url = ParseRedisUrl(text);
    EXPECT_TRUE(url.ok()) << url.status();
    return std::make_unique<RedisLocks>(*url, SystemClock());
  }

  RedisHolding Holding(const std::string& key, absl::string_view who = "me") {
    return {key, RedisLocks::NewValue(who, random_), absl::Seconds(30)};
  }

  RedisTaken Take(const RedisHolding& holding) { return Take(*locks_, holding); }
  static RedisTaken Take(RedisLocks& locks, const RedisHolding& holding) {
    const auto taken = locks.Take({holding}, kPatience);
    EXPECT_TRUE(taken.ok()) << taken.status();
    return taken.ok() ? (*taken)[0] : RedisTaken{};
  }
  bool Renew(const RedisHolding& holding) { return (*locks_->Renew({holding}, kPatience))[0].kept; }
  bool Release(const RedisHolding& holding) {
    return (*locks_->Release({holding}, kPatience))[0].kept;
  }
  // The lease ends, as if its time had passed.
  void EndLease(const std::string& key) { server_->Ask({"DEL", "matins:lock:" + key}); }

  SystemRandom random_;
  std::unique_ptr<testing::RedisServer> server_;
  std::unique_ptr<RedisLocks> locks_;
};

TEST_F(RedisLocksTest, OneHolderAtATimeAndFencesRise) {
  const RedisHolding mine = Holding("night", "host/1"), theirs = Holding("night", "host/2");
  const RedisTaken taken = Take(mine);
  EXPECT_TRUE(taken.taken);
  const RedisTaken refused = Take(theirs);
  EXPECT_FALSE(refused.taken);
  EXPECT_EQ(refused.holder.who, "host/1");
  EXPECT_EQ(refused.holder.fence, taken.fence);
  EXPECT_GT(refused.holder.left, absl::Seconds(20));
  EXPECT_LE(refused.holder.left, absl::Seconds(30));
  EXPECT_TRUE(Release(mine));
  const RedisTaken next = Take(theirs);
  EXPECT_TRUE(next.taken);
  EXPECT_GT(next.fence, taken.fence);
}

TEST_F(RedisLocksTest, TheValueIsOfOneHoldingAlone) {
  EXPECT_NE(Holding("night").value, Holding("night").value);
  const RedisHolding mine = Holding("night", "host/1");
  EXPECT_THAT(mine.value, StartsWith("host/1:"));
  ASSERT_TRUE(Take(mine).taken);
  EXPECT_EQ(server_->Ask({"GET", "matins:lock:night"}), mine.value);
  // The same owner's other holding is another.
  EXPECT_FALSE(Take(Holding("night", "host/1")).taken);
}

TEST_F(RedisLocksTest, RenewAndReleaseTouchOnlyTheirOwn) {
  const RedisHolding mine = Holding("night"), theirs = Holding("night");
  ASSERT_TRUE(Take(mine).taken);
  EndLease("night");
  EXPECT_FALSE(Renew(mine));  // never revives
  EXPECT_EQ(server_->Ask({"EXISTS", "matins:lock:night"}), "0");
  ASSERT_TRUE(Take(theirs).taken);
  EXPECT_FALSE(Renew(mine));
  EXPECT_FALSE(Release(mine));
  EXPECT_EQ(server_->Ask({"GET", "matins:lock:night"}), theirs.value);
  const auto told = locks_->Renew({mine}, kPatience);
  ASSERT_OK(told.status());
  EXPECT_EQ((*told)[0].now_held_by, "me");
  EXPECT_TRUE(Renew(theirs));
}

TEST_F(RedisLocksTest, ARenewalGivesAWholeLeaseAgainAndIsCounted) {
  RedisHolding mine = Holding("night", "host/1");
  mine.ttl = absl::Seconds(40);
  const RedisTaken taken = Take(mine);
  server_->Ask({"PEXPIRE", "matins:lock:night", "5000"});
  ASSERT_TRUE(Renew(mine));
  ASSERT_TRUE(Renew(mine));
  const auto listed = locks_->List(kPatience);
  ASSERT_OK(listed.status());
  ASSERT_THAT(*listed, SizeIs(1));
  const RedisHolder& holder = (*listed)[0];
  EXPECT_EQ(holder.key, "night");
  EXPECT_EQ(holder.who, "host/1");
  EXPECT_EQ(holder.fence, taken.fence);
  EXPECT_EQ(holder.renewals, 2);
  EXPECT_GT(holder.left, absl::Seconds(20));
  EXPECT_GT(holder.until, holder.since + absl::Seconds(20));
}

TEST_F(RedisLocksTest, ACallWhoseAnswerWasLostIsAskedAgainAndTakesOnce) {
  const RedisHolding mine = Holding("night");
  const RedisTaken first = Take(mine);
  const RedisTaken again = Take(mine);
  EXPECT_TRUE(again.taken);
  EXPECT_EQ(again.fence, first.fence);
  RedisHolding plain = Holding("plain");
  EXPECT_TRUE((*locks_->TakeUnfenced({plain}, kPatience))[0].taken);
  EXPECT_TRUE((*locks_->TakeUnfenced({plain}, kPatience))[0].taken);
}

TEST_F(RedisLocksTest, UnfencedIsThePlainSetAndSaysWhoHasIt) {
  const RedisHolding mine = Holding("night", "host/1");
  ASSERT_TRUE((*locks_->TakeUnfenced({mine}, kPatience))[0].taken);
  EXPECT_EQ(server_->Ask({"KEYS", "*"}), "matins:lock:night");
  const auto refused =
      locks_->TakeUnfenced({Holding("night", "host/2"), Holding("other")}, kPatience);
  ASSERT_OK(refused.status());
  EXPECT_FALSE((*refused)[0].taken);
  EXPECT_EQ((*refused)[0].holder.who, "host/1");
  EXPECT_TRUE((*refused)[1].taken);
  EXPECT_TRUE(Renew(mine));
  EXPECT_TRUE(Release(mine));
}

TEST_F(RedisLocksTest, ManyInOneCallAreAnsweredInOrder) {
  std::vector<RedisHolding> all;
  for (int i = 0; i < 40; ++i) all.push_back(Holding(absl::StrCat("k", i % 30)));
  const auto taken = locks_->Take(all, kPatience);
  ASSERT_OK(taken.status());
  for (int i = 0; i < 40; ++i) EXPECT_EQ((*taken)[i].taken, i < 30) << i;
  const auto released = locks_->Release(all, kPatience);
  ASSERT_OK(released.status());
  for (int i = 0; i < 40; ++i) EXPECT_EQ((*released)[i].kept, i < 30) << i;
}

TEST_F(RedisLocksTest, ScriptsAreLoadedOnceAndAgainAfterAFlush) {
  const RedisHolding mine = Holding("night");
  ASSERT_TRUE(Take(mine).taken);
  const auto loads = [&] {
    const std::string stats = server_->Ask({"INFO", "commandstats"});
    const size_t at = stats.find("cmdstat_script|load:calls=");
    return at == std::string::npos ? std::string("0") : stats.substr(at + 26, 1);
  };
  EXPECT_EQ(loads(), "1");
  EXPECT_FALSE(Take(Holding("night")).taken);
  EXPECT_EQ(loads(), "1");
  server_->Ask({"SCRIPT", "FLUSH"});
  EXPECT_FALSE(Take(Holding("night")).taken);
  EXPECT_EQ(loads(), "2");
  // In the midst of a pipeline: what was refused is done, once.
  ASSERT_TRUE(Renew(mine));
  server_->Ask({"SCRIPT", "FLUSH"});
  const auto kept = locks_->Renew({mine, Holding("other"), mine}, kPatience);
  ASSERT_OK(kept.status());
  EXPECT_TRUE((*kept)[0].kept);
  EXPECT_FALSE((*kept)[1].kept);
  EXPECT_TRUE((*kept)[2].kept);
  EXPECT_EQ((*locks_->List(kPatience))[0].renewals, 3);
}

TEST_F(RedisLocksTest, FencesRiseThoughTheServerForgets) {
  const RedisHolding mine = Holding("night");
  int64_t last = Take(mine).fence;
  server_->Ask({"FLUSHALL"});
  EXPECT_FALSE(Renew(mine));
  const RedisTaken flushed = Take(mine);
  EXPECT_TRUE(flushed.taken);
  EXPECT_GT(flushed.fence, last);
  last = flushed.fence;
  server_->Crash();
  ASSERT_OK(server_->Restart());
  // The connection that it had is of no use, and says so once.
  EXPECT_TRUE(IsInDoubt(locks_->Renew({mine}, kPatience).status()));
  EXPECT_FALSE(Renew(mine));
  EXPECT_GT(Take(mine).fence, last);
  // A clock that was set back, but the counter is there.
  server_->Ask({"HSET", "matins:fence:night", "fence", "8000000000000000"});
  EndLease("night");
  EXPECT_EQ(Take(Holding("night")).fence, 8'000'000'000'000'001);
}

TEST_F(RedisLocksTest, AnotherTypeAtTheKeyIsToldAndNothingIsTaken) {
  server_->Ask({"RPUSH", "matins:lock:night", "x"});
  const RedisHolding mine = Holding("night");
  const RedisTaken taken = Take(mine);
  EXPECT_FALSE(taken.taken);
  EXPECT_EQ(taken.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.status.message()),
              AllOf(HasSubstr("WRONGTYPE"), HasSubstr("prefix")));
  const auto door = locks_->TakeUnfenced({mine}, kPatience);
  ASSERT_OK(door.status());
  EXPECT_FALSE((*door)[0].taken);
  EXPECT_EQ((*door)[0].status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE((*locks_->Renew({mine}, kPatience))[0].status.ok());
  EXPECT_THAT(*locks_->List(kPatience), IsEmpty());
  EXPECT_EQ(locks_->Break("night", "me", "why", kPatience).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server_->Ask({"LLEN", "matins:lock:night"}), "1");

  server_->Ask({"RPUSH", "matins:fence:other", "x"});
  EXPECT_FALSE(Take(Holding("other")).status.ok());
  EXPECT_EQ(server_->Ask({"EXISTS", "matins:lock:other"}), "0");
}

TEST_F(RedisLocksTest, BreakingIsRecordedAndBurnsTheFence) {
  const RedisHolding mine = Holding("night", "host/1");
  const RedisTaken taken = Take(mine);
  const auto broken = locks_->Break("night", "cli:alice@host", "it hangs", kPatience);
  ASSERT_OK(broken.status());
  EXPECT_EQ(broken->who, "host/1");
  EXPECT_EQ(broken->fence, taken.fence);
  EXPECT_FALSE(Renew(mine));
  EXPECT_GT(Take(Holding("night")).fence, taken.fence + 1);
  EXPECT_THAT(server_->Ask({"XRANGE", "matins:events", "-", "+"}),
              AllOf(HasSubstr("night"), HasSubstr("cli:alice@host"), HasSubstr("it hangs"),
                    HasSubstr("host/1"), HasSubstr(absl::StrCat(taken.fence))));
  EXPECT_EQ(locks_->Break("nobody's", "a", "b", kPatience).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RedisLocksTest, StepsGoForwardUnderTheLeaseAlone) {
  const RedisHolding mine = Holding("load"), theirs = Holding("load");
  EXPECT_EQ(locks_->ReadStep("load", kPatience)->number, 0);
  ASSERT_TRUE(Take(mine).taken);
  const auto write = [&](const RedisHolding& holding, int64_t number) {
    return locks_
        ->WriteStep(holding, {number, absl::StrCat("at ", number)}, absl::Hours(1), kPatience)
        .code();
  };
  EXPECT_EQ(write(mine, 1), absl::StatusCode::kOk);
  EXPECT_EQ(write(mine, 1), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(write(mine, 12), absl::StatusCode::kOk);
  EXPECT_EQ(write(theirs, 13), absl::StatusCode::kFailedPrecondition);
  EndLease("load");
  EXPECT_EQ(write(mine, 13), absl::StatusCode::kFailedPrecondition);
  const auto step = locks_->ReadStep("load", kPatience);
  ASSERT_OK(step.status());
  EXPECT_EQ(step->number, 12);
  EXPECT_EQ(step->data, "at 12");
}

TEST_F(RedisLocksTest, ListsManyAmongOthersKeys) {
  for (int i = 0; i < 50; ++i) server_->Ask({"SET", absl::StrCat("theirs", i), "x"});
  std::vector<RedisHolding> all;
  for (int i = 0; i < 3000; ++i) all.push_back(Holding(absl::StrCat("k", i)));
  ASSERT_OK(locks_->Take(all, kPatience).status());
  EXPECT_THAT(*locks_->List(kPatience), SizeIs(3000));
  // A prefix is no pattern.
  EXPECT_THAT(*Open(server_->url() + "?prefix=matin*")->List(kPatience), IsEmpty());
}

TEST_F(RedisLocksTest, ACallHasAnEndThoughTheServerStandsStill) {
  const RedisHolding mine = Holding("night");
  ASSERT_TRUE(Take(mine).taken);
  server_->Pause();
  EXPECT_TRUE(IsInDoubt(locks_->Renew({mine}, kShort).status()));
  // A new connection is taken by the kernel alone, and nobody answers on it.
  EXPECT_TRUE(absl::IsUnavailable(locks_->Renew({mine}, kShort).status()));
  server_->Continue();
  EXPECT_TRUE(Renew(mine));
}

TEST_F(RedisLocksTest, ASleepOfTheServerIsWaitedForNoLonger) {
  const RedisHolding mine = Holding("night");
  ASSERT_TRUE(Take(mine).taken);
  auto other = Open(server_->url());
  ASSERT_TRUE(Take(*other, Holding("else")).taken);
  // Its answer comes when it has slept.
  testing::ChildProcess::Options sleeper;
  sleeper.argv = {"/usr/bin/redis-cli", "-p", absl::StrCat(server_->port()), "DEBUG", "SLEEP", "3"};
  sleeper.output = server_->folder() + "/sleeper";
  auto started = testing::ChildProcess::Start(sleeper);
  ASSERT_OK(started.status());
  absl::Status status;
  while (status.ok() && started->Running())
    status = other->Renew({Holding("x")}, absl::Milliseconds(100)).status();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Renew(mine));  // within its patience, it wakes up
}

TEST_F(RedisLocksTest, NoServerIsUnavailable) {
  server_->Crash();
  const auto taken = Open(server_->url())->Take({Holding("night")}, kPatience);
  EXPECT_TRUE(absl::IsUnavailable(taken.status())) << taken.status();
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(absl::StrCat(server_->port())));
}

TEST_F(RedisLocksTest, APasswordIsGivenAndAsked) {
  Serve({.settings = {"--requirepass", "hush"}, .password = "hush"});
  const auto without = locks_->Take({Holding("night")}, kPatience);
  EXPECT_EQ(without.status().code(), absl::StatusCode::kPermissionDenied) << without.status();
  EXPECT_THAT(std::string(without.status().message()), HasSubstr("password_file"));
  const std::string place = absl::StrCat("127.0.0.1:", server_->port());
  auto wrong = Open("redis://:tiger@" + place);
  const absl::Status refused = wrong->Take({Holding("night")}, kPatience).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("tiger")));
  EXPECT_TRUE(Take(*Open("redis://:hush@" + place), Holding("night")).taken);
}

TEST_F(RedisLocksTest, AUserOfTheAclNeedsOurKeysAndScriptsAlone) {
  server_->Ask({"ACL", "SETUSER", "night", "on", ">hush", "~matins:*", "+@all", "-@dangerous"});
  const std::string url = absl::StrCat("redis://night:hush@127.0.0.1:", server_->port());
  auto locks = Open(url);
  const RedisHolding mine = Holding("night");
  EXPECT_TRUE(Take(*locks, mine).taken);
  EXPECT_TRUE((*locks->Renew({mine}, kPatience))[0].kept);
  EXPECT_THAT(*locks->List(kPatience), SizeIs(1));
  EXPECT_TRUE((*locks->Release({mine}, kPatience))[0].kept);
  const RedisTaken elsewhere = Take(*Open(url + "?prefix=other"), mine);
  EXPECT_EQ(elsewhere.status.code(), absl::StatusCode::kPermissionDenied) << elsewhere.status;
}

TEST_F(RedisLocksTest, DatabasesAndPrefixesAreApart) {
  ASSERT_TRUE(Take(Holding("night")).taken);
  EXPECT_TRUE(Take(*Open(server_->url() + "/1"), Holding("night")).taken);
  EXPECT_TRUE(Take(*Open(server_->url() + "?prefix=other"), Holding("night")).taken);
  EXPECT_FALSE(Take(*Open(server_->url() + "/0?prefix=matins"), Holding("night")).taken);
}

TEST_F(RedisLocksTest, AReplicaIsNoServerToLockAt) {
  auto replica = testing::RedisServer::Start(
      {.settings = {"--replicaof", absl::StrCat("127.0.0.1 ", server_->port())}});
  ASSERT_OK(replica.status());
  const auto taken = Open((*replica)->url())->Take({Holding("night")}, kPatience);
  EXPECT_TRUE(absl::IsUnavailable(taken.status())) << taken.status();
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr("primary"));
}

TEST_F(RedisLocksTest, APrimaryThatBecomesAReplicaIsLeft) {
  ASSERT_TRUE(Take(Holding("night")).taken);
  server_->Ask({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_TRUE(absl::IsUnavailable(Take(Holding("other")).status));
  EXPECT_TRUE(absl::IsUnavailable(locks_->Take({Holding("other")}, kPatience).status()));
  server_->Ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(Take(Holding("other")).taken);
}

TEST_F(RedisLocksTest, SentinelsAreAskedWhereThePrimaryIs) {
  auto second = testing::RedisServer::Start();
  ASSERT_OK(second.status());
  auto sentinel = testing::RedisServer::Start({.sentinel = true});
  ASSERT_OK(sentinel.status());
  const auto monitor = [&](int port) {
    (*sentinel)->Ask({"SENTINEL", "REMOVE", "night"});
    ASSERT_THAT(
        (*sentinel)->Ask({"SENTINEL", "MONITOR", "night", "127.0.0.1", absl::StrCat(port), "1"}),
        "OK");
  };
  monitor(server_->port());
  // The first of the two is not there.
  auto locks =
      Open(absl::StrCat("redis+sentinel://127.0.0.1:1,127.0.0.1:", (*sentinel)->port(), "/night"));
  ASSERT_TRUE(Take(*locks, Holding("night")).taken);
  EXPECT_EQ(server_->Ask({"EXISTS", "matins:lock:night"}), "1");
  monitor((*second)->port());
  server_->Crash();
  EXPECT_FALSE(locks->Take({Holding("night")}, kPatience).ok());
  EXPECT_TRUE(Take(*locks, Holding("night")).taken);
  EXPECT_EQ((*second)->Ask({"EXISTS", "matins:lock:night"}), "1");
  const auto unknown =
      Open(absl::StrCat("redis+sentinel://127.0.0.1:", (*sentinel)->port(), "/day"))
          ->Take({Holding("night")}, kPatience);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("'day'"));
  const auto plain = Open((*sentinel)->url())->Take({Holding("night")}, kPatience);
  EXPECT_THAT(std::string(plain.status().message()), HasSubstr("redis+sentinel://"));
}

TEST_F(RedisLocksTest, TlsIsSpokenToAServerWhoseCertificateIsItsOwn) {
  Serve({.tls = true});
  const std::string place = absl::StrCat(":", server_->port());
  const std::string ca = "?tls_ca=" + server_->ca();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    auto locks = Open(absl::StrCat("rediss://", host, place, ca));
    std::vector<RedisHolding> many;  // more than a record holds
    for (int i = 0; i < 1000; ++i) many.push_back(Holding(absl::StrCat(host, i)));
    const auto taken = locks->Take(many, kPatience);
    ASSERT_OK(taken.status());
    for (const RedisTaken& one : *taken) EXPECT_TRUE(one.taken);
  }
  const absl::Status untrusted =
      Open(absl::StrCat("rediss://127.0.0.1", place))->Take({Holding("x")}, kPatience).status();
  EXPECT_EQ(untrusted.code(), absl::StatusCode::kPermissionDenied) << untrusted;
  EXPECT_THAT(std::string(untrusted.message()), HasSubstr("tls_ca"));
  const absl::Status plain =
      Open(absl::StrCat("redis://127.0.0.1", place))->Take({Holding("x")}, kPatience).status();
  EXPECT_FALSE(plain.ok());
}

}  // namespace
}  // namespace matins
