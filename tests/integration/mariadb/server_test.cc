// A server that crashes, is away at the start, is a wrong one, or is configured to lose things; and
// the schema on it.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/mariadb/database.h"
#include "tests/integration/stage.h"
#include "tests/support/mariadb_server.h"

namespace matins::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// I11: the server is killed; what was acknowledged stands, the lease too, and fences go on rising.
TEST(MariadbServerFaults, WhatWasAcknowledgedSurvivesItsCrash) {
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start());
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshUrl()));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 3));
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
  // Its connection died with the server, and takes another by itself.
  stage.acts->ReadJobs("").IgnoreError();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(done.key));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  EXPECT_EQ(row.fence, done.fence);
  EXPECT_FALSE(stage.Claimed(running.key, "n2").ok());
  ASSERT_OK_AND_ASSIGN(const Claim next, stage.Claimed(KeyOf("a", 2)));
  EXPECT_GT(next.fence, running.fence) << "the source of fences was set back by the restart";
}

TEST(MariadbServerFaults, ThatIsAwayAtTheStartIsUnavailableAndTakenWhenItComes) {
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start());
  const std::string url = server->FreshUrl();
  server->Stop();
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(url, {}));
  EXPECT_EQ(database->Migrate().code(), absl::StatusCode::kUnavailable);
  ASSERT_OK(server->Restart());
  ASSERT_OK(database->Migrate());
  ASSERT_OK(database->Open().status());
}

TEST(MariadbServerFaults, ByItsSocketAndIntoADatabaseThatItMakes) {
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start());
  ASSERT_OK_AND_ASSIGN(
      const auto database,
      OpenMariadbDatabase(absl::StrCat("mariadb://root@/made?socket=", server->socket()), {}));
  ASSERT_OK(database->Migrate());
  ASSERT_OK(database->Open().status());
}

TEST(MariadbServerFaults, SettingsThatLoseThingsAreWarnedOf) {
  MariadbServer::Options options;
  options.settings = {"--innodb-flush-log-at-trx-commit=2", "--log-bin=binlog", "--sync-binlog=0",
                      "--innodb-doublewrite=0", "--max-allowed-packet=1M"};
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start(options));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshUrl()));
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, stage.acts->ReadStatus());
  EXPECT_THAT(status.warnings, Contains(HasSubstr("innodb_flush_log_at_trx_commit is 2")));
  EXPECT_THAT(status.warnings, Contains(HasSubstr("sync_binlog is 0")));
  EXPECT_THAT(status.warnings, Contains(HasSubstr("innodb_doublewrite is off")));
  EXPECT_THAT(status.warnings, Contains(HasSubstr("max_allowed_packet")));
  // With a binary log of the usual kind all goes its way.
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", 0)));
  const FinishRequest finish = DoneOf(claim);
  ASSERT_OK(stage.store->Finish({&finish, 1}).status());
}

TEST(MariadbServerFaults, WrongOnesAreRefusedWithTheMend) {
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start());
  const std::string url = server->FreshUrl();
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(url, {}));
  ASSERT_OK(database->Migrate());
  ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
  ASSERT_OK(client->Query("SET GLOBAL read_only = 1").status());
  const absl::Status replica = database->Open().status();
  EXPECT_EQ(replica.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(replica.message()), HasSubstr("name the primary"));
  ASSERT_OK(client->Query("SET GLOBAL read_only = 0").status());
  ASSERT_OK(database->Open().status());
}

TEST(MariadbServerFaults, ANodeOfAGaleraClusterNeedsAPersonsWord) {
  MariadbServer::Options options;
  options.settings = {"--wsrep-on=ON", "--binlog-format=ROW"};
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start(options));
  const std::string url = server->FreshUrl();
  ASSERT_OK_AND_ASSIGN(const auto refused, OpenMariadbDatabase(url, {}));
  const absl::Status status = refused->Migrate();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("galera=single-writer"));
  ASSERT_OK_AND_ASSIGN(const auto said,
                       OpenMariadbDatabase(absl::StrCat(url, "?galera=single-writer"), {}));
  ASSERT_OK(said->Migrate());
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, said->Check());
  EXPECT_THAT(check.problems, Contains(HasSubstr("Galera")));
}

TEST(MariadbSchema, IsTheSameAfterAnotherMigration) {
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(TestMariadbUrl()));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.database->Migrate());
  ASSERT_OK_AND_ASSIGN(const auto jobs, stage.acts->ReadJobs(""));
  EXPECT_EQ(jobs.size(), 1u);
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_EQ(check.version, check.wanted);
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
}

// Of schema 7, which had no such column: its rows stay, and a run that is alive is heard on.
TEST(MariadbSchema, OneOfAnEarlierVersionIsTakenToThisOne) {
  const std::string url = TestMariadbUrl();
  ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
  Claim claim;
  {
    ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
    ASSERT_OK(stage.Apply("a"));
    ASSERT_OK(stage.Plan("a", 0, 1));
    ASSERT_OK_AND_ASSIGN(claim, stage.Claimed(KeyOf("a", 0)));
  }
  ASSERT_OK(client
                ->Query("ALTER TABLE job_watermark DROP COLUMN renewals; "
                        "UPDATE matins_meta SET value = '7' WHERE name = 'schema'")
                .status());
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(url, {}));
  EXPECT_EQ(database->Open().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_EQ(check.version, check.wanted);
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
  const ExtendRequest extend{TicketOf(claim), absl::Seconds(30)};
  ASSERT_OK_AND_ASSIGN(const auto heard, stage.store->Extend({&extend, 1}));
  EXPECT_TRUE(heard[0].refusal.accepted()) << heard[0].refusal.why;
  ASSERT_OK_AND_ASSIGN(const auto locks, stage.acts->ReadLocks());
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].renewals, 1);
}

