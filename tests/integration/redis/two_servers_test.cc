// What a Redis lease does not stop, and the fence at the place that is written to does: a primary
// and its replica, the link between them cut, the replica promoted, both holders alive.
#include <sqlite3.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "lease/redis_locks.h"
#include "store/fence_sql.h"
#include "tests/support/assert_ok.h"
#include "tests/support/redis_server.h"

namespace matins {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// A business database that checks fences as docs/fencing.md says.
class Ledger {
 public:
  Ledger() {
    sqlite3_open(":memory:", &db_);
    Do(FenceSql(FenceDialect::kSqlite).tables, {});
    Do("CREATE TABLE booking (step INTEGER, fence INTEGER)", {});
  }
  ~Ledger() { sqlite3_close(db_); }

  // The last step that is done; -1: a newer owner was here.
  int64_t Raise(int64_t fence) {
    const auto rows =
        Do(FenceSql(FenceDialect::kSqlite).raise, {"night", "1", "1", absl::StrCat(fence)});
    return rows.empty() ? -1 : rows[0];
  }
  // Whether it was booked.
  bool Step(int64_t fence, int64_t step) {
    Do("BEGIN IMMEDIATE", {});
    Do(FenceSql(FenceDialect::kSqlite).step,
       {absl::StrCat(step), "night", "1", absl::StrCat(fence), absl::StrCat(step - 1)});
    const bool ours = sqlite3_changes(db_) == 1;
    if (ours) Do(absl::StrCat("INSERT INTO booking VALUES (", step, ", ", fence, ")"), {});
    Do(ours ? "COMMIT" : "ROLLBACK", {});
    return ours;
  }
  // Bookings of that step.
  int64_t Count(int64_t step) {
    return Do(absl::StrCat("SELECT count(*) FROM booking WHERE step = ", step), {})[0];
  }

 private:
  // The first column of each row. Numbers are bound as texts: the columns' affinity makes them
  // numbers again.
  std::vector<int64_t> Do(const std::string& sql, const std::vector<std::string>& values) {
    std::vector<int64_t> rows;
    for (const char* rest = sql.c_str(); *rest != '\0';) {
      sqlite3_stmt* statement = nullptr;
      EXPECT_EQ(sqlite3_prepare_v2(db_, rest, -1, &statement, &rest), SQLITE_OK)
          << sqlite3_errmsg(db_);
      if (statement == nullptr) break;
      for (size_t i = 0; i < values.size(); ++i) {
        sqlite3_bind_text(statement, static_cast<int>(i) + 1, values[i].c_str(), -1,
                          SQLITE_TRANSIENT);
      }
      int result = SQLITE_ROW;
      while ((result = sqlite3_step(statement)) == SQLITE_ROW)
        rows.push_back(sqlite3_column_int64(statement, 0));
      EXPECT_EQ(result, SQLITE_DONE) << sqlite3_errmsg(db_);
      sqlite3_finalize(statement);
    }
    return rows;
  }

  sqlite3* db_ = nullptr;
};

class TwoServers : public ::testing::Test {
 protected:
  void SetUp() override {
    auto primary = testing::RedisServer::Start();
    ASSERT_OK(primary.status());
    primary_ = *std::move(primary);
    auto replica = testing::RedisServer::Start(
        {.settings = {"--replicaof", absl::StrCat("127.0.0.1 ", primary_->port())}});
    ASSERT_OK(replica.status());
    replica_ = *std::move(replica);
    at_primary_ = std::make_unique<RedisLocks>(*ParseRedisUrl(primary_->url()), SystemClock());
    at_replica_ = std::make_unique<RedisLocks>(*ParseRedisUrl(replica_->url()), SystemClock());
    AwaitLink("up");
  }

  void AwaitLink(const std::string& state) {
    while (
        !absl::StrContains(replica_->Ask({"INFO", "replication"}), "master_link_status:" + state)) {
    }
  }
  // What the primary has said has reached the replica. WAIT would answer for its own connection's
  // writes alone.
  void AwaitLock(const std::string& there) {
    while (replica_->Ask({"EXISTS", "matins:fence:night"}) != "1" ||
           replica_->Ask({"EXISTS", "matins:lock:night"}) != there) {
    }
  }
  void CutLink() {
    replica_->Ask({"REPLICAOF", "127.0.0.1", "1"});
    AwaitLink("down");
  }
  void Promote() { replica_->Ask({"REPLICAOF", "NO", "ONE"}); }

  RedisHolding Holding(absl::string_view who) {
    return {"night", RedisLocks::NewValue(who, random_), absl::Minutes(10)};
  }
  static int64_t Take(RedisLocks& locks, const RedisHolding& holding) {
    const auto taken = locks.Take({holding}, kPatience);
    EXPECT_TRUE(taken.ok()) << taken.status();
    if (!taken.ok() || !(*taken)[0].taken) return 0;
    return (*taken)[0].fence;
  }

  SystemRandom random_;
  std::unique_ptr<testing::RedisServer> primary_, replica_;
  std::unique_ptr<RedisLocks> at_primary_, at_replica_;
};

TEST_F(TwoServers, AfterACutLinkAndAPromotionThereAreTwoHoldersAndOneAcceptedResult) {
  // Somebody before both, so that the counter of both servers is the same.
  const RedisHolding before = Holding("host/0");
  ASSERT_NE(Take(*at_primary_, before), 0);
  ASSERT_TRUE((*at_primary_->Release({before}, kPatience))[0].kept);
  AwaitLock("0");
  CutLink();
  const RedisHolding old = Holding("host/1"), young = Holding("host/2");
  const int64_t old_fence = Take(*at_primary_, old);
  ASSERT_NE(old_fence, 0);
  Promote();
  const int64_t young_fence = Take(*at_replica_, young);
  ASSERT_NE(young_fence, 0);
  // Two holders: each renews, and neither can know of the other.
  EXPECT_TRUE((*at_primary_->Renew({old}, kPatience))[0].kept);
  EXPECT_TRUE((*at_replica_->Renew({young}, kPatience))[0].kept);
  EXPECT_GT(young_fence, old_fence);

  Ledger ledger;
  ASSERT_EQ(ledger.Raise(old_fence), 0);
  EXPECT_TRUE(ledger.Step(old_fence, 1));
  // From here on the old one is refused, though it holds its lease still.
  ASSERT_EQ(ledger.Raise(young_fence), 1);
  EXPECT_FALSE(ledger.Step(old_fence, 2));
  EXPECT_TRUE(ledger.Step(young_fence, 2));
  EXPECT_FALSE(ledger.Step(old_fence, 3));
  EXPECT_TRUE(ledger.Step(young_fence, 3));
  EXPECT_EQ(ledger.Raise(old_fence), -1);
  for (const int64_t step : {1, 2, 3}) EXPECT_EQ(ledger.Count(step), 1) << step;
}

TEST_F(TwoServers, AReplicaThatWasUpToDateKeepsTheHolder) {
  const RedisHolding old = Holding("host/1");
  const int64_t fence = Take(*at_primary_, old);
  ASSERT_NE(fence, 0);
  AwaitLock("1");
  primary_->Crash();
  Promote();
  EXPECT_EQ(Take(*at_replica_, Holding("host/2")), 0);
  EXPECT_TRUE((*at_replica_->Renew({old}, kPatience))[0].kept);
  EXPECT_EQ((*at_replica_->List(kPatience))[0].fence, fence);
}

}  // namespace
}  // namespace matins
