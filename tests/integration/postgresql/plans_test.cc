// What it costs: the due rows are found by their index without a sort, heartbeats stay inside their
// page, and a run writes three rows.
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/set_aside.h"
#include "tests/integration/stage.h"
#include "tests/support/postgres_server.h"
#include "tests/support/sql_client.h"

namespace matins::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Costs : public ::testing::Test {
 protected:
  void SetUp() override {
    url_ = TestPostgresUrl();
    auto stage = Stage::Open(url_);
    ASSERT_TRUE(stage.ok()) << stage.status();
    stage_ = *std::move(stage);
    ASSERT_OK(stage_.Apply("a"));
    auto client = SqlClient::Connect(url_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    Query(absl::StrCat("set search_path = \"", SchemaOf(url_), "\""));
  }

  std::string Query(absl::string_view sql) {
    const auto rows = client_->Query(sql);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::string text;
    if (!rows.ok()) return text;
    for (const auto& row : *rows) {
      for (const auto& cell : row) absl::StrAppend(&text, cell, "|");
      text += "\n";
    }
    return text;
  }
  int64_t Number(absl::string_view sql) { return std::stoll(Query(sql)); }
  // Of these tables: rows read, and scans of indexes; as far as backends have told.
  std::pair<int64_t, int64_t> Reads(absl::string_view first, absl::string_view second) {
    Query("select pg_stat_clear_snapshot()");
    const std::vector<std::string> cells = absl::StrSplit(
        Query(absl::StrCat("select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint, "
                           "sum(coalesce(idx_scan, 0))::bigint from pg_stat_user_tables where "
                           "relid in ('",
                           first, "'::regclass, '", second, "'::regclass)")),
        '|');
    return {std::stoll(cells[0]), std::stoll(cells[1])};
  }
  // The same once the store's connections have ended, which are closed for it: the counts arrive
  // then. There have been so many scans of indexes since `before`, at least.
  std::pair<int64_t, int64_t> ReadsAtLast(absl::string_view first, absl::string_view second,
                                          std::pair<int64_t, int64_t> before, int scans) {
    stage_.store.reset();
    stage_.acts.reset();
    auto after = before;
    for (int tries = 0; tries < 2000 && after.second < before.second + scans; ++tries) {
      after = Reads(first, second);
    }
    EXPECT_GE(after.second, before.second + scans);
    return after;
  }
  // Jobs as 'a' is, to be looked at in a day.
  void AddFarJobs() {
    Query(
        "insert into job select (jsonb_populate_record(null::job, to_jsonb(j) || "
        "jsonb_build_object('name', 'far-' || i, 'next_look', now() + interval '1 day'))).* from "
        "job j, generate_series(1, 3000) i where j.name = 'a'");
  }

  std::string url_;
  Stage stage_;
  std::unique_ptr<SqlClient> client_;
};

TEST_F(Costs, DueRowsAreFoundByTheirIndexWithoutASort) {
  // Many rows that are done or far away, and a few that are due.
  Query(
      "insert into job_watermark(job_name, period, biz_date, status, due_at, not_before, look_at) "
      "select 'a', 'f' || i, '2030-01-01', case when i % 2 = 0 then 'DONE' else 'PLANNED' end, "
      "now() + interval '1 day', now(), now() + interval '1 day' from generate_series(1, 20000) i");
  ASSERT_OK(stage_.Plan("a", 0, 20));
  Query("analyze job_watermark");
  const std::string plan = Query(
      "explain select r.job_name, r.period from job_watermark r where r.status = 'PLANNED' and "
      "r.look_at <= now() and (r.held_by is null or r.held_until <= now()) order by r.look_at "
      "limit 100");
  EXPECT_THAT(plan, HasSubstr("job_watermark_due"));
  EXPECT_THAT(plan, Not(HasSubstr("Sort")));
  EXPECT_THAT(plan, Not(HasSubstr("Seq Scan")));
}

TEST_F(Costs, HeartbeatsStayInsideTheirPageAndARunWritesThreeRows) {
  ASSERT_OK(stage_.Plan("a", 0, 1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, stage_.Claimed(KeyOf("a", 0)));
  for (int i = 0; i < 10; ++i) {
    const ExtendRequest extend{TicketOf(claim), absl::Seconds(30 + i)};
    ASSERT_OK(stage_.store->Extend({&extend, 1}).status());
  }
  const FinishRequest finish = DoneOf(claim);
  ASSERT_OK(stage_.store->Finish({&finish, 1}).status());
  stage_.store.reset();
  stage_.acts.reset();
  // The counts arrive when the backends have ended.
  const std::string query =
      "select t.n_tup_ins, t.n_tup_upd, t.n_tup_hot_upd, r.n_tup_ins from pg_stat_user_tables t, "
      "pg_stat_user_tables r where t.relid = 'job_watermark'::regclass and r.relid = "
      "'job_run'::regclass";
  std::string counts;
  for (int tries = 0; tries < 2000; ++tries) {
    Query("select pg_stat_clear_snapshot()");
    counts = Query(query);
    if (counts == "1|12|10|1|\n") break;
  }
  // One insert by the plan; START, ten beats (in place) and the finish; one attempt's row.
  EXPECT_EQ(counts, "1|12|10|1|\n");
}

// Of jobs that are not due, however many, nothing is read to find those that are, nor their
// versions to plan another.
TEST_F(Costs, LookingForDueJobsReadsNoOthers) {
  AddFarJobs();
  Query(
      "insert into job_version select (jsonb_populate_record(null::job_version, to_jsonb(v) || "
      "jsonb_build_object('job', 'far-' || i))).* from job_version v, generate_series(1, 3000) i "
      "where v.job = 'a'");
  Query("analyze job");
  Query("analyze job_version");
  const auto before = Reads("job", "job_version");
  for (int i = 0; i < 8; ++i) {
    ASSERT_OK_AND_ASSIGN(const DueJobs due, stage_.store->ReadDue({}));
    ASSERT_EQ(due.jobs.size(), 1u);
    EXPECT_EQ(due.jobs[0].versions.size(), 1u);
  }
  const auto after = ReadsAtLast("job", "job_version", before, 16);
  EXPECT_LT(after.first, before.first + 400);
}

// A statement is planned for good while the tables are small: when they have grown, planning a job
// still reads what is that job's.
TEST_F(Costs, PlanningReadsNoOthersWhereTheTablesHaveGrown) {
  constexpr int kTimes = 8;
  for (int i = 0; i < kTimes; ++i) ASSERT_OK(stage_.Plan("a", i, i + 1));
  AddFarJobs();
  Query(
      "insert into job_watermark(job_name, period, biz_date, status, due_at, not_before, look_at) "
      "select 'far-' || i, 'f', '2030-01-01', 'PLANNED', now() + interval '1 day', now(), now() + "
      "interval '1 day' from generate_series(1, 3000) i");
  // What follows is counted for itself: the first half's counts arrive when its backend has ended.
  const auto before = Reads("job", "job_watermark");
  for (int i = kTimes; i < 2 * kTimes; ++i) ASSERT_OK(stage_.Plan("a", i, i + 1));
  const auto after = ReadsAtLast("job", "job_watermark", before, 2 * kTimes);
  // The open rows of the job itself, a few times each.
  EXPECT_LT(after.first, before.first + kTimes * 400);
}

// Whether jobs have priorities is asked of all jobs: not by a START that finds nothing, and not by
// each that finds something.
TEST_F(Costs, StartReadsNoOtherJobs) {
  constexpr int kTimes = 8;
  AddFarJobs();
  Query("analyze job");
  ASSERT_OK(stage_.Plan("a", 0, kTimes));
  StartRequest start;
  start.node.name = "n1";
  start.nonce = 1;
  start.also_due = 1;
  const auto before = Reads("job", "job_run");
  for (int i = 0; i < 2 * kTimes; ++i) {
    ASSERT_OK_AND_ASSIGN(const StartAnswers answers, stage_.store->Start(start));
    EXPECT_EQ(answers.rows.size(), i < kTimes ? 1 : 0);
  }
  const auto after = ReadsAtLast("job", "job_run", before, 2 * kTimes);
  EXPECT_LT(after.first, before.first + 3500);  // once
}

// What is due for nodes that are not there is read once, and not again by each START and Hold.
TEST_F(Costs, ACrowdForOthersIsNotReadAgainAndAgain) {
  constexpr int kCrowd = 10'000, kOwn = 5;
  ASSERT_OK(stage_.Apply("b"));
  Query("update job set labels = '[\"west\"]' where name = 'b'");
  ASSERT_OK(stage_.Plan("b", 0, kCrowd, -absl::Hours(2)));
  ASSERT_OK(stage_.Plan("a", 0, 2 * kOwn + 1));
  Query("analyze job_watermark");
  StartRequest start;
  start.node.name = "n1";
  start.nonce = 1;
  start.also_due = 1;
  HoldRequest hold;
  hold.node = start.node;
  hold.due = false;
  // Answers how many calls that took.
  const auto start_own = [&] {
    int calls = 0;
    for (int started = 0; started < kOwn && calls < kCrowd; ++calls) {
      const auto answers = stage_.store->Start(start);
      EXPECT_TRUE(answers.ok()) << answers.status();
      if (!answers.ok()) break;
      for (const StartAnswer& answer : answers->rows) started += answer.claim.has_value();
      EXPECT_TRUE(answers->more || started == kOwn);
      const auto held = stage_.store->Hold(hold);
      EXPECT_TRUE(held.ok()) << held.status();
      EXPECT_TRUE(held->due);
    }
    return calls;
  };
  EXPECT_LT(start_own(), kCrowd / kPassedOver + kOwn);
  stage_.store.reset();
  const auto now = [&] { return Reads("job", "job_watermark"); };
  // The counts arrive when the backends have ended.
  auto before = now();
  for (auto last = before; (before = now()) != last; last = before) {
  }
  ASSERT_OK_AND_ASSIGN(stage_.store, stage_.database->Open());
  EXPECT_EQ(start_own(), kOwn);
  const auto after = ReadsAtLast("job", "job_watermark", before, 4 * kOwn);
  EXPECT_LT(after.first, before.first + kOwn * 1500);
}

// The server tells the plan of each statement that the store really sends: none reads the whole
// table, however much of it is not due.
TEST(Plans, NoVerbReadsTheWholeTable) {
  PostgresServer::Options options;
  options.settings = {"session_preload_libraries = 'auto_explain'",
                      "auto_explain.log_min_duration = -1"};
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start(options));
  const std::string url = server->FreshSchemaUrl();
  const std::string table = absl::StrCat("\"", SchemaOf(url), "\".job_watermark");
  {
    ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
    ASSERT_OK(stage.Apply("a"));
    ASSERT_OK(
        PostgresQuery(
            server->port(),
            absl::StrCat(
                "insert into ", table,
                "(job_name, period, biz_date, status, due_at, not_before, look_at) "
                "select 'a', 'f' || i, date '2030-01-01' + i, case when i % 2 = 0 then 'DONE' "
                "else 'PLANNED' end, now() + interval '1 day', now(), now() + "
                "interval '1 day' from generate_series(1, 50000) i; analyze"))
            .status());
    ASSERT_OK(stage.Plan("a", 0, 8));
  }
  // For the connections that come now.
  ASSERT_OK(
      PostgresQuery(server->port(), "alter database postgres set auto_explain.log_min_duration = 0")
          .status());
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  HoldRequest hold;
  hold.node.name = "n1";
  hold.limit = 3;
  ASSERT_OK(stage.store->Hold(hold).status());
  StartRequest start;
  start.node.name = "n1";
  start.nonce = 1;
  start.also_due = 5;
  start.global_limit = 100;
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, stage.store->Start(start));
  ASSERT_EQ(answers.rows.size(), 5u);
  std::vector<ExtendRequest> extends;
  std::vector<CheckpointRequest> checkpoints;
  std::vector<FinishRequest> finishes;
  for (const StartAnswer& a : answers.rows) {
    ASSERT_TRUE(a.claim.has_value());
    extends.push_back({TicketOf(*a.claim), absl::Seconds(30)});
    checkpoints.push_back({TicketOf(*a.claim), 1, "data"});
    finishes.push_back(DoneOf(*a.claim));
  }
  ASSERT_OK(stage.store->Extend(extends).status());
  ASSERT_OK(stage.store->Checkpoint(checkpoints).status());
  ASSERT_OK(stage.store->ReadStale(10).status());
  ASSERT_OK(stage.store->Finish(finishes).status());
  std::ifstream file(server->directory() + "/log");
  const std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(log, HasSubstr("job_watermark_due"));
  EXPECT_THAT(log, Not(HasSubstr("Seq Scan on job_watermark")));
}