TEST(MariadbSchema, ALostIndexAndALostTriggerAreFoundByTheCheck) {
  const std::string url = TestMariadbUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
  ASSERT_OK(client->Query("DROP INDEX job_watermark_due ON job_watermark").status());
  ASSERT_OK(client->Query("DROP TRIGGER matins_row_deleted").status());
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_THAT(check.problems, Contains(HasSubstr("job_watermark_due")));
  EXPECT_THAT(check.problems, Contains(HasSubstr("trigger")));
}

TEST(MariadbSchema, ANewerOneIsRefused) {
  const std::string url = TestMariadbUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
  ASSERT_OK(client->Query("UPDATE matins_meta SET value = '99' WHERE name = 'schema'").status());
  EXPECT_EQ(stage.database->Migrate().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stage.database->Open().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MariadbSchema, AnEmptyDatabaseSaysWhatToRun) {
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(TestMariadbUrl(), {}));
  const auto store = database->Open();
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("matins db migrate"));
}

TEST(MariadbSchema, BackupAndRestoreNameTheCommands) {
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase("mariadb://h/d", {}));
  EXPECT_THAT(std::string(database->Backup("x").message()), HasSubstr("mariadb-dump"));
  EXPECT_THAT(std::string(database->Restore("x").message()), HasSubstr("matins epoch bump"));
}

#if MATINS_LAB
// Definitions commit by themselves: a program that dies between two leaves the rest to the next.
TEST(MariadbSchema, AMigrationThatDiedIsTakenUp) {
  for (const char* point : {"migrate.taken_over", "migrate.before_commit"}) {
    const std::string url = TestMariadbUrl();
    ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
    ASSERT_OK(client
                  ->Query("CREATE TABLE job_watermark (job_name VARCHAR(64), biz_date DATE, status "
                          "VARCHAR(16), finished_at DATETIME, PRIMARY KEY (job_name, biz_date)); "
                          "INSERT INTO job_watermark VALUES ('recon', '2026-10-29', 'DONE', "
                          "'2026-10-30 01:02:03')")
                  .status());
    ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(url, {}));
    SetFaultHook([&](absl::string_view reached) {
      return reached == point ? absl::InternalError("died") : absl::OkStatus();
    });
    EXPECT_FALSE(database->Migrate().ok()) << point;
    SetFaultHook(nullptr);
    EXPECT_FALSE(database->Open().ok()) << "half made: " << point;
    ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
    ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row({"recon", "2026-10-29"}));
    EXPECT_EQ(row.status, PeriodStatus::kDone);
    ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
    EXPECT_THAT(check.problems, ::testing::IsEmpty());
  }
}
#endif

// Two programs that start at once: one makes the schema, the other finds it made.
TEST(MariadbSchema, TwoMayMigrateAtOnce) {
  const std::string url = TestMariadbUrl();
  absl::Status statuses[2];
  const auto migrate = [&](int i) {
    const auto database = OpenMariadbDatabase(url, {});
    statuses[i] = database.ok() ? (*database)->Migrate() : database.status();
  };
  std::thread other([&] { migrate(1); });
  migrate(0);
  other.join();
  ASSERT_OK(statuses[0]);
  ASSERT_OK(statuses[1]);
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
}

// Nodes that start at one instant with the same file.
TEST(MariadbSchema, ManyMaySetTheJournalAtOnce) {
  constexpr int kMany = 4, kRounds = 6;
  const std::string url = TestMariadbUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  for (int round = 0; round < kRounds; ++round) {
    std::vector<absl::Status> statuses(kMany, absl::UnknownError("it did not come to an end"));
    std::vector<std::thread> threads;
    for (absl::Status& status : statuses) {
      threads.emplace_back([&] {
        const auto acts = stage.database->OpenActs();
        status = acts.ok() ? (*acts)->SetJournal(round % 2 == 0) : acts.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) ASSERT_OK(status);
    ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
    EXPECT_THAT(check.problems, ::testing::IsEmpty());
  }
}

#if MATINS_LAB
TEST(MariadbSuspend, WaitsForAStartThatHasReadTheJob) {
  const std::string url = TestMariadbUrl();
  ASSERT_OK_AND_ASSIGN(const auto client, MariadbClient::Connect(url));
  ASSERT_OK_AND_ASSIGN(const bool overtook, SuspendOvertakesStart(url, [&] {
                         // The view is not taken anew for who asks again within 0.1 s.
                         absl::SleepFor(absl::Milliseconds(150));
                         const auto waiting = client->Query(
                             "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN "
                             "information_schema.processlist p "
                             "ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND "
                             "p.db = DATABASE()");
                         return waiting.ok() && (*waiting)[0][0] == "1";
                       }));
  EXPECT_FALSE(overtook);
}
#endif

}  // namespace
}  // namespace matins::testing
