// What comes again is prepared by the server; and nothing depends on its still being there.
#include "store/postgresql/prepared.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/postgresql/connection.h"
#include "store/postgresql/session.h"
#include "store/postgresql/url.h"
#include "tests/integration/stage.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/pgbouncer_server.h"
#include "tests/support/postgres_server.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

using postgresql::PreparedStatements;
using How = PreparedStatements::How;

constexpr char kCount[] = "select count(*) from pg_prepared_statements where name like 'matins_%'";
constexpr char kQuestion[] =
    "select $1::bigint + 1 as the_next, 'a text that is long enough to be worth it' as a";

absl::StatusOr<std::unique_ptr<postgresql::Session>> SessionAt(const std::string& url) {
  ASSIGN_OR_RETURN(const auto parsed, postgresql::ParseUrl(url));
  return std::make_unique<postgresql::Session>(
      postgresql::ConnectionOptions{parsed.conninfo, parsed.description, absl::Seconds(5),
                                    absl::Seconds(1)},
      "matins");
}

absl::StatusOr<int64_t> Ask(postgresql::Session& session, const std::string& text,
                            std::vector<postgresql::Parameter> params = {}) {
  ASSIGN_OR_RETURN(const std::vector<postgresql::Rows> rows, session.Retried([&] {
    return session.connection.Write({{text, params}});
  }));
  return rows[0].Int(0, 0);
}

TEST(Prepared, WhatComesAgainIs) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  ASSERT_OK_AND_ASSIGN(int64_t next, Ask(*session, kQuestion, {"1"}));
  ASSERT_OK_AND_ASSIGN(int64_t count, Ask(*session, kCount));
  EXPECT_EQ(count, 1) << "what begins each transaction; the others came once";
  for (int i = 1; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
  ASSERT_OK_AND_ASSIGN(count, Ask(*session, kCount));
  EXPECT_EQ(count, 3) << "the question, the count, and what begins each transaction";
}

TEST(Prepared, NothingIsBehindAPooler) {
  ASSERT_OK_AND_ASSIGN(const auto pool, PgbouncerServer::Start(TestPostgresPort()));
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(OnPort(TestPostgresUrl(), pool->port())));
  for (int i = 1; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
  ASSERT_OK_AND_ASSIGN(const int64_t count, Ask(*session, kCount));
  EXPECT_EQ(count, 0);
}

// As a pooler does that greets with a server's own process, and then changes it.
TEST(Prepared, WhatIsGoneIsSentWhole) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  for (int i = 0; i < 3; ++i) ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  ASSERT_OK(session->connection.Bare({{"DEALLOCATE ALL", {}}}).status());
  ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {"41"}));
  EXPECT_EQ(next, 42);
  ASSERT_OK(session->connection.Bare({{"DEALLOCATE ALL", {}}}).status());
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(session->connection.Read({{kQuestion, {"1"}}}).status());
  }
  ASSERT_OK_AND_ASSIGN(const int64_t count, Ask(*session, kCount));
  EXPECT_EQ(count, 0) << "a session that changes is given nothing to keep";
}

TEST(Prepared, AReadAloneIsSentAgainByItself) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  for (int i = 0; i < 3; ++i) ASSERT_OK(session->connection.Read({{kQuestion, {"1"}}}).status());
  ASSERT_OK(session->connection.Bare({{"DEALLOCATE ALL", {}}}).status());
  ASSERT_OK(session->connection.Read({{kQuestion, {"1"}}}).status());
}

TEST(Prepared, AnotherMeaningIsSentWhole) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(url));
  const std::string table = absl::StrCat("public.meaning_", session->connection.socket() + 1, "_",
                                         reinterpret_cast<uintptr_t>(session.get()));
  ASSERT_OK(Ask(*session, absl::StrCat("create table ", table, " (a bigint)")).status());
  const std::string all = absl::StrCat("select *, 'long enough to be prepared' from ", table);
  for (int i = 0; i < 3; ++i) ASSERT_OK(Ask(*session, all).status());
  ASSERT_OK(Ask(*session, absl::StrCat("alter table ", table, " add b text")).status());
  ASSERT_OK(Ask(*session, all).status());
  ASSERT_OK(Ask(*session, absl::StrCat("drop table ", table)).status());
}

