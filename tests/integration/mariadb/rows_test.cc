// Rows as people and other programs write and delete them; names and texts of every kind; locks,
// deadlocks, packets and the clock behind a real wait.
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/mariadb/database.h"
#include "tests/integration/stage.h"
#include "tests/support/mariadb_server.h"

namespace matins::testing {
namespace {

constexpr char kFourColumns[] =
    "CREATE TABLE job_watermark (job_name VARCHAR(64), biz_date DATE, status VARCHAR(16), "
    "finished_at DATETIME";

struct Place {
  std::string url = TestMariadbUrl();
  std::unique_ptr<MariadbClient> client;
  static Place Make() {
    Place place;
    auto client = MariadbClient::Connect(place.url);
    EXPECT_TRUE(client.ok()) << client.status();
    place.client = *std::move(client);
    return place;
  }
  void Run(const std::string& sql) const {
    const auto done = client->Query(sql);
    EXPECT_TRUE(done.ok()) << done.status();
  }
  std::string Text(const std::string& sql) const {
    const auto rows = client->Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && !rows->empty() ? (*rows)[0][0] : "";
  }
};

void ExpectTakenOver(const Place& place) {
  place.Run(
      "INSERT INTO job_watermark (job_name, biz_date, status, finished_at) VALUES ('recon', "
      "'2026-10-28', 'DONE', '2026-10-29 01:02:03'), ('recon', '2026-10-29', 'FAILED', NULL)");
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row({"recon", "2026-10-28"}));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  EXPECT_EQ(row.biz_date, absl::CivilDay(2026, 10, 28));
  EXPECT_EQ(row.finished_at,
            absl::FromCivil(absl::CivilSecond(2026, 10, 29, 1, 2, 3), absl::UTCTimeZone()));
  ASSERT_OK_AND_ASSIGN(const PeriodRow failed, stage.Row({"recon", "2026-10-29"}));
  EXPECT_EQ(failed.status, PeriodStatus::kFailed);
  // Two periods of one day, which the old key forbade.
  place.Run(
      "INSERT INTO job_watermark (job_name, period, biz_date, status) VALUES ('recon', "
      "'2026-10-28T01:00:00Z', '2026-10-28', 'DONE')");
  ASSERT_OK_AND_ASSIGN(const SchemaCheck check, stage.database->Check());
  EXPECT_THAT(check.problems, ::testing::IsEmpty());
}

TEST(MariadbRows, ATableOfFourColumnsIsTakenOverWithItsRows) {
  const Place place = Place::Make();
  place.Run(absl::StrCat(kFourColumns, ", PRIMARY KEY (job_name, biz_date))"));
  ExpectTakenOver(place);
}

TEST(MariadbRows, SoIsOneWithACountedKeyAnotherEngineAndAnotherCharacterSet) {
  const Place place = Place::Make();
  place.Run(
      absl::StrCat(kFourColumns,
                   " NOT NULL DEFAULT '2020-01-01 00:00:00', id BIGINT AUTO_INCREMENT PRIMARY "
                   "KEY, UNIQUE KEY one_a_day (job_name, biz_date)) ENGINE=Aria DEFAULT "
                   "CHARSET=latin1"));
  place.Run("ALTER TABLE job_watermark MODIFY finished_at DATETIME NULL");
  ExpectTakenOver(place);
}

TEST(MariadbRows, TwoRowsForOneDayAreToldWithTheMend) {
  const Place place = Place::Make();
  place.Run(absl::StrCat(kFourColumns, ")"));
  place.Run(
      "INSERT INTO job_watermark VALUES ('a', '2026-10-28', 'DONE', NULL), ('a', "
      "'2026-10-28', 'DONE', NULL)");
  ASSERT_OK_AND_ASSIGN(const auto database, OpenMariadbDatabase(place.url, {}));
  const absl::Status status = database->Migrate();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("delete one"));
  place.Run("DELETE FROM job_watermark LIMIT 1");
  ASSERT_OK(database->Migrate());
}