// One row's whole way.
absl::Status RunOnce(Stage& stage, int n) {
  RETURN_IF_ERROR(stage.Plan("a", n, n + 1));
  HoldRequest hold;
  hold.node.name = "n1";
  hold.limit = 3;
  hold.due = true;
  RETURN_IF_ERROR(stage.store->Hold(hold).status());
  ASSIGN_OR_RETURN(const Claim claim, stage.Claimed(KeyOf("a", n)));
  const ExtendRequest extend{TicketOf(claim), absl::Seconds(30)};
  RETURN_IF_ERROR(stage.store->Extend({&extend, 1}).status());
  const FinishRequest finish = DoneOf(claim);
  return stage.store->Finish({&finish, 1}).status();
}

// What comes again and again is planned for any values, and so are the functions that it calls: to
// plan takes longer than to start a run.
TEST(Plans, AVerbThatComesAgainIsNotPlannedAnew) {
  PostgresServer::Options options;
  options.settings = {"shared_preload_libraries = 'pg_stat_statements'",
                      "pg_stat_statements.track = all", "pg_stat_statements.track_planning = on"};
  ASSERT_OK_AND_ASSIGN(const auto server, PostgresServer::Start(options));
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(server->FreshSchemaUrl()));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(PostgresQuery(server->port(), "create extension pg_stat_statements").status());
  for (int n = 0; n < 20; ++n) ASSERT_OK(RunOnce(stage, n));
  ASSERT_OK(PostgresQuery(server->port(), "select pg_stat_statements_reset()").status());
  for (int n = 20; n < 40; ++n) ASSERT_OK(RunOnce(stage, n));
  ASSERT_OK_AND_ASSIGN(
      const std::string planned,
      PostgresQuery(server->port(),
                    "select coalesce(string_agg(query, E'\\n\\n'), '') from pg_stat_statements "
                    "where plans >= 20"));
  EXPECT_EQ(planned, "");
}

}  // namespace
}  // namespace matins::testing
