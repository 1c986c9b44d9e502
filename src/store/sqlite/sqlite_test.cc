// What is SQLite's own: the file, its schema, its failures, and how others' changes are noticed.
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/set_aside.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/folder_test_support.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/schema_sql.h"
#include "store/sqlite/sqlite_database.h"

namespace matins::sqlite {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SqliteFile : public FolderTest {
 protected:
  std::string Path(absl::string_view name = "matins.db") const {
    return absl::StrCat(folder_, "/", name);
  }
  std::unique_ptr<Database> Migrated() {
    auto database = NewDatabase(Path(), {});
    EXPECT_TRUE(database->Migrate().ok());
    return database;
  }
  // As the sqlite3 program would.
  int Plain(const std::string& sql) {
    sqlite3* db = nullptr;
    sqlite3_open(Path().c_str(), &db);
    sqlite3_busy_timeout(db, 5000);
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) ADD_FAILURE() << sqlite3_errmsg(db) << ": " << sql;
    sqlite3_close(db);
    return rc;
  }

  static Job TestJob() {
    Job job;
    job.name = "a";
    job.schedule = "0 1 * * *";
    job.period = PeriodKind::kDay;
    job.misfire = Misfire::kEach;
    return job;
  }
  static absl::Status ApplyTo(Database& database) {
    ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, database.OpenActs());
    ApplyRequest request;
    request.jobs = {{TestJob(), "{\"name\":\"a\"}"}};
    request.source = "test";
    request.act = {"cli:test", "test"};
    return acts->Apply(request).status();
  }
  static absl::Status PlanDay(Store& store, int day) {
    ReadDueRequest read;
    read.jobs = {"a"};
    ASSIGN_OR_RETURN(const DueJobs due, store.ReadDue(read));
    PlanRequest request;
    request.writes.resize(1);
    PlanWrite& write = request.writes[0];
    write.job = "a";
    write.expected_revision = due.jobs.at(0).revision;
    write.cursor = due.now;
    Intent intent;
    intent.biz_date = absl::CivilDay(2026, 1, 1) + day;
    intent.key = {"a", absl::StrCat("day", day)};
    intent.due = intent.not_before = due.now - absl::Seconds(100 - day);
    intent.version = 1;
    write.intents = {intent};
    ASSIGN_OR_RETURN(const PlanAnswers answers, store.Plan(request));
    return answers.jobs.at(0).written ? absl::OkStatus() : absl::AbortedError("revision");
  }
  static absl::StatusOr<Claim> StartDay(Store& store, int day) {
    StartRequest request;
    request.node.name = "n1";
    request.nonce = 7;
    request.keys = {{"a", absl::StrCat("day", day)}};
    ASSIGN_OR_RETURN(const StartAnswers answers, store.Start(request));
    if (!answers.rows.at(0).claim) return absl::InternalError(answers.rows[0].blocker);
    return *answers.rows[0].claim;
  }
  static absl::StatusOr<PeriodRow> Row(Database& database, int day) {
    ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, database.OpenActs());
    RowFilter filter;
    filter.period = absl::StrCat("day", day);
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, acts->ReadRows(filter));
    if (rows.empty()) return absl::NotFoundError("no row");
    return rows[0];
  }
};