// As a person types it, in a session of the server's own time zone and isolation.
TEST(MariadbRows, TheDrillDeletesTheLastDaysAsTyped) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("recon"));
  for (int age = 0; age < 6; ++age) {
    place.Run(
        absl::StrCat("INSERT INTO job_watermark (job_name, biz_date, status, finished_at) "
                     "VALUES ('recon', CURDATE() - INTERVAL ",
                     age, " DAY, 'DONE', NOW())"));
  }
  ReadDueRequest read;
  read.jobs = {"recon"};
  ASSERT_OK_AND_ASSIGN(const DueJobs before, stage.store->ReadDue(read));
  place.Run("DELETE FROM job_watermark WHERE biz_date >= CURDATE() - INTERVAL 3 DAY");
  EXPECT_EQ(place.Text("SELECT COUNT(*) FROM job_watermark"), "2");
  EXPECT_EQ(place.Text("SELECT COUNT(*) FROM job_event WHERE kind = 'reopened' AND "
                       "JSON_VALUE(detail, '$.old_status') = 'DONE'"),
            "4");
  ASSERT_OK_AND_ASSIGN(const DueJobs after, stage.store->ReadDue(read));
  ASSERT_TRUE(after.jobs.at(0).gap_from.has_value()) << "the deleted days are gaps again";
  EXPECT_GT(after.jobs[0].revision, before.jobs.at(0).revision);
  ASSERT_OK_AND_ASSIGN(const DueJobs due, stage.store->ReadDue({}));
  EXPECT_EQ(due.jobs.size(), 1u) << "planning looks at once";
}

TEST(MariadbRows, NamesAreComparedAsBytesTrailingBlanksIncluded) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  const std::vector<std::string> names = {"a", "A", "a ", "\xc3\xa4", "a\\", "it's", "a%"};
  for (const std::string& name : names) ASSERT_OK(stage.Apply(name));
  ASSERT_OK_AND_ASSIGN(const auto jobs, stage.acts->ReadJobs(""));
  EXPECT_EQ(jobs.size(), names.size());
  for (const std::string& name : names) {
    ASSERT_OK(stage.Plan(name, 0, 1));
    ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf(name, 0)));
    EXPECT_EQ(claim.key.job, name);
    const FinishRequest finish = DoneOf(claim);
    ASSERT_OK_AND_ASSIGN(const auto answers, stage.store->Finish({&finish, 1}));
    EXPECT_EQ(answers[0].why, "");
  }
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, stage.acts->ReadStatus());
  EXPECT_EQ(status.planned + status.running, 0);
}

TEST(MariadbRows, BytesOfEveryKindComeBackAsTheyWere) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", 0)));
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const CheckpointRequest checkpoint{TicketOf(claim), 1, bytes};
  ASSERT_OK(stage.store->Checkpoint({&checkpoint, 1}).status());
  FinishRequest finish = DoneOf(claim);
  finish.outcome.kind = Outcome::Kind::kRetry;
  finish.outcome.reason = reason::kExit;
  finish.outcome.message = "it's \"\\so\\\" \xff ? @NOW";
  finish.outcome.output_head = bytes;
  finish.outcome.output_bytes = 256;
  ASSERT_OK_AND_ASSIGN(const auto answers, stage.store->Finish({&finish, 1}));
  EXPECT_EQ(answers[0].why, "");
  ASSERT_OK_AND_ASSIGN(const OutputRow output, stage.acts->ReadOutput(claim.fence));
  EXPECT_EQ(output.head, bytes);
  ASSERT_OK_AND_ASSIGN(const auto runs, stage.acts->ReadRuns({}));
  EXPECT_EQ(runs.at(0).message, "it's \"\\so\\\" ? ? @NOW");
  ASSERT_OK_AND_ASSIGN(const Claim again, stage.Claimed(KeyOf("a", 0)));
  EXPECT_EQ(again.checkpoint_data, bytes);
}

// The clock is read behind the wait for the row's lock, not before it: no test clock here.
TEST(MariadbRows, ALeaseThatEndsWhileItsRowIsLockedIsNotExtended) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", 0)));
  place.Run(
      "UPDATE job_watermark SET lease_until = UTC_TIMESTAMP(6) + INTERVAL 300000 MICROSECOND "
      "WHERE status = 'RUNNING'");
  place.Run("BEGIN; SELECT 1 FROM job_watermark FOR UPDATE");
  absl::StatusOr<std::vector<ExtendAnswer>> answer;
  std::thread beat([&] {
    const ExtendRequest extend{TicketOf(claim), absl::Seconds(30)};
    answer = stage.store->Extend({&extend, 1});
  });
  // The lock is kept until the lease has ended by the server's clock.
  while (place.Text("SELECT UTC_TIMESTAMP(6) > lease_until FROM job_watermark") != "1") {
  }
  place.Run("ROLLBACK");
  beat.join();
  ASSERT_OK(answer.status());
  EXPECT_THAT((*answer)[0].refusal.why, ::testing::AnyOf("lease", "busy"));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(claim.key));
  EXPECT_LT(row.lease_until, claim.lease_until) << "extended after its end";
}

TEST(MariadbRows, OneLockedRowCostsTheOthersNothing) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 50));
  std::vector<ExtendRequest> beats;
  for (int n = 0; n < 50; ++n) {
    ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", n)));
    beats.push_back({TicketOf(claim), absl::Minutes(10)});
  }
  place.Run(absl::StrCat("BEGIN; SELECT 1 FROM job_watermark WHERE period = '",
                         KeyOf("a", 7).period, "' AND job_name = 'a' FOR UPDATE"));
  ASSERT_OK_AND_ASSIGN(const auto answers, stage.store->Extend(beats));
  for (int n = 0; n < 50; ++n) {
    EXPECT_EQ(answers[static_cast<size_t>(n)].refusal.why, n == 7 ? "busy" : "") << n;
  }
  place.Run("ROLLBACK");
}

