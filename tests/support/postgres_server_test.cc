#include "tests/support/postgres_server.h"

#include <libpq-fe.h>

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/pgbouncer_server.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

std::string Ask(int port, const std::string& sql) {
  const auto answer = PostgresQuery(port, sql);
  return answer.ok() ? *answer : answer.status().ToString();
}

// As /proc shows it: R running, S sleeping, T stopped.
std::string StateOf(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  in >> number >> name >> state;
  return state;
}

TEST(TestPostgresUrl, GivesAnEmptySchemaOfItsOwnEachTime) {
  const std::string first = TestPostgresUrl();
  const std::string second = TestPostgresUrl();
  EXPECT_NE(SchemaOf(first), SchemaOf(second));
  EXPECT_EQ("1", Ask(TestPostgresPort(), "SELECT count(*) FROM pg_namespace WHERE nspname = '" +
                                             SchemaOf(first) + "'"));
}

TEST(TestPostgresUrl, TheServerIsDurable) {
  EXPECT_EQ("on|on|on",
            Ask(TestPostgresPort(),
                "SELECT current_setting('fsync'), current_setting('synchronous_commit'), "
                "current_setting('full_page_writes')"));
}

TEST(PostgresServer, WhatWasCommittedSurvivesACrash) {
  auto server = PostgresServer::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  ASSERT_EQ("", Ask(port, "CREATE TABLE t (a int); INSERT INTO t VALUES (7)"));
  (*server)->Crash();
  EXPECT_FALSE(PostgresQuery(port, "SELECT 1").ok());
  ASSERT_TRUE((*server)->Restart().ok());
  EXPECT_EQ("7", Ask(port, "SELECT a FROM t"));
}

TEST(PostgresServer, AnswersAgainAfterAPause) {
  auto server = PostgresServer::Start();
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE((*server)->Pause().ok());
  EXPECT_EQ("T", StateOf((*server)->pid()));
  (*server)->Continue();
  EXPECT_EQ("1", Ask((*server)->port(), "SELECT 1"));
}

TEST(PgbouncerServer, GivesAServerConnectionForOneTransactionOnly) {
  auto pool = PgbouncerServer::Start(TestPostgresPort(), /*pool_size=*/1);
  ASSERT_TRUE(pool.ok()) << pool.status();
  // Two clients at a time over the one server connection: only transaction mode lets both work.
  const std::string where =
      "host=127.0.0.1 user=postgres dbname=postgres port=" + std::to_string((*pool)->port());
  PGconn* first = PQconnectdb(where.c_str());
  PGconn* second = PQconnectdb(where.c_str());
  for (PGconn* client : {first, second, first}) {
    PGresult* result = PQexec(client, "SELECT pg_backend_pid()");
    EXPECT_EQ(PGRES_TUPLES_OK, PQresultStatus(result)) << PQerrorMessage(client);
    PQclear(result);
  }
  PQfinish(first);
  PQfinish(second);
}

TEST(PgbouncerServer, RefusesSessionSettingsAtConnection) {
  auto pool = PgbouncerServer::Start(TestPostgresPort());
  ASSERT_TRUE(pool.ok()) << pool.status();
  PGconn* client = PQconnectdb(("host=127.0.0.1 user=postgres dbname=postgres "
                                "options='-c search_path=a' port=" +
                                std::to_string((*pool)->port()))
                                   .c_str());
  EXPECT_EQ(CONNECTION_BAD, PQstatus(client));
  PQfinish(client);
}

TEST(OnPort, ChangesThePortAlone) {
  EXPECT_EQ("postgresql://postgres@127.0.0.1:6432/postgres?schema=s",
            OnPort("postgresql://postgres@127.0.0.1:5432/postgres?schema=s", 6432));
}

}  // namespace
}  // namespace matins::testing
