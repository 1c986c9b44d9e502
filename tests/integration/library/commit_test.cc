// `commit: job` on PostgreSQL: the handler's own connection knows nothing of the store's schema.
#include <libpq-fe.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "matins/scheduler.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

using Status = PeriodState::Status;

// A job's own connection, to its own schema.
class Books {
 public:
  explicit Books(const std::string& url)
      : conn_(PQconnectdb(url.substr(0, url.find("?schema=")).c_str())) {
    PQsetNoticeProcessor(
        conn_, [](void*, const char*) {}, nullptr);
  }
  ~Books() { PQfinish(conn_); }

  // How many rows it changed, or gave.
  absl::StatusOr<int64_t> Execute(absl::string_view sql) {
    PGresult* const result = PQexec(conn_, std::string(sql).c_str());
    const ExecStatusType status = PQresultStatus(result);
    int64_t changed = 0;
    (void)absl::SimpleAtoi(PQcmdTuples(result), &changed);
    if (PQntuples(result) == 1) text_ = PQgetvalue(result, 0, 0);
    PQclear(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return changed;
    return absl::InternalError(absl::StrCat(PQerrorMessage(conn_), sql));
  }
  std::string Text(absl::string_view sql) {
    const auto done = Execute(sql);
    EXPECT_TRUE(done.ok()) << done.status();
    return text_;
  }

 private:
  PGconn* const conn_;
  std::string text_;
};

class CommitOnPostgresql : public ::testing::Test {
 protected:
  void Begin(RunHandler handler) {
    SchedulerOptions options;
    options.store = url;
    auto opened = Scheduler::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    scheduler = *std::move(opened);
    ASSERT_TRUE(books.Execute(absl::StrCat("CREATE SCHEMA ", mine)).ok());
    ASSERT_TRUE(books.Execute(absl::StrCat("SET search_path = ", mine)).ok());
    ASSERT_TRUE(books.Execute("CREATE TABLE effect (period text)").ok());
    Job job;
    job.name = "o.close";
    job.schedule = "0 1 * * *";
    job.period = PeriodKind::kDay;
    job.misfire = Misfire::kEach;
    job.commit = CommitBy::kJob;
    job.handler = "close";
    ASSERT_TRUE(scheduler->AddHandler("close", std::move(handler)).ok());
    const auto applied = scheduler->Apply(job);
    ASSERT_TRUE(applied.ok()) << applied.status();
    ASSERT_TRUE(scheduler->Start().ok());
  }
  absl::Status Commit(RunContext& run) {
    absl::Status done = books.Execute("BEGIN").status();
    if (done.ok()) {
      done =
          books.Execute(absl::StrCat("INSERT INTO effect VALUES ('", run.period(), "')")).status();
    }
    if (done.ok()) done = run.WriteDone([&](absl::string_view sql) { return books.Execute(sql); });
    const auto ended = books.Execute(done.ok() ? "COMMIT" : "ROLLBACK");
    return done.ok() ? ended.status() : done;
  }
  PeriodState Run(const ByHand& request) {
    const auto period = scheduler->RunByHand(request);
    EXPECT_TRUE(period.ok()) << period.status();
    if (!period.ok()) return {};
    const auto state = scheduler->Wait(request.job, *period, absl::Minutes(2));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(PeriodState());
  }

  const std::string url = TestPostgresUrl();
  const std::string mine = absl::StrCat(SchemaOf(url), "_books");
  Books books{url};
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(CommitOnPostgresql, EffectAndDoneStandTogetherAndTheSessionIsAsItWas) {
  Begin([&](RunContext& run) { return Commit(run); });
  const PeriodState state = Run({.job = "o.close", .date = "2026-10-01"});
  EXPECT_EQ(state.status, Status::kDone) << state.reason;
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  EXPECT_EQ(books.Text("SELECT count(*) FROM effect"), "1");
  EXPECT_EQ(books.Text("SHOW search_path"), mine);
}

TEST_F(CommitOnPostgresql, AnOldOwnersCommitIsRefusedAndItsEffectRolledBack) {
  std::vector<CommitStatement> old;
  Begin([&](RunContext& run) -> absl::Status {
    if (old.empty()) {
      old = run.CommitSql();
      return Commit(run);
    }
    EXPECT_TRUE(books.Execute("BEGIN").ok());
    for (const CommitStatement& statement : old) {
      const auto changed = books.Execute(statement.sql);
      EXPECT_TRUE(changed.ok()) << changed.status();
      EXPECT_TRUE(!statement.decides || *changed == 0);
    }
    EXPECT_TRUE(books.Execute("ROLLBACK").ok());
    return Commit(run);
  });
  Run({.job = "o.close", .date = "2026-10-01"});
  const PeriodState state =
      Run({.job = "o.close", .date = "2026-10-01", .again = true, .reason = "corrected"});
  EXPECT_EQ(state.status, Status::kDone);
  EXPECT_EQ(state.generation, 2);
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  EXPECT_EQ(books.Text("SELECT count(*) FROM effect"), "2") << "one a generation, none of the old";
}

TEST_F(CommitOnPostgresql, AGoodEndWithoutItHasFailed) {
  Begin([&](RunContext&) { return absl::OkStatus(); });
  const PeriodState state = Run({.job = "o.close", .date = "2026-10-01"});
  EXPECT_EQ(state.status, Status::kFailed);
  EXPECT_EQ(state.reason, "no_commit");
  EXPECT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
}

}  // namespace
}  // namespace matins::testing