// Another program holds what a START needs, and waits for what it has: the server takes one of them
// back, and START is sent again as a whole.
TEST(MariadbRows, ADeadlockIsSentAgainAsAWhole) {
  const Place place = Place::Make();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 200));
  std::vector<Claim> claims;
  for (int n = 0; n < 200; ++n) {
    ASSERT_OK_AND_ASSIGN(claims.emplace_back(), stage.Claimed(KeyOf("a", n)));
  }
  // Rows in the other order than ours, a heavier transaction than ours, again and again.
  std::atomic<bool> ending{false};
  std::thread rival([&] {
    const auto client = MariadbClient::Connect(place.url);
    while (!ending && client.ok()) {
      (*client)
          ->Query(
              "SET innodb_lock_wait_timeout = 1; BEGIN; SELECT 1 FROM job_watermark WHERE "
              "job_name = 'a' ORDER BY job_name DESC, period DESC FOR UPDATE; COMMIT")
          .IgnoreError();
    }
  });
  std::vector<FinishRequest> finishes;
  for (const Claim& claim : claims) finishes.push_back(DoneOf(claim));
  int done = 0;
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (done < 200 && absl::Now() < until) {
    const auto answers = stage.store->Finish(finishes);
    ASSERT_FALSE(IsInDoubt(answers.status())) << answers.status();
    if (!answers.ok()) continue;
    std::vector<FinishRequest> left;
    for (size_t i = 0; i < answers->size(); ++i) {
      if ((*answers)[i].busy()) left.push_back(finishes[i]);
      done += (*answers)[i].accepted() ? 1 : 0;
    }
    finishes = std::move(left);
  }
  ending = true;
  rival.join();
  EXPECT_EQ(done, 200);
}

TEST(MariadbRows, WhatFitsNoPacketIsRefusedByItself) {
  MariadbServer::Options options;
  options.settings = {"--max-allowed-packet=1M"};
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start(options));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshUrl()));
  ASSERT_OK(stage.Apply("a"));
  // Thousands of rows in one plan: several statements.
  ASSERT_OK(stage.Plan("a", 0, 6000));
  std::vector<FinishRequest> finishes;
  for (int n = 0; n < 8; ++n) {
    ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", n)));
    finishes.push_back(DoneOf(claim));
    // Two fit one packet, eight do not; one is too large whatever is done.
    finishes.back().outcome.output_head = std::string(n == 3 ? 900'000 : 200'000, 'x');
  }
  ASSERT_OK_AND_ASSIGN(const auto answers, stage.store->Finish(finishes));
  for (size_t n = 0; n < answers.size(); ++n) {
    if (n == 3) {
      EXPECT_THAT(answers[n].why, ::testing::StartsWith("row: "));
    } else {
      EXPECT_EQ(answers[n].why, "") << n;
    }
  }
}

// What a pooler, or another program's default, may have left in a session is set right by ours.
TEST(MariadbRows, ASessionIsReadCommittedInUtcAndStrictAfterEachConnection) {
  const Place place = Place::Make();
  place.Run(
      "SET GLOBAL time_zone = '+08:00'; SET GLOBAL tx_isolation = 'REPEATABLE-READ'; "
      "SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'");
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(place.url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 2));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage.Claimed(KeyOf("a", 0)));
  EXPECT_LT(absl::AbsDuration(absl::Now() - claim.claimed_at), absl::Minutes(1));
  // Its connections die; the next ones are as the first.
  ASSERT_OK_AND_ASSIGN(
      const auto others,
      place.client->Query(absl::StrCat("SELECT id FROM information_schema.processlist WHERE db = '",
                                       DatabaseOf(place.url), "' AND id <> CONNECTION_ID()")));
  ASSERT_FALSE(others.empty());
  for (const auto& row : others) place.Run(absl::StrCat("KILL ", row[0]));
  absl::StatusOr<Claim> second;
  const absl::Time until = absl::Now() + absl::Seconds(60);
  do {
    second = stage.Claimed(KeyOf("a", 1));
  } while (!second.ok() && absl::Now() < until);
  ASSERT_OK(second.status());
  EXPECT_LT(absl::AbsDuration(absl::Now() - second->claimed_at), absl::Minutes(1));
  place.Run("SET GLOBAL time_zone = 'SYSTEM'; SET GLOBAL sql_mode = DEFAULT");
}

}  // namespace
}  // namespace matins::testing