TEST_F(SqliteFile, BelongsToItsOwnerAlone) {
  auto database = Migrated();
  const auto store = database->Open();
  for (const char* name : {"matins.db", "matins.db-wal", "matins.db-shm"}) {
    struct stat info;
    ASSERT_EQ(stat(Path(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(SqliteFile, IsInWalModeAndFullySynchronous) {
  auto database = Migrated();
  auto db = Connection::Open({Path(), absl::Seconds(1), {}, false}, std::make_shared<Hub>());
  ASSERT_TRUE(db.ok());
  Statement mode = (*db)->Sql("PRAGMA journal_mode");
  ASSERT_TRUE(mode.Next());
  EXPECT_EQ(mode.Text(0), "wal");
  Statement synchronous = (*db)->Sql("PRAGMA synchronous");
  ASSERT_TRUE(synchronous.Next());
  EXPECT_EQ(synchronous.Int(0), 2);
}

TEST_F(SqliteFile, WantsItsSchemaAndSaysHow) {
  auto database = NewDatabase(Path(), {});
  EXPECT_EQ(database->Open().status().code(), absl::StatusCode::kNotFound);
  Plain("CREATE TABLE other (x)");
  const absl::Status missing = database->Open().status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("matins db migrate"));
  ASSERT_TRUE(database->Migrate().ok());
  EXPECT_TRUE(database->Migrate().ok()) << "a second time changes nothing";
  EXPECT_TRUE(database->Open().ok());
}

TEST_F(SqliteFile, RefusesANewerSchema) {
  auto database = Migrated();
  Plain("UPDATE matins_meta SET value = 99 WHERE key = 'schema'");
  EXPECT_EQ(database->Open().status().code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status status = database->Migrate();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer matins"));
}

TEST_F(SqliteFile, TwoMigratingProgramsDoItOnce) {
  absl::Status statuses[2];
  std::thread other([&] { statuses[1] = NewDatabase(Path(), {})->Migrate(); });
  statuses[0] = NewDatabase(Path(), {})->Migrate();
  other.join();
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_TRUE(statuses[1].ok()) << statuses[1];
}

TEST_F(SqliteFile, TakesOverTheFourColumnTableWithItsRows) {
  Plain(
      "CREATE TABLE job_watermark (job_name TEXT, biz_date TEXT, status TEXT, finished_at TEXT, "
      "remark TEXT, PRIMARY KEY (job_name, biz_date)); INSERT INTO job_watermark VALUES ('a', "
      "'2026-01-01', 'DONE', '2026-01-02 01:00:05', 'by cron'), ('a', '2026-01-02', 'FAILED', "
      "NULL, NULL)");
  auto database = Migrated();
  auto acts = database->OpenActs();
  ASSERT_TRUE(acts.ok()) << acts.status();
  const auto rows = (*acts)->ReadRows({});
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].key, (PeriodKey{"a", "2026-01-01"}));
  EXPECT_EQ((*rows)[0].status, PeriodStatus::kDone);
  EXPECT_EQ((*rows)[0].finished_at,
            absl::FromCivil(absl::CivilSecond(2026, 1, 2, 1, 0, 5), absl::UTCTimeZone()));
  EXPECT_EQ((*rows)[1].status, PeriodStatus::kFailed);
  // The old programs go on writing, two hours of one day stand side by side, nothing is twice.
  Plain(
      "INSERT INTO job_watermark (job_name, biz_date, status, finished_at) VALUES ('a', "
      "'2026-01-03', 'DONE', NULL); INSERT OR IGNORE INTO job_watermark (job_name, biz_date, "
      "status) VALUES ('a', '2026-01-03', 'RUNNING'); INSERT INTO job_watermark (job_name, "
      "period, biz_date, status) VALUES ('a', 'h1', '2026-01-03', 'DONE')");
  const auto more = (*acts)->ReadRows({});
  ASSERT_TRUE(more.ok());
  ASSERT_EQ(more->size(), 4u);
  EXPECT_EQ((*more)[2].key.period, "2026-01-03");
  EXPECT_EQ((*more)[2].status, PeriodStatus::kDone);
}

TEST_F(SqliteFile, AStoreOfTheFirstSchemaIsTakenToThisOne) {
  {
    auto db = Connection::Open({Path(), absl::Seconds(1), {}, true}, std::make_shared<Hub>());
    ASSERT_TRUE(db.ok());
    for (const char* part : {kWatermarkTable, kOtherTables, kIndexes, kTriggers}) {
      ASSERT_TRUE((*db)->Script(part).ok());
    }
  }
  Plain("INSERT INTO matins_meta VALUES ('schema', 1)");
  Plain("UPDATE matins_meta SET value = 'full' WHERE key = 'journal'");
  auto database = Migrated();
  auto check = database->Check();
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_EQ(check->version, check->wanted);
  EXPECT_THAT(check->problems, IsEmpty());
  // Its journal goes on, and ends when it is told to.
  const auto rows = [&] {
    auto db = Connection::Open({Path(), absl::Seconds(1), {}, false}, std::make_shared<Hub>());
    Statement count = (*db)->Sql("SELECT count(*) FROM job_journal");
    return count.Next() ? count.Int(0) : -1;
  };
  Plain(
      "INSERT INTO job_watermark (job_name, biz_date, status) VALUES ('x', '2026-01-01', 'DONE')");
  EXPECT_EQ(rows(), 0);  // as another program writes it: its insert has no period yet
  Plain("UPDATE job_watermark SET ver = 2");
  EXPECT_EQ(rows(), 1);
  ASSERT_TRUE((*database->OpenActs())->SetJournal(false).ok());
  Plain("UPDATE job_watermark SET ver = 3");
  EXPECT_EQ(rows(), 1);
}

TEST_F(SqliteFile, ACopyOfTheFirstSchemaIsRestored) {
  const std::string copy = Path("copy.db");
  {
    auto db = Connection::Open({copy, absl::Seconds(1), {}, true}, std::make_shared<Hub>());
    ASSERT_TRUE(db.ok());
    for (const char* part : {kWatermarkTable, kOtherTables, kIndexes, kTriggers}) {
      ASSERT_TRUE((*db)->Script(part).ok());
    }
    ASSERT_TRUE((*db)->Script("INSERT INTO matins_meta VALUES ('schema', 1)").ok());
  }
  auto database = NewDatabase(Path(), {});
  const absl::Status restored = database->Restore(copy);
  EXPECT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(database->Check()->problems, IsEmpty());
  EXPECT_TRUE(database->Open().ok());
}

TEST_F(SqliteFile, CheckFindsAJournalWithoutItsTriggers) {
  auto database = Migrated();
  ASSERT_TRUE((*database->OpenActs())->SetJournal(true).ok());
  EXPECT_THAT(database->Check()->problems, IsEmpty());
  Plain("DROP TRIGGER job_watermark_journal_update");
  EXPECT_THAT(database->Check()->problems, Contains(HasSubstr("job_watermark_journal_update")));
}

TEST_F(SqliteFile, RefusesATableThatIsNoWatermark) {
  Plain("CREATE TABLE job_watermark (id INTEGER, biz_date TEXT)");
  const absl::Status status = NewDatabase(Path(), {})->Migrate();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no column job_name"));
}

TEST_F(SqliteFile, CheckFindsALostIndexAndOpenRights) {
  auto database = Migrated();
  auto check = database->Check();
  ASSERT_TRUE(check.ok()) << check.status();
  EXPECT_THAT(check->problems, IsEmpty());
  Plain("DROP INDEX job_watermark_lock; DROP TRIGGER job_watermark_deleted");
  chmod(Path().c_str(), 0644);
  check = database->Check();
  ASSERT_TRUE(check.ok());
  EXPECT_THAT(check->problems, Contains(HasSubstr("missing index job_watermark_lock")));
  EXPECT_THAT(check->problems, Contains(HasSubstr("missing trigger job_watermark_deleted")));
  EXPECT_THAT(check->problems, Contains(HasSubstr("chmod 600")));
}

TEST_F(SqliteFile, ThatCannotBeOpenedSaysWhatIsMissing) {
  Migrated();
  std::filesystem::create_directory(Path() + "-wal");
  const absl::Status status = NewDatabase(Path(), {})->Open().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("able to write in it"));
}

TEST_F(SqliteFile, ABackupIsRestoredWithAHigherEpochWhereNobodyIsAlive) {
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  auto store = database->Open();
  ASSERT_TRUE(PlanDay(**store, 0).ok());
  ASSERT_TRUE(database->Backup(Path("copy.db")).ok());
  EXPECT_EQ(database->Backup(Path("copy.db")).code(), absl::StatusCode::kAlreadyExists);
  const auto first = StartDay(**store, 0);
  ASSERT_TRUE(first.ok()) << first.status();
  TickRequest tick;
  tick.node.name = "n1";
  ASSERT_TRUE((*store)->Tick(tick).ok());
  const absl::Status refused = database->Restore(Path("copy.db"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("n1"));
  ASSERT_TRUE((*store)->Leave(tick.node).ok());
  ASSERT_TRUE(database->Restore(Path("copy.db")).ok());
  auto again = database->Open();
  ASSERT_TRUE(again.ok()) << again.status();
  const auto second = StartDay(**again, 0);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(second->fence, first->fence) << "a fence was given twice";
}

TEST_F(SqliteFile, RestoreRefusesWhatIsNoBackup) {
  auto database = Migrated();
  auto other = NewDatabase(Path("other.db"), {});
  EXPECT_EQ(database->Restore(Path("missing.db")).code(), absl::StatusCode::kNotFound);
  sqlite3* db = nullptr;
  sqlite3_open(Path("empty.db").c_str(), &db);
  sqlite3_exec(db, "CREATE TABLE x (y)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(database->Restore(Path("empty.db")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(database->Open().ok());
}

// A write that the disk refuses is Unavailable, and nothing of it is there.
TEST_F(SqliteFile, AFullDiskLeavesNothingHalfDone) {
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  auto store = database->Open();
  ASSERT_TRUE(PlanDay(**store, 0).ok());
  const auto claim = StartDay(**store, 0);
  ASSERT_TRUE(claim.ok());
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit full = before;
  full.rlim_cur = std::filesystem::file_size(Path("matins.db-wal"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  FinishRequest request;
  request.ticket = TicketOf(*claim);
  request.outcome.output_bytes = 1;
  request.outcome.output_head = std::string(100'000, 'x');
  request.node = "n1";
  const absl::Status status = (*store)->Finish({&request, 1}).status();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  const auto row = Row(*database, 0);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->status, PeriodStatus::kRunning);
  const auto answers = (*store)->Finish({&request, 1});
  ASSERT_TRUE(answers.ok()) << answers.status();
  EXPECT_TRUE((*answers)[0].accepted()) << "the same call may be sent again";
}

TEST_F(SqliteFile, ALockedFileIsUnavailableWithinTheCallsDeadline) {
  DatabaseOptions options;
  options.call_deadline = absl::Milliseconds(50);
  auto database = NewDatabase(Path(), options);
  ASSERT_TRUE(database->Migrate().ok());
  ASSERT_TRUE(ApplyTo(*database).ok());
  auto store = database->Open();
  sqlite3* db = nullptr;
  sqlite3_open(Path().c_str(), &db);
  sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  EXPECT_EQ((*store)->Plan({}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE((*store)->ReadDue({}).ok()) << "readers do not wait for writers";
  sqlite3_close(db);
  EXPECT_TRUE((*store)->Plan({}).ok());
}

TEST(BusyPause, IsShortAndNeverLongerForWhoHasWaitedLonger) {
  absl::Duration last = absl::Milliseconds(5);
  for (const int waited_ms : {0, 100, 300, 900, 1500, 4900}) {
    const absl::Duration waited = absl::Milliseconds(waited_ms);
    const absl::Duration most = Connection::BusyPause(waited, 0.999999);
    EXPECT_LE(most, last);
    EXPECT_GT(Connection::BusyPause(waited, 0), absl::ZeroDuration());
    EXPECT_LT(Connection::BusyPause(waited, 0), most / 2) << "nobody keeps step with a writer";
    last = most;
  }
  EXPECT_LE(last, absl::Milliseconds(1));
}

// Three processes' writers that take the lock again as soon as they have given it back, and hold it
// most of the time.
TEST_F(SqliteFile, ACallGetsItsTurnBesideTightWriters) {
  auto database = Migrated();
  Plain("CREATE TABLE busy (x)");
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&] {
      sqlite3* db = nullptr;
      sqlite3_open(Path().c_str(), &db);
      sqlite3_busy_timeout(db, 60'000);
      while (!over) {
        sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO busy VALUES (1)", nullptr, nullptr, nullptr);
        usleep(5000);
        sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
      }
      sqlite3_close(db);
    });
  }
  auto db = Connection::Open({Path(), absl::Seconds(30), {}, false}, std::make_shared<Hub>());
  ASSERT_TRUE(db.ok()) << db.status();
  for (int call = 0; call < 10; ++call) {
    absl::StatusOr<Transaction> transaction = Transaction::Begin(**db, "tick");
    EXPECT_TRUE(transaction.ok()) << "call " << call << ": " << transaction.status();
    if (!transaction.ok()) break;
    EXPECT_TRUE(transaction->Commit().ok());
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
}

// Counts what SQLite does on the connections that are opened meanwhile, in parts of 100 steps.
class StepCount {
 public:
  StepCount() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(Watch)); }
  ~StepCount() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(Watch)); }
  static int64_t Take() { return std::exchange(hundreds_, 0) * 100; }

 private:
  static int Watch(sqlite3* db, const char** /*error*/, const sqlite3_api_routines* /*api*/) {
    sqlite3_progress_handler(
        db, 100,
        [](void*) {
          ++hundreds_;
          return 0;
        },
        nullptr);
    return SQLITE_OK;
  }
  static inline int64_t hundreds_ = 0;
};

// What is due for nodes that are not there is read once, and not again by each START and Hold.
TEST_F(SqliteFile, ACrowdForOthersIsNotReadAgainAndAgain) {
  constexpr int kCrowd = 10'000, kOwn = 20;
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  const std::string crowd = absl::StrCat(
      "UPDATE job SET labels = '[\"west\"]' WHERE name = 'a';"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ",
      kCrowd,
      ") INSERT INTO job_watermark (job_name, period, biz_date, status, due_at, not_before, "
      "look_at) SELECT 'a', 'c' || i, '2026-01-01', 'PLANNED', i, i, i FROM n;");
  ASSERT_EQ(Plain(crowd), SQLITE_OK);
  {
    auto acts = database->OpenActs();
    ASSERT_TRUE(acts.ok()) << acts.status();
    Job own = TestJob();
    own.name = "own";
    own.overlap = Overlap::kAllow;
    own.lock.scope = LockScope::kPeriod;
    ApplyRequest request;
    request.jobs = {{own, "{\"name\":\"own\"}"}};
    request.source = "test";
    request.act = {"cli:test", "test"};
    ASSERT_TRUE((*acts)->Apply(request).ok());
  }
  ASSERT_EQ(Plain(absl::StrCat(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ", kOwn,
                ") INSERT INTO job_watermark (job_name, period, biz_date, status, due_at, "
                "not_before, look_at) SELECT 'own', 'o' || i, '2026-01-01', 'PLANNED', 1000000 + "
                "i, 1000000 + i, 1000000 + i FROM n;")),
            SQLITE_OK);
  const StepCount steps;
  auto store = database->Open();
  ASSERT_TRUE(store.ok()) << store.status();
  StartRequest start;
  start.node.name = "n1";
  start.nonce = 7;
  start.also_due = 1;
  HoldRequest hold;
  hold.node = start.node;
  hold.due = false;
  int calls = 0;
  for (int started = 0; started < kOwn - 1 && calls < kCrowd; ++calls) {
    StepCount::Take();
    const auto answers = (*store)->Start(start);
    ASSERT_TRUE(answers.ok()) << answers.status();
    for (const StartAnswer& answer : answers->rows) started += answer.claim.has_value();
    const auto held = (*store)->Hold(hold);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_TRUE(held->due);
    EXPECT_LT(StepCount::Take(), 100'000) << "call " << calls;
  }
  EXPECT_LT(calls, kCrowd / kPassedOver + kOwn);
}

TEST_F(SqliteFile, AnAcknowledgedResultSurvivesAKill) {
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  const pid_t child = fork();
  if (child == 0) {
    auto own = NewDatabase(Path(), {});
    auto store = own->Open();
    if (!store.ok() || !PlanDay(**store, 0).ok()) _exit(1);
    const auto claim = StartDay(**store, 0);
    if (!claim.ok()) _exit(2);
    FinishRequest request;
    request.ticket = TicketOf(*claim);
    request.node = "n1";
    if (!(*store)->Finish({&request, 1}).ok()) _exit(3);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  const auto row = Row(*database, 0);
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->status, PeriodStatus::kDone);
}

#if MATINS_LAB
TEST_F(SqliteFile, ACrashBeforeTheCommitLeavesNothingAndAfterItAll) {
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  auto store = database->Open();
  ASSERT_TRUE(PlanDay(**store, 0).ok());
  const auto claim = StartDay(**store, 0);
  ASSERT_TRUE(claim.ok());
  FinishRequest request;
  request.ticket = TicketOf(*claim);
  request.node = "n1";
  for (const bool after : {false, true}) {
    const std::string point =
        absl::StrCat("sqlite.finish.", after ? "after_commit" : "before_commit");
    SetFaultHook([&](absl::string_view reached) {
      return reached == point ? InDoubtError("the reply is lost") : absl::OkStatus();
    });
    EXPECT_TRUE(IsInDoubt((*store)->Finish({&request, 1}).status()));
    SetFaultHook(nullptr);
    const auto row = Row(*database, 0);
    ASSERT_TRUE(row.ok());
    EXPECT_EQ(row->status, after ? PeriodStatus::kDone : PeriodStatus::kRunning);
  }
  const auto resolved = (*store)->Resolve({&request, 1});
  ASSERT_TRUE(resolved.ok());
  EXPECT_EQ((*resolved)[0].kind, ResolveAnswer::Kind::kCommitted);
}
#endif

TEST_F(SqliteFile, AnothersChangeEndsTheWait) {
  auto database = Migrated();
  ASSERT_TRUE(ApplyTo(*database).ok());
  auto store = database->Open();
  (*store)->AwaitChange(absl::ZeroDuration());
  std::thread other([&] { Plain("UPDATE job SET next_look = 1 WHERE name = 'a'"); });
  const absl::Time before = absl::Now();
  EXPECT_EQ((*store)->AwaitChange(absl::Minutes(5)), Heard::kWritten);
  other.join();
  EXPECT_LT(absl::Now() - before, absl::Minutes(4));
  EXPECT_EQ((*store)->AwaitChange(absl::ZeroDuration()), Heard::kNothing);
}

TEST_F(SqliteFile, AnInterruptEndsTheWait) {
  auto database = Migrated();
  auto store = database->Open();
  (*store)->AwaitChange(absl::ZeroDuration());
  std::thread other([&] { (*store)->Interrupt(); });
  const absl::Time before = absl::Now();
  (*store)->AwaitChange(absl::Minutes(5));
  other.join();
  EXPECT_LT(absl::Now() - before, absl::Minutes(4));
}

// The cost of a claim must not grow with rows that are not due: the due index is asked, never a
// scan.
TEST_F(SqliteFile, DueAndStaleAreFoundByTheirIndexes) {
  auto database = Migrated();
  auto db = Connection::Open({Path(), absl::Seconds(1), {}, false}, std::make_shared<Hub>());
  ASSERT_TRUE(db.ok());
  const auto plan = [&](const std::string& sql) {
    std::string text;
    Statement rows = (*db)->Sql(absl::StrCat("EXPLAIN QUERY PLAN ", sql));
    while (rows.Next()) absl::StrAppend(&text, rows.Text(3), "\n");
    EXPECT_TRUE((*db)->ok()) << (*db)->status();
    return text;
  };
  EXPECT_THAT(plan("SELECT w.job_name FROM job_watermark w JOIN job j ON j.name = w.job_name WHERE "
                   "w.status = 'PLANNED' AND w.look_at <= 5 AND (w.held_by = '' OR w.held_until "
                   "<= 5) ORDER BY w.priority DESC, w.due_at"),
              HasSubstr("job_watermark_due (look_at<?)"));
  EXPECT_THAT(plan("SELECT 1 FROM job_watermark WHERE status = 'RUNNING' AND lease_until <= 5"),
              HasSubstr("USING INDEX job_watermark_running"));
  EXPECT_THAT(plan("SELECT period FROM job_watermark WHERE job_name = 'a' AND due_at < 5 AND "
                   "status IN ('PLANNED', 'FAILED') ORDER BY due_at LIMIT 1"),
              HasSubstr("job_watermark_open (job_name=? AND due_at<?)"));
  EXPECT_THAT(plan("SELECT rowid FROM job_watermark WHERE job_name = 'a' AND status = 'PLANNED' "
                   "AND look_at > not_before ORDER BY due_at LIMIT 1"),
              HasSubstr("job_watermark_put_off (job_name=?)"));
  EXPECT_THAT(plan("SELECT count(*) FROM job_watermark WHERE job_name = 'a' AND status = 'RUNNING' "
                   "AND backfill >= 0"),
              HasSubstr("job_watermark_running (job_name=?)"));
  EXPECT_THAT(plan("SELECT * FROM job_watermark WHERE job_name = 'a' AND status IN ('PLANNED', "
                   "'FAILED') AND NOT held"),
              HasSubstr("job_watermark_open (job_name=?)"));
  EXPECT_THAT(plan("SELECT * FROM job_watermark WHERE job_name = 'a' AND status = 'RUNNING' AND "
                   "NOT held"),
              HasSubstr("job_watermark_running (job_name=?)"));
  EXPECT_THAT(plan("SELECT name FROM job WHERE next_look <= 5 AND NOT deleted ORDER BY next_look, "
                   "name LIMIT 500"),
              AllOf(HasSubstr("job_look (next_look<?)"), Not(HasSubstr("ORDER BY"))));
  EXPECT_THAT(plan("SELECT count(*) FROM job_watermark WHERE job_name = 'a' AND biz_date = 'x'"),
              HasSubstr("job_watermark_day (biz_date=? AND job_name=?)"));
}

}  // namespace
}  // namespace matins::sqlite
