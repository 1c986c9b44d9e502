// A server that crashes, is away at the start, is a wrong one, or is configured to lose things.
#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/fence_sql.h"
#include "store/postgresql/database.h"
#include "store/postgresql/schema_sql.h"
#include "tests/integration/stage.h"
#include "tests/support/eventually.h"
#include "tests/support/postgres_server.h"
#include "tests/support/sql_client.h"

namespace matins::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// The store has a sequence of the fence's name: a fence that is no table is no fence.
TEST(FenceSql, IsRefusedInTheSchemaOfTheStoreAndMadeElsewhere) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK(Stage::Open(url).status());
  ASSERT_OK_AND_ASSIGN(const auto client, SqlClient::Connect(url));
  const std::string schema = url.substr(url.find("schema=") + 7);
  const std::string& tables = FenceSql(FenceDialect::kPostgresql).tables;
  const auto refused = client->Query(absl::StrCat("SET search_path TO \"", schema, "\";", tables));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("checkpoint"));
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_OK(client
                  ->Query(absl::StrCat("CREATE SCHEMA IF NOT EXISTS \"", schema,
                                       "_ours\"; SET search_path TO \"", schema, "_ours\", \"",
                                       schema, "\";", tables))
                  .status());
  }
}

// C126, C128, C130 (I11): the postmaster is killed; what was acknowledged stands, the lease too.
TEST(Server, WhatWasAcknowledgedSurvivesItsCrash) {
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start());
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshSchemaUrl()));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 2));
  ASSERT_OK_AND_ASSIGN(const Claim done, stage.Claimed(KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const Claim running, stage.Claimed(KeyOf("a", 1)));
  const FinishRequest finish = DoneOf(done);
  ASSERT_OK(stage.store->Finish({&finish, 1}).status());
  server->Crash();
  const ExtendRequest extend{TicketOf(running), absl::Seconds(30)};
  EXPECT_FALSE(stage.store->Extend({&extend, 1}).ok());
  ASSERT_OK(server->Restart());
  absl::StatusOr<std::vector<ExtendAnswer>> extended;
  const absl::Time until = absl::Now() + absl::Seconds(60);
  do {
    extended = stage.store->Extend({&extend, 1});
  } while (!extended.ok() && absl::Now() < until);
  ASSERT_OK(extended.status());
  EXPECT_EQ((*extended)[0].refusal.why, "");
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(done.key));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  EXPECT_EQ(row.fence, done.fence);
  // The other's run is still its own: nobody else gets it.
  EXPECT_FALSE(stage.Claimed(running.key, "n2").ok());
}

// I11: the server itself would answer a COMMIT before it is on the disk.
TEST(Server, ThatWouldLoseTheNewestIsMadeToFlushIt) {
  PostgresServer::Options options;
  options.settings = {"synchronous_commit = off", "wal_writer_delay = 10s"};
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start(options));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshSchemaUrl()));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", 0)));
  const FinishRequest finish = DoneOf(claim);
  ASSERT_OK(stage.store->Finish({&finish, 1}).status());
  server->Crash();
  ASSERT_OK(server->Restart());
  absl::StatusOr<PeriodRow> row;
  const absl::Time until = absl::Now() + absl::Seconds(60);
  do {
    row = stage.Row(claim.key);
  } while (absl::IsUnavailable(row.status()) && absl::Now() < until);
  ASSERT_OK(row.status());
  EXPECT_EQ(row->status, PeriodStatus::kDone);
}

TEST(Server, ThatIsAwayAtTheStartIsUnavailableAndTakenWhenItComes) {
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start());
  const std::string url = server->FreshSchemaUrl();
  server->Stop();
  ASSERT_OK_AND_ASSIGN(const auto database, OpenPostgresDatabase(url, {}));
  const absl::Status away = database->Migrate();
  EXPECT_EQ(away.code(), absl::StatusCode::kUnavailable);
  // libpq has two lines for it; a log has one.
  EXPECT_EQ(away.message().find('\n'), absl::string_view::npos) << away;
  ASSERT_OK(server->Restart());
  EXPECT_TRUE(database->Migrate().ok());
  EXPECT_TRUE(database->Open().ok());
}

TEST(Server, SettingsThatLoseThingsAreWarnedOf) {
  PostgresServer::Options options;
  options.settings = {"fsync = off", "full_page_writes = off", "synchronous_commit = off"};
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start(options));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshSchemaUrl()));
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, stage.acts->ReadStatus());
  EXPECT_THAT(status.warnings, Contains(HasSubstr("fsync is off")));
  EXPECT_THAT(status.warnings, Contains(HasSubstr("full_page_writes is off")));
  EXPECT_THAT(status.warnings, Contains(HasSubstr("synchronous_commit is off")));
}

TEST(Schema, IsTheSameAfterAnotherMigration) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.database->Migrate());
  ASSERT_OK_AND_ASSIGN(const auto jobs, stage.acts->ReadJobs(""));
  EXPECT_EQ(jobs.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_EQ(check.version, check.wanted);
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
}

