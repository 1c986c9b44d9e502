// What the server reads to answer the store, in tables that were filled a moment ago: it has no
// statistics of them, and must not need any.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/mariadb/finish.h"
#include "store/set_aside.h"
#include "tests/integration/stage.h"
#include "tests/support/mariadb_server.h"

namespace matins::testing {
namespace {

class FreshTables : public ::testing::Test {
 protected:
  void SetUp() override {
    MariadbServer::Options options;
    // What the server knows of the tables is what it knew of them when they were empty.
    options.settings = {"--innodb-stats-auto-recalc=0"};
    ASSERT_OK_AND_ASSIGN(server_, MariadbServer::Start(options));
    url_ = server_->FreshUrl();
    ASSERT_OK_AND_ASSIGN(stage_, Stage::Open(url_));
    ASSERT_OK_AND_ASSIGN(client_, MariadbClient::Connect(url_));
    ASSERT_OK(stage_.Apply("a"));
    Run("ANALYZE TABLE job, job_version, job_watermark, job_run, job_event, job_after, job_lock");
  }

  std::string Run(absl::string_view sql) {
    const auto rows = client_->Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status() << " in " << sql;
    return rows.ok() && !rows->empty() ? (*rows)[0][0] : "";
  }

  std::string Columns(absl::string_view table, absl::string_view but) {
    return Run(absl::StrCat(
        "SELECT GROUP_CONCAT(CONCAT('`', column_name, '`')) FROM "
        "information_schema.columns WHERE table_schema = DATABASE() AND table_name = '",
        table, "' AND is_generated = 'NEVER' AND column_name NOT IN (", but, ")"));
  }

  // Copies of job `a`, each strict and under a lock of its own, with one row that is due.
  void FillJobs(int count) {
    Run("SET group_concat_max_len = 100000");
    ASSERT_OK(stage_.Plan("a", 0, 1));
    const std::string job = Columns("job", "'name', 'strict', 'lock_scope', 'next_look'");
    const std::string version = Columns("job_version", "'job'");
    const std::string row = Columns("job_watermark", "'job_name', 'lock_key'");
    const std::string copies = absl::StrCat("FROM seq_1_to_", count, " s JOIN ");
    Run(absl::StrCat("INSERT INTO job (name, strict, lock_scope, next_look, ", job,
                     ") SELECT CONCAT('one-', s.seq), TRUE, 'job', UTC_TIMESTAMP(6) - INTERVAL 1 "
                     "MINUTE, ",
                     job, " ", copies, "job WHERE name = 'a'"));
    Run(absl::StrCat("INSERT INTO job_version (job, ", version, ") SELECT CONCAT('one-', s.seq), ",
                     version, " ", copies, "job_version WHERE job = 'a'"));
    Run(absl::StrCat("INSERT INTO job_watermark (job_name, lock_key, ", row,
                     ") SELECT CONCAT('one-', s.seq), CONCAT('job/one-', s.seq), ", row, " ",
                     copies, "job_watermark WHERE job_name = 'a'"));
  }

  // Keys looked up and rows read by all sessions so far, this test's own aside: those that follow.
  int64_t Reads() {
    const std::string sum = Run(
        "SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name IN "
        "('HANDLER_READ_KEY', 'HANDLER_READ_NEXT', 'HANDLER_READ_PREV', 'HANDLER_READ_FIRST', "
        "'HANDLER_READ_LAST', 'HANDLER_READ_RND_NEXT', 'HANDLER_ICP_ATTEMPTS')");
    double reads = 0;
    EXPECT_TRUE(absl::SimpleAtod(sum, &reads)) << sum;
    return static_cast<int64_t>(reads);
  }

  std::vector<Claim> Started(int also_due) {
    StartRequest start;
    start.node.name = "n1";
    start.nonce = 1;
    start.also_due = also_due;
    start.not_after = absl::InfiniteFuture();
    const auto answers = stage_.store->Start(start);
    EXPECT_TRUE(answers.ok()) << answers.status();
    std::vector<Claim> claims;
    if (!answers.ok()) return claims;
    for (const StartAnswer& a : answers->rows) {
      if (a.claim) claims.push_back(*a.claim);
    }
    return claims;
  }

