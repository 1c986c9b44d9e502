// The business fence by executing it: as a job would, with plain SQLite.
#include "store/fence_sql.h"

#include <sqlite3.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/sqlite/folder_test_support.h"
#include "store/sqlite/sqlite_database.h"

namespace matins::sqlite {
namespace {

struct Answer {
  int changed = 0;
  std::optional<int64_t> value;  // of the first row
};

// A job's own connection.
class Business {
 public:
  explicit Business(const std::string& path) { sqlite3_open(path.c_str(), &db_); }
  ~Business() { sqlite3_close(db_); }
  void Script(const std::string& sql) {
    ASSERT_EQ(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
  }
  // Numbers and texts in the statement's order.
  template <typename... Args>
  Answer Run(const std::string& sql, const Args&... args) {
    sqlite3_stmt* stmt = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &stmt, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db_);
    int next = 1;
    (Bind(stmt, next++, args), ...);
    Answer answer;
    const int before = sqlite3_total_changes(db_);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) answer.value = sqlite3_column_int64(stmt, 0);
    while (rc == SQLITE_ROW) rc = sqlite3_step(stmt);
    EXPECT_EQ(rc, SQLITE_DONE) << sqlite3_errmsg(db_);
    sqlite3_finalize(stmt);
    answer.changed = sqlite3_total_changes(db_) - before;
    return answer;
  }

 private:
  static void Bind(sqlite3_stmt* stmt, int i, int64_t value) { sqlite3_bind_int64(stmt, i, value); }
  static void Bind(sqlite3_stmt* stmt, int i, const std::string& value) {
    sqlite3_bind_text(stmt, i, value.c_str(), -1, SQLITE_TRANSIENT);
  }
  sqlite3* db_ = nullptr;
};

class Fence : public FolderTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(FolderTest::SetUp());
    path_ = absl::StrCat(folder_, "/data.db");
  }

  Answer Raise(Business& business, int generation, int64_t fence) {
    return business.Run(sql_.raise, job_, period_, int64_t{generation}, fence);
  }
  Answer Step(Business& business, int64_t step, int64_t fence) {
    return business.Run(sql_.step, step, job_, period_, fence, step - 1);
  }

  const FenceStatements& sql_ = FenceSql(FenceDialect::kSqlite);
  const std::string job_ = "recon", period_ = "2026-10-30";
  std::string path_;
};

TEST_F(Fence, ARaisedFenceShutsTheOldOwnerOutAndGivesTheNewOneTheLastStep) {
  Business business(path_);
  business.Script(sql_.tables);
  business.Script(sql_.tables);
  EXPECT_EQ(Raise(business, 1, 10).value, 0);
  EXPECT_EQ(Step(business, 1, 10).changed, 1);
  EXPECT_EQ(Step(business, 1, 10).changed, 0) << "a step is applied once";
  EXPECT_EQ(Step(business, 3, 10).changed, 0) << "no step is left out";
  EXPECT_EQ(Raise(business, 1, 11).value, 1);
  EXPECT_EQ(Step(business, 2, 10).changed, 0) << "the old owner writes no more";
  EXPECT_EQ(Raise(business, 1, 10).value, std::nullopt) << "and cannot come back";
  EXPECT_EQ(Step(business, 2, 11).changed, 1);
  EXPECT_EQ(Raise(business, 1, 11).value, 2) << "asked again after an unknown commit";
}

TEST_F(Fence, ANewGenerationStartsOverAndPaysNothingTwice) {
  Business business(path_);
  business.Script(sql_.tables);
  Raise(business, 1, 10);
  EXPECT_EQ(Step(business, 1, 10).changed, 1);
  EXPECT_EQ(business.Run(sql_.once, job_, period_, int64_t{1}, int64_t{10}).changed, 1);
  EXPECT_EQ(Raise(business, 2, 20).value, 0);
  EXPECT_EQ(Step(business, 1, 20).changed, 1);
  EXPECT_EQ(business.Run(sql_.once, job_, period_, int64_t{1}, int64_t{20}).changed, 0);
}

TEST_F(Fence, TheScriptsAreWhole) {
  const auto sqlite = FenceSqlText("sqlite");
  ASSERT_TRUE(sqlite.ok());
  auto database = NewDatabase(path_, {});
  ASSERT_TRUE(database->Migrate().ok());
  Business business(path_);
  business.Script(absl::StrReplaceAll(*sqlite, {{":job", "'recon'"},
                                                {":period", "'2026-10-30'"},
                                                {":generation", "1"},
                                                {":fence", "1"},
                                                {":step", "1"}}));
  EXPECT_EQ(business.Run("SELECT checkpoint FROM matins_fence").value, 1);
  const auto postgresql = FenceSqlText("postgresql");
  ASSERT_TRUE(postgresql.ok());
  EXPECT_THAT(*postgresql, testing::HasSubstr("FOR UPDATE"));
  const auto mariadb = FenceSqlText("mariadb");
  ASSERT_TRUE(mariadb.ok());
  EXPECT_THAT(*mariadb, testing::HasSubstr("INSERT IGNORE"));
  EXPECT_EQ(FenceSqlText("oracle").status().code(), absl::StatusCode::kInvalidArgument);
}