// The database at `url` as the first version of the schema made it.
absl::Status MakeFirstVersion(const std::string& url) {
  const std::string schema = absl::StrCat("\"", SchemaOf(url), "\".");
  std::string first =
      absl::StrCat("create table ", schema, "matins_meta(key text primary key, value text);");
  for (const std::string& sql : *postgresql::SchemaSteps()[0]) {
    absl::StrAppend(&first, absl::StrReplaceAll(sql, {{"@.", schema}}), ";");
  }
  absl::StrAppend(&first, "insert into ", schema, "matins_meta values ('schema', '1')");
  return PostgresQuery(TestPostgresPort(), first).status();
}

TEST(Schema, OneOfTheFirstVersionIsTakenToThisOne) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(const auto database, OpenPostgresDatabase(url, {}));
  ASSERT_OK(MakeFirstVersion(url));
  EXPECT_EQ(database->Open().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(database->Migrate());
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, database->Check());
  EXPECT_EQ(check.version, check.wanted);
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
  ASSERT_OK(database->Open().status());
}

// A large table is not indexed within a call's deadline; here it is somebody who reads it.
TEST(Schema, AStepMayTakeLongerThanACall) {
  const std::string url = TestPostgresUrl();
  DatabaseOptions options;
  options.call_deadline = absl::Seconds(2);
  ASSERT_OK_AND_ASSIGN(const auto database, OpenPostgresDatabase(url, options));
  ASSERT_OK(MakeFirstVersion(url));
  ASSERT_OK_AND_ASSIGN(const auto reader, SqlClient::Connect(url));
  ASSERT_OK(reader->Query(absl::StrCat("begin; select from \"", SchemaOf(url), "\".job_watermark"))
                .status());
  std::atomic<bool> over = false;
  absl::Status migrated;
  std::thread migration([&] {
    migrated = database->Migrate();
    over = true;
  });
  const std::string waits = absl::StrCat(
      "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%",
      SchemaOf(url), "%' and clock_timestamp() > query_start + interval '3 s'");
  EXPECT_TRUE(Eventually([&] {
    const auto found = PostgresQuery(TestPostgresPort(), waits);
    return over || (found.ok() && *found != "0");
  }));
  EXPECT_TRUE(reader->Query("commit").ok());
  migration.join();
  EXPECT_EQ(migrated, absl::OkStatus());
}

TEST(Schema, ALostIndexIsFoundByTheCheck) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK(PostgresQuery(TestPostgresPort(),
                          absl::StrCat("drop index \"", SchemaOf(url), "\".job_watermark_due"))
                .status());
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_THAT(check.problems, Contains(HasSubstr("job_watermark_due")));
}

TEST(Schema, ANewerOneIsRefused) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK(PostgresQuery(TestPostgresPort(),
                          absl::StrCat("update \"", SchemaOf(url),
                                       "\".matins_meta set value = '99' where key = 'schema'"))
                .status());
  EXPECT_EQ(stage.database->Migrate().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage.database->Open().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Schema, AnEmptyDatabaseSaysWhatToRun) {
  ASSERT_OK_AND_ASSIGN(const auto database, OpenPostgresDatabase(TestPostgresUrl(), {}));
  const auto store = database->Open();
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("matins db migrate"));
}

TEST(Schema, TheTableOfFourColumnsIsTakenOverWithItsRows) {
  const std::string url = TestPostgresUrl();
  const std::string schema = SchemaOf(url);
  ASSERT_OK(
      PostgresQuery(
          TestPostgresPort(),
          absl::StrCat("create schema if not exists \"", schema, "\"; create table \"", schema,
                       "\".job_watermark(job_name varchar(64) not null, biz_date date not "
                       "null, status varchar(16) not null, finished_at timestamp, primary "
                       "key (job_name, biz_date)); insert into \"",
                       schema,
                       "\".job_watermark values ('recon', '2026-10-29', 'DONE', "
                       "'2026-10-30 01:02:03')"))
          .status());
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row({"recon", "2026-10-29"}));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  EXPECT_EQ(row.finished_at,
            absl::FromCivil(absl::CivilSecond(2026, 10, 30, 1, 2, 3), absl::UTCTimeZone()));
}

TEST(Schema, BackupAndRestoreNameTheCommands) {
  ASSERT_OK_AND_ASSIGN(const auto database, OpenPostgresDatabase("postgresql://h/d", {}));
  EXPECT_THAT(std::string(database->Backup("x").message()), HasSubstr("pg_dump"));
  EXPECT_THAT(std::string(database->Restore("x").message()), HasSubstr("matins epoch bump"));
}

#if MATINS_LAB
TEST(Suspend, WaitsForAStartThatHasReadTheJob) {
  const std::string url = TestPostgresUrl();
  ASSERT_OK_AND_ASSIGN(const bool overtook, SuspendOvertakesStart(url, [&] {
                         const auto waiting = PostgresQuery(
                             TestPostgresPort(),
                             absl::StrCat("select count(*) from pg_stat_activity where "
                                          "wait_event_type = 'Lock' and query like '%\"",
                                          SchemaOf(url), "\"%'"));
                         return waiting.ok() && *waiting == "1";
                       }));
  EXPECT_FALSE(overtook);
}
#endif

}  // namespace
}  // namespace matins::testing