  void Finish(const std::vector<Claim>& claims) {
    std::vector<FinishRequest> finishes;
    for (const Claim& claim : claims) finishes.push_back(DoneOf(claim));
    ASSERT_OK_AND_ASSIGN(const auto answers, stage_.store->Finish(finishes));
    for (const Refusal& answer : answers) EXPECT_EQ(answer.why, "");
  }

  std::unique_ptr<MariadbServer> server_;
  std::string url_;
  Stage stage_;
  std::unique_ptr<MariadbClient> client_;
};

// However many others run: so much for each run, and no more.
TEST_F(FreshTables, StartingAndEndingReadsWhatItIsGivenAndNoMore) {
  FillJobs(3000);
  for (const int others : {40, 100, 300}) {
    const std::vector<Claim> running = Started(others);
    ASSERT_EQ(running.size(), static_cast<size_t>(others));
    const int64_t before = Reads();
    const std::vector<Claim> next = Started(300);
    ASSERT_EQ(next.size(), 300u);
    const int64_t started = Reads();
    Finish(next);
    const int64_t ended = Reads();
    EXPECT_LT(started - before, 300 * 36) << "START, beside " << others;
    EXPECT_LT(ended - started, 300 * 6) << "the ends, beside " << others;
    Finish(running);
  }
}

// What is due for nodes that are not there is read once, and not again by each START and Hold.
TEST_F(FreshTables, ACrowdForOthersIsNotReadAgainAndAgain) {
  constexpr int kCrowd = 10'000, kOwn = 5;
  ASSERT_OK(stage_.Apply("b"));
  Run("UPDATE job SET labels = '[\"west\"]' WHERE name = 'b'");
  ASSERT_OK(stage_.Plan("b", 0, kCrowd, -absl::Hours(2)));
  ASSERT_OK(stage_.Plan("a", 0, 2 * kOwn + 1));
  HoldRequest hold;
  hold.node.name = "n1";
  hold.due = false;
  int64_t reads = 0;  // of the last call of each
  // Answers how many calls that took.
  const auto start_own = [&] {
    int calls = 0;
    for (int started = 0; started < kOwn && calls < kCrowd; ++calls) {
      const int64_t before = Reads();
      started += static_cast<int>(Started(1).size());
      const auto held = stage_.store->Hold(hold);
      EXPECT_TRUE(held.ok()) << held.status();
      EXPECT_TRUE(held->due);
      reads = Reads() - before;
    }
    return calls;
  };
  EXPECT_LT(start_own(), kCrowd / kPassedOver + kOwn);
  EXPECT_EQ(start_own(), kOwn);
  EXPECT_LT(reads, 3000);
}

// Others that wait, and their jobs, stay free for a START.
TEST_F(FreshTables, AWakeLocksWhomItWakesAndNobodyElse) {
  FillJobs(50);
  Run("UPDATE job_watermark SET waits_for = 'lock/ledger' WHERE job_name LIKE 'one-%'");
  mariadb::Wakes wakes({"lock/ledger"});
  wakes.Add("a", "ledger", absl::CivilDay());
  wakes.Add("a", "ledger", absl::CivilDay());
  Run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION");
  for (const mariadb::Statement& s : wakes.Statements()) Run(s.sql);
  EXPECT_EQ(Run("SELECT COUNT(*) FROM job_watermark WHERE waits_for = 'lock/ledger'"), "48");
  ASSERT_OK_AND_ASSIGN(const auto other, MariadbClient::Connect(url_));
  const auto free = [&](absl::string_view table) {
    const auto rows = other->Query(
        absl::StrCat("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; "
                     "SELECT COUNT(*) FROM (SELECT 1 FROM ",
                     table, " FOR UPDATE SKIP LOCKED) f"));
    EXPECT_TRUE(other->Query("ROLLBACK").ok());
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? (*rows)[0][0] : "";
  };
  EXPECT_EQ(free("job_watermark"), "49") << "of 51";
  EXPECT_EQ(free("job"), "51");
  Run("ROLLBACK");
}

}  // namespace
}  // namespace matins::testing