// commit: job, in the store's own database: the effect is there exactly when the period is DONE.
class CommitByJob : public Fence {
 protected:
  void SetUp() override {
    Fence::SetUp();
    database_ = NewDatabase(path_, {});
    ASSERT_TRUE(database_->Migrate().ok());
    auto acts = database_->OpenActs();
    ASSERT_TRUE(acts.ok());
    acts_ = *std::move(acts);
    store_ = *database_->Open();
    ApplyRequest apply;
    Job job;
    job.name = job_;
    job.commit = CommitBy::kJob;
    job.lock.ttl = absl::Hours(1);
    apply.jobs = {{job, "{\"name\":\"recon\"}"}};
    apply.source = "test";
    ASSERT_TRUE(acts_->Apply(apply).ok());
    PlanRequest plan;
    plan.writes.resize(1);
    plan.writes[0].job = job_;
    plan.writes[0].expected_revision = 1;
    Intent intent;
    intent.key = {job_, period_};
    intent.due = intent.not_before = absl::Now() - absl::Hours(1);
    plan.writes[0].intents = {intent};
    ASSERT_TRUE(store_->Plan(plan)->jobs.at(0).written);
    StartRequest start;
    start.node.name = "n1";
    start.nonce = 5;
    start.keys = {intent.key};
    const auto started = store_->Start(start);
    ASSERT_TRUE(started.ok() && started->rows.at(0).claim);
    claim_ = *started->rows[0].claim;
    Business(path_).Script("CREATE TABLE payment (amount)");
  }

  // The job's transaction; whether it was committed.
  bool Commit(int64_t fence) {
    Business business(path_);
    business.Script("BEGIN IMMEDIATE; INSERT INTO payment VALUES (100)");
    business.Run(sql_.lock, job_, period_, int64_t{claim_.generation}, fence);
    const int done =
        business.Run(sql_.commit, job_, period_, int64_t{claim_.generation}, fence).changed;
    business.Run(sql_.record, job_, period_, int64_t{claim_.generation}, fence);
    business.Script(done == 1 ? "COMMIT" : "ROLLBACK");
    return done == 1;
  }
  int64_t Payments() { return *Business(path_).Run("SELECT count(*) FROM payment").value; }
  std::string Finish(Outcome::Kind kind) {
    FinishRequest request;
    request.ticket = TicketOf(claim_);
    request.outcome.kind = kind;
    request.outcome.message = "exit code 0";
    request.node = "n1";
    const auto answers = store_->Finish({&request, 1});
    return answers.ok() ? (*answers)[0].why : answers.status().ToString();
  }

  std::unique_ptr<Database> database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ActStore> acts_;
  Claim claim_;
};

TEST_F(CommitByJob, TheEffectIsThereExactlyWhenThePeriodIsDone) {
  EXPECT_EQ(Finish(Outcome::Kind::kDoneByJob), "no_commit");
  EXPECT_FALSE(Commit(claim_.fence - 1)) << "another's fence";
  EXPECT_EQ(Payments(), 0);
  EXPECT_TRUE(Commit(claim_.fence));
  EXPECT_FALSE(Commit(claim_.fence)) << "once";
  EXPECT_EQ(Payments(), 1);
  const auto runs = acts_->ReadRuns({});
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 1u) << "the attempt has its row even where its node dies now";
  EXPECT_EQ((*runs)[0].status, "DONE");
  EXPECT_EQ(Finish(Outcome::Kind::kDoneByJob), "");
  EXPECT_EQ(acts_->ReadRuns({})->at(0).message, "exit code 0");
  EXPECT_EQ(acts_->ReadJobs(job_)->at(0).last_result, "DONE");
}

TEST_F(CommitByJob, AResolvedNoMakesTheLateCommitFail) {
  FinishRequest request;
  request.ticket = TicketOf(claim_);
  request.outcome.kind = Outcome::Kind::kDoneByJob;
  request.node = "n1";
  const auto answers = store_->Resolve({&request, 1});
  ASSERT_TRUE(answers.ok());
  EXPECT_EQ((*answers)[0].kind, ResolveAnswer::Kind::kNotCommitted);
  EXPECT_FALSE(Commit(claim_.fence));
  EXPECT_EQ(Payments(), 0);
}

TEST_F(CommitByJob, ALeaseThatEndedCommitsNothing) {
  Business(path_).Script("UPDATE job_watermark SET lease_until = 1");
  EXPECT_FALSE(Commit(claim_.fence));
  EXPECT_EQ(Payments(), 0);
}

}  // namespace
}  // namespace matins::sqlite