TEST(Prepared, AnErrorBeforeItLeavesItToTheNextTime) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  EXPECT_FALSE(session->connection.Write({{"select 1/0", {}}, {kQuestion, {"1"}}}).ok());
  for (int i = 1; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
}

// A new session has nothing of the old one's.
TEST(Prepared, AreForgottenWithTheirConnection) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  for (int i = 0; i < 3; ++i) ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  session->connection.Drop();
  for (int i = 1; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
}

postgresql::Statement Again(absl::string_view text, std::vector<postgresql::Parameter> params) {
  return {std::string(text), std::move(params), /*comes_again=*/true};
}

TEST(SentAhead, IsThereForWhoComesNext) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  const std::string other = absl::StrCat(kQuestion, " where true");
  session->connection.WriteAhead({Again(other, {"1"})});
  ASSERT_OK_AND_ASSIGN(const int64_t count, Ask(*session, kCount));
  EXPECT_EQ(count, 2) << "what was sent ahead, and what begins each transaction";
  ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, other, {"41"}));
  EXPECT_EQ(next, 42);
}

TEST(SentAhead, HasNoSayWhereItFails) {
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(TestPostgresUrl()));
  ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  session->connection.WriteAhead({{"select 1/0", {}}, Again(kQuestion, {"1"})});
  for (int i = 1; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
}

// Also where its answers have not been taken when the connection ends.
TEST(SentAhead, IsForgottenWithItsConnection) {
  ASSERT_OK_AND_ASSIGN(const auto proxy, FaultProxy::Start(TestPostgresPort()));
  ASSERT_OK_AND_ASSIGN(const auto session, SessionAt(OnPort(TestPostgresUrl(), proxy->port())));
  ASSERT_OK(Ask(*session, kQuestion, {"1"}).status());
  proxy->DropReply("long enough");
  session->connection.WriteAhead({Again(kQuestion, {"1"})});
  ASSERT_TRUE(proxy->AwaitHits(1));
  for (int i = 1; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t next, Ask(*session, kQuestion, {absl::StrCat(i)}));
    EXPECT_EQ(next, i + 1);
  }
}

// A call of exec ends what it starts on the same connection: what ends it is known to the server by
// then.
TEST(SentAhead, AnEndIsPlannedWhileItsRunIsAtWork) {
  ASSERT_OK_AND_ASSIGN(const auto proxy, FaultProxy::Start(TestPostgresPort()));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(OnPort(TestPostgresUrl(), proxy->port())));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  StartRequest start;
  start.node = {"call", {"run:exec"}};
  start.nonce = 7;
  start.keys = {KeyOf("a", 0)};
  ASSERT_OK_AND_ASSIGN(const StartAnswers started, stage.store->Start(start));
  ASSERT_TRUE(started.rows[0].claim);
  const Claim& claim = *started.rows[0].claim;
  const ExtendRequest beat = {TicketOf(claim), absl::Seconds(30)};
  ASSERT_OK(stage.store->Extend({&beat, 1}).status());
  proxy->DropRequest("job_run");
  const FinishRequest end = DoneOf(claim);
  ASSERT_OK_AND_ASSIGN(const std::vector<Refusal> ended, stage.store->Finish({&end, 1}));
  EXPECT_EQ(ended[0].why, "");
  EXPECT_EQ(proxy->hits(), 0) << "its text was sent";
  proxy->Pass();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(KeyOf("a", 0)));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
}

// Each stays with the server as long as the session: their number has an end.
TEST(Prepared, TheirNumberHasAnEnd) {
  PreparedStatements statements;
  int prepared = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5000; ++i) {
      const std::string text = absl::StrCat(kQuestion, " where ", i, " = ", i);
      if (statements.Next(text).how == How::kPrepare) {
        ++prepared;
        statements.Confirm();
      }
    }
  }
  EXPECT_GT(prepared, 50);
  EXPECT_LT(prepared, 1000);
}

}  // namespace
}  // namespace matins::testing
