// `commit: job` on a server: the handler's own connection knows nothing of the store's schema or
// database.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "demo/sql.h"
#include "gtest/gtest.h"
#include "matins/scheduler.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

using Status = PeriodState::Status;

// The store, and the job's own schema or database on the same server.
struct Place {
  std::string store, books, where;  // `where`: which asks the session where it looks
};

Place PlaceOn(const std::string& server) {
  if (server == "postgresql") {
    const std::string store = TestPostgresUrl(), schema = SchemaOf(store);
    return {store, absl::StrReplaceAll(store, {{schema, schema + "_books"}}), "SHOW search_path"};
  }
  const std::string store = TestMariadbUrl(), database = DatabaseOf(store);
  return {store, absl::StrReplaceAll(store, {{database, database + "_books"}}),
          "SELECT database()"};
}

class CommitOnServer : public ::testing::TestWithParam<std::string> {
 protected:
  void Begin(RunHandler handler) {
    SchedulerOptions options;
    options.store = place.store;
    auto opened = Scheduler::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    scheduler = *std::move(opened);
    auto connected = demo::OpenSql(place.books);
    ASSERT_TRUE(connected.ok()) << connected.status();
    books = *std::move(connected);
    ASSERT_TRUE(books->DoAll("CREATE TABLE effect (period VARCHAR(16));").ok());
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
  // How many rows it changed, or gave.
  absl::StatusOr<int64_t> Execute(absl::string_view sql) {
    const auto answer = books->Do(sql);
    if (!answer.ok()) return answer.status();
    return answer->changed;
  }
  std::string Text(absl::string_view sql) {
    const auto answer = books->Do(sql);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && !answer->rows.empty() ? answer->rows[0][0] : "";
  }
  absl::Status Commit(RunContext& run) {
    absl::Status done = books->Begin();
    if (done.ok()) done = books->Do("INSERT INTO effect VALUES (?)", {run.period()}).status();
    if (done.ok()) done = run.WriteDone([&](absl::string_view sql) { return Execute(sql); });
    if (done.ok()) return books->Commit();
    books->Rollback();
    return done;
  }
  PeriodState Run(const ByHand& request) {
    const auto period = scheduler->RunByHand(request);
    EXPECT_TRUE(period.ok()) << period.status();
    if (!period.ok()) return {};
    const auto state = scheduler->Wait(request.job, *period, absl::Minutes(2));
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(PeriodState());
  }

  const Place place = PlaceOn(GetParam());
  std::unique_ptr<demo::Sql> books;
  std::unique_ptr<Scheduler> scheduler;
};

TEST_P(CommitOnServer, EffectAndDoneStandTogetherAndTheSessionIsAsItWas) {
  std::string before;
  Begin([&](RunContext& run) {
    before = Text(place.where);
    return Commit(run);
  });
  const PeriodState state = Run({.job = "o.close", .date = "2026-10-01"});
  EXPECT_EQ(state.status, Status::kDone) << state.reason;
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  EXPECT_EQ(Text("SELECT count(*) FROM effect"), "1");
  EXPECT_EQ(Text(place.where), before);
}

TEST_P(CommitOnServer, AnOldOwnersCommitIsRefusedAndItsEffectRolledBack) {
  std::vector<CommitStatement> old;
  Begin([&](RunContext& run) -> absl::Status {
    if (old.empty()) {
      old = run.CommitSql();
      return Commit(run);
    }
    EXPECT_TRUE(books->Begin().ok());
    EXPECT_TRUE(books->Do("INSERT INTO effect VALUES ('of the old')").ok());
    for (const CommitStatement& statement : old) {
      const auto changed = Execute(statement.sql);
      EXPECT_TRUE(changed.ok()) << changed.status();
      EXPECT_TRUE(!statement.decides || *changed == 0);
    }
    books->Rollback();
    return Commit(run);
  });
  Run({.job = "o.close", .date = "2026-10-01"});
  const PeriodState state =
      Run({.job = "o.close", .date = "2026-10-01", .again = true, .reason = "corrected"});
  EXPECT_EQ(state.status, Status::kDone);
  EXPECT_EQ(state.generation, 2);
  ASSERT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
  EXPECT_EQ(Text("SELECT count(*) FROM effect"), "2") << "one a generation, none of the old";
}

TEST_P(CommitOnServer, AGoodEndWithoutItHasFailed) {
  Begin([&](RunContext&) { return absl::OkStatus(); });
  const PeriodState state = Run({.job = "o.close", .date = "2026-10-01"});
  EXPECT_EQ(state.status, Status::kFailed);
  EXPECT_EQ(state.reason, "no_commit");
  EXPECT_TRUE(scheduler->Drain(absl::Seconds(30)).ok());
}

INSTANTIATE_TEST_SUITE_P(Each, CommitOnServer, ::testing::Values("postgresql", "mariadb"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace matins::testing
