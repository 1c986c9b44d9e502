// Behind pgbouncer in transaction mode, and the way to hear of changes.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/postgresql/connection.h"
#include "store/postgresql/url.h"
#include "tests/integration/stage.h"
#include "tests/support/pgbouncer_server.h"
#include "tests/support/postgres_server.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

// C125: two nodes behind a pooler with few server connections; each period is started once.
TEST(Pooler, TwoNodesBehindItStartEachPeriodOnce) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PgbouncerServer::Start(TestPostgresPort(), 2));
  const std::string url = OnPort(TestPostgresUrl(), pool->port());
  ASSERT_OK_AND_ASSIGN(Stage main, Stage::Open(url));
  ASSERT_OK(main.Apply("a"));
  ASSERT_OK(main.Plan("a", 0, 300));
  std::vector<std::string> started[2];
  const auto drain = [&](int id) {
    auto stage = Stage::Open(url);
    ASSERT_TRUE(stage.ok()) << stage.status();
    int64_t nonce = id;
    for (int idle = 0; idle < 3;) {
      StartRequest request;
      request.node.name = absl::StrCat("n", id);
      request.nonce = (nonce += 2);
      request.also_due = 10;
      const auto answers = stage->store->Start(request);
      ASSERT_TRUE(answers.ok()) << answers.status();
      int count = 0;
      for (const StartAnswer& a : answers->rows) {
        if (!a.claim) continue;
        ++count;
        started[id].push_back(a.key.period);
      }
      idle = count == 0 ? idle + 1 : 0;
    }
  };
  std::thread one(drain, 0), two(drain, 1);
  one.join();
  two.join();
  std::set<std::string> all(started[0].begin(), started[0].end());
  all.insert(started[1].begin(), started[1].end());
  EXPECT_EQ(started[0].size() + started[1].size(), 300u);
  EXPECT_EQ(all.size(), 300u);
}

TEST(Pooler, IsNoticed) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PgbouncerServer::Start(TestPostgresPort()));
  const std::string url = TestPostgresUrl();
  for (const bool pooled : {false, true}) {
    ASSERT_OK_AND_ASSIGN(const auto parsed,
                         postgresql::ParseUrl(pooled ? OnPort(url, pool->port()) : url));
    postgresql::Connection connection(
        {parsed.conninfo, parsed.description, absl::Seconds(5), absl::Seconds(1)});
    ASSERT_OK_AND_ASSIGN(const bool noticed, connection.IsPooled());
    EXPECT_EQ(noticed, pooled);
  }
}

// Waits in a thread until a change is told; false where it took the whole time.
bool HearsOf(Store& listener, const std::function<void()>& change) {
  listener.AwaitChange(absl::ZeroDuration());  // begins to listen
  const absl::Duration patience = absl::Seconds(60);
  absl::Duration waited;
  std::thread waiter([&] {
    const absl::Time from = absl::Now();
    listener.AwaitChange(patience);
    waited = absl::Now() - from;
  });
  change();
  waiter.join();
  return waited < patience / 2;
}

TEST(Listening, APlanWakesTheOtherNode) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage planner, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(url));
  ASSERT_OK(planner.Apply("a"));
  EXPECT_TRUE(HearsOf(*other.store, [&] { ASSERT_OK(planner.Plan("a", 0, 1)); }));
}

TEST(Listening, GoesOnItsOwnWayBesideAPooler) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PgbouncerServer::Start(TestPostgresPort()));
  const std::string direct = TestPostgresUrl();
  const std::string plain = direct.substr(0, direct.find('?'));
  const std::string url =
      absl::StrCat(OnPort(direct, pool->port()),
                   "&listen_url=", absl::StrReplaceAll(plain, {{":", "%3A"}, {"/", "%2F"}}));
  ASSERT_OK_AND_ASSIGN(Stage planner, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(url));
  ASSERT_OK(planner.Apply("a"));
  EXPECT_TRUE(HearsOf(*other.store, [&] { ASSERT_OK(planner.Plan("a", 0, 1)); }));
}

// C127: its connection is killed; the next wait makes a new one, and hears again.
TEST(Listening, ADeadConnectionIsMadeAnew) {
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start());
  const std::string url = server->FreshSchemaUrl();
  ASSERT_OK_AND_ASSIGN(Stage planner, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(url));
  ASSERT_OK(planner.Apply("a"));
  other.store->AwaitChange(absl::ZeroDuration());
  ASSERT_OK_AND_ASSIGN(
      const std::string killed,
      PostgresQuery(server->port(),
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity where query "
                    "like 'listen%'"));
  EXPECT_NE(killed, "0");
  other.store->AwaitChange(absl::Milliseconds(100));  // finds it dead; it is no busy loop
  EXPECT_TRUE(HearsOf(*other.store, [&] { ASSERT_OK(planner.Plan("a", 0, 1)); }));
}

// Who hears may rest; who does not has to look.
TEST(Listening, SaysWhetherItHears) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PgbouncerServer::Start(TestPostgresPort()));
  const std::string direct = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage planner, Stage::Open(direct));
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(direct));
  ASSERT_OK_AND_ASSIGN(Stage pooled, Stage::Open(OnPort(direct, pool->port())));
  ASSERT_OK(planner.Apply("a"));
  EXPECT_EQ(other.store->AwaitChange(absl::ZeroDuration()), Heard::kTold) << "it begins to listen";
  EXPECT_EQ(other.store->AwaitChange(absl::Milliseconds(1)), Heard::kNothing);
  ASSERT_OK(planner.Plan("a", 0, 1));
  EXPECT_EQ(other.store->AwaitChange(absl::Minutes(1)), Heard::kTold);
  EXPECT_EQ(pooled.store->AwaitChange(absl::Milliseconds(1)), Heard::kDeaf);
}

// A tick alone is no news, but that a node works again is.
TEST(Listening, ATickThatStirsIsTold) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage one, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(url));
  TickRequest tick;
  tick.node.name = "n1";
  tick.wall = absl::Now();
  ASSERT_OK(one.store->Tick(tick).status());
  other.store->AwaitChange(absl::ZeroDuration());
  ASSERT_OK(one.store->Tick(tick).status());
  EXPECT_EQ(other.store->AwaitChange(absl::Milliseconds(100)), Heard::kNothing);
  tick.stirs = true;
  ASSERT_OK(one.store->Tick(tick).status());
  EXPECT_EQ(other.store->AwaitChange(absl::Minutes(1)), Heard::kTold);
}

TEST(Listening, AnInterruptEndsTheWait) {
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(TestPostgresUrl()));
  EXPECT_TRUE(HearsOf(*stage.store, [&] { stage.store->Interrupt(); }));
}

}  // namespace
}  // namespace matins::testing
