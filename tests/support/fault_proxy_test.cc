#include "tests/support/fault_proxy.h"

#include <libpq-fe.h>

#include <future>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

// A table t(a) in a schema of its own, and a client that reaches it through the proxy.
class FaultProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    schema_ = SchemaOf(TestPostgresUrl());
    ASSERT_EQ("", Past("CREATE TABLE " + Table() + " (a int)"));
    auto proxy = FaultProxy::Start(TestPostgresPort());
    ASSERT_TRUE(proxy.ok()) << proxy.status();
    proxy_ = *std::move(proxy);
  }

  std::string Table() const { return schema_ + ".t"; }
  std::string Insert(int a) const {
    return "INSERT INTO " + Table() + " VALUES (" + std::to_string(a) + ")";
  }
  // Past the proxy.
  static std::string Past(const std::string& sql) {
    const auto answer = PostgresQuery(TestPostgresPort(), sql);
    return answer.ok() ? *answer : answer.status().ToString();
  }
  std::string Rows() const { return Past("SELECT a FROM " + Table() + " ORDER BY a"); }
  // Through it, on a connection of its own.
  bool Through(const std::string& sql) const { return PostgresQuery(proxy_->port(), sql).ok(); }

  std::string schema_;
  std::unique_ptr<FaultProxy> proxy_;
};

TEST_F(FaultProxyTest, PassesUntilToldOtherwise) {
  EXPECT_TRUE(Through(Insert(1)));
  EXPECT_EQ("1", Rows());
}

TEST_F(FaultProxyTest, PassesMoreThanItsBuffers) {
  const auto answer = PostgresQuery(proxy_->port(), "SELECT repeat('x', 5000000)");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(5000000u, answer->size());
}

TEST_F(FaultProxyTest, ADroppedReplyHasTakenEffect) {
  proxy_->DropReply("INSERT");
  EXPECT_FALSE(Through(Insert(1)));
  EXPECT_TRUE(proxy_->AwaitHits(1));
  EXPECT_EQ("1", Rows());
  EXPECT_TRUE(Through(Insert(2)));  // once
  EXPECT_EQ(1, proxy_->hits());
}

TEST_F(FaultProxyTest, ADroppedRequestHasNot) {
  proxy_->DropRequest("INSERT");
  EXPECT_FALSE(Through(Insert(1)));
  EXPECT_TRUE(proxy_->AwaitHits(1));
  EXPECT_EQ("", Rows());
}

TEST_F(FaultProxyTest, AHeldRequestTakesEffectWhenReleased) {
  proxy_->Hold("INSERT");
  EXPECT_FALSE(Through(Insert(1)));
  EXPECT_TRUE(proxy_->AwaitHits(1));
  EXPECT_EQ("", Rows());
  proxy_->Release();
  EXPECT_EQ("1", Rows());
}

TEST_F(FaultProxyTest, ABlackHoleAnswersWhenItIsGone) {
  proxy_->Blackhole();
  auto answer = std::async(std::launch::async, [this] {
    // No connect_timeout: only the proxy ends this wait.
    PGconn* client = PQconnectdb(("host=127.0.0.1 user=postgres dbname=postgres sslmode=disable "
                                  "port=" +
                                  std::to_string(proxy_->port()))
                                     .c_str());
    const bool good = PQstatus(client) == CONNECTION_OK;
    PQfinish(client);
    return good;
  });
  EXPECT_EQ(std::future_status::timeout, answer.wait_for(std::chrono::milliseconds(50)));
  proxy_->Pass();
  EXPECT_TRUE(answer.get());
}

TEST_F(FaultProxyTest, ResetEndsConnectionsAndTakesNewOnes) {
  PGconn* client = PQconnectdb(
      ("host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string(proxy_->port()))
          .c_str());
  ASSERT_EQ(CONNECTION_OK, PQstatus(client));
  proxy_->Reset();
  PQclear(PQexec(client, "SELECT 1"));
  EXPECT_EQ(CONNECTION_BAD, PQstatus(client));
  PQfinish(client);
  EXPECT_TRUE(Through("SELECT 1"));
}

TEST_F(FaultProxyTest, RefuseLooksLikeAServerThatIsAway) {
  proxy_->Refuse();
  EXPECT_FALSE(Through("SELECT 1"));
  proxy_->Pass();
  EXPECT_TRUE(Through("SELECT 1"));
}

}  // namespace
}  // namespace matins::testing
