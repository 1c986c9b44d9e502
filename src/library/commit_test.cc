// `commit: job`: the handler writes DONE in the transaction of its own effects (I12).
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "library/test_support.h"

namespace matins::testing {
namespace {

using Status = PeriodState::Status;
using ::testing::HasSubstr;

class CommitByJob : public Stepped {
 protected:
  void SetUp() override { job.commit = CommitBy::kJob; }
  // Effect and DONE in one transaction of `db`.
  static absl::Status Commit(Sqlite& db, RunContext& run) {
    if (auto begun = db.Execute("BEGIN IMMEDIATE"); !begun.ok()) return begun.status();
    const auto effect = db.Execute("INSERT INTO effect VALUES ('" + run.period() + "')");
    absl::Status done = effect.status();
    if (done.ok()) done = run.WriteDone([&](absl::string_view sql) { return db.Execute(sql); });
    const auto ended = db.Execute(done.ok() ? "COMMIT" : "ROLLBACK");
    return done.ok() ? ended.status() : done;
  }
  std::unique_ptr<Sqlite> Books() {
    auto db = std::make_unique<Sqlite>(file);
    EXPECT_TRUE(db->Execute("CREATE TABLE IF NOT EXISTS effect (period TEXT)").ok());
    return db;
  }
};

TEST_F(CommitByJob, EffectAndDoneStandTogether) {
  std::unique_ptr<Sqlite> db = Books();
  Begin([&](RunContext& run) { return Commit(*db, run); });
  StepAt(At(2, 1));
  const PeriodState state = Read("2026-10-01");
  EXPECT_EQ(state.status, Status::kDone);
  EXPECT_EQ(state.finished_at, At(2, 1));
  EXPECT_EQ(db->Number("SELECT count(*) FROM effect"), 1);
  EXPECT_EQ(db->Number("SELECT count(*) FROM job_run WHERE status = 'DONE'"), 1);
}

TEST_F(CommitByJob, ABadEndAfterItStaysDone) {
  std::unique_ptr<Sqlite> db = Books();
  Begin([&](RunContext& run) -> absl::Status {
    EXPECT_TRUE(Commit(*db, run).ok());
    return absl::InternalError("after all was said");
  });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
}

TEST_F(CommitByJob, AGoodEndWithoutItHasFailed) {
  Begin([](RunContext&) { return absl::OkStatus(); });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kFailed);
  EXPECT_EQ(Read("2026-10-01").reason, "no_commit");
}

TEST_F(CommitByJob, AnOldOwnersCommitIsRefusedAndItsEffectRolledBack) {
  std::unique_ptr<Sqlite> db = Books();
  std::vector<CommitStatement> old;
  Begin([&](RunContext& run) -> absl::Status {
    if (!old.empty()) {
      // The old owner wakes up in the middle of the new one's run.
      EXPECT_TRUE(db->Execute("BEGIN IMMEDIATE").ok());
      for (const CommitStatement& statement : old) {
        const auto changed = db->Execute(statement.sql);
        EXPECT_TRUE(changed.ok()) << changed.status();
        EXPECT_TRUE(!statement.decides || *changed == 0);
      }
      EXPECT_TRUE(db->Execute("ROLLBACK").ok());
      return Commit(*db, run);
    }
    old = run.CommitSql();
    clock.Advance(absl::Minutes(5));
    const absl::Status late = Commit(*db, run);
    EXPECT_TRUE(absl::IsAborted(late));
    EXPECT_THAT(std::string(late.message()), HasSubstr("no longer owns close 2026-10-01"));
    return late;
  });
  StepAt(At(2, 1));
  EXPECT_EQ(Read("2026-10-01").status, Status::kDone);
  EXPECT_EQ(db->Number("SELECT count(*) FROM effect"), 1);
}

TEST_F(CommitByJob, WorksForAnHourToo) {
  std::unique_ptr<Sqlite> db = Books();
  job.schedule = "@hourly";
  job.period = PeriodKind::kHour;
  job.biz_date = "-1h";
  Begin([&](RunContext& run) {
    for (const CommitStatement& statement : run.CommitSql()) {
      EXPECT_THAT(statement.sql, ::testing::Not(HasSubstr("?")));
    }
    return Commit(*db, run);
  });
  StepAt(At(1, 13));
  EXPECT_EQ(db->Number("SELECT count(*) FROM job_watermark WHERE status = 'DONE'"), 2);
}

}  // namespace
}  // namespace matins::testing
