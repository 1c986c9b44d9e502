// SQLite under the conformance suite: a file in a temporary folder for each case.
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "conformance/fixture.h"
#include "store/sqlite/sqlite_database.h"

namespace matins::conformance {
namespace {

class TestClock {
 public:
  absl::Time Now() {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Set(absl::Time now) {
    absl::MutexLock lock(&mutex_);
    now_ = now;
  }

 private:
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = T0();
};

// A plain connection, as the sqlite3 program has it: without matins_now().
class Plain {
 public:
  static absl::StatusOr<std::unique_ptr<Plain>> Open(const std::string& path) {
    auto plain = std::make_unique<Plain>();
    if (sqlite3_open(path.c_str(), &plain->db) != SQLITE_OK) {
      return absl::InternalError(sqlite3_errmsg(plain->db));
    }
    sqlite3_busy_timeout(plain->db, 5000);
    return plain;
  }
  ~Plain() { sqlite3_close(db); }
  absl::StatusOr<SqlRows> Run(absl::string_view sql) {
    SqlRows rows;
    const int rc = sqlite3_exec(db, std::string(sql).c_str(), &Plain::Row, &rows, nullptr);
    if (rc != SQLITE_OK) return absl::InternalError(sqlite3_errmsg(db));
    return rows;
  }
  static int Row(void* rows, int columns, char** values, char**) {
    std::vector<std::string> cells;
    for (int i = 0; i < columns; ++i) cells.push_back(values[i] == nullptr ? "NULL" : values[i]);
    static_cast<SqlRows*>(rows)->push_back(std::move(cells));
    return 0;
  }
  sqlite3* db = nullptr;
};

// Any row's lock is the write lock.
class WriteLock final : public World::Lock {
 public:
  explicit WriteLock(std::unique_ptr<Plain> plain) : plain_(std::move(plain)) {}
  ~WriteLock() override { plain_->Run("ROLLBACK").IgnoreError(); }

 private:
  std::unique_ptr<Plain> plain_;
};

class SqliteWorld final : public World {
 public:
  explicit SqliteWorld(std::string folder)
      : folder_(std::move(folder)), path_(absl::StrCat(folder_, "/matins.db")) {
    database_ = NewDatabase();
  }
  ~SqliteWorld() override {
    database_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Database& database() override { return *database_; }
  void SetClock(absl::Time now) override { clock_->Set(now); }
  absl::Status Sql(absl::string_view statement) override { return Query(statement).status(); }
  absl::StatusOr<SqlRows> Query(absl::string_view statement) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Plain> plain, Plain::Open(path_));
    return plain->Run(statement);
  }
  absl::StatusOr<std::unique_ptr<Database>> OpenAgain() override { return NewDatabase(); }
  absl::StatusOr<std::unique_ptr<Lock>> HoldLock(const PeriodKey&) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Plain> plain, Plain::Open(path_));
    RETURN_IF_ERROR(plain->Run("BEGIN IMMEDIATE").status());
    return std::make_unique<WriteLock>(std::move(plain));
  }

 private:
  std::unique_ptr<Database> NewDatabase() {
    DatabaseOptions options;
    options.clock = [clock = clock_] { return clock->Now(); };
    return sqlite::NewDatabase(path_, std::move(options));
  }

  const std::string folder_;
  const std::string path_;
  const std::shared_ptr<TestClock> clock_ = std::make_shared<TestClock>();
  std::unique_ptr<Database> database_;
};

class SqliteBackend final : public Backend {
 public:
  std::string name() const override { return "sqlite"; }
  std::set<Capability> capabilities() const override {
    return {Capability::kSql,    Capability::kForeign,    Capability::kJournal,
            Capability::kFaults, Capability::kReopenable, Capability::kOldTable,
            Capability::kLocks};
  }
  std::set<Mutant> mutants() const override {
    return {Mutant::kNoFenceCheck,        Mutant::kNoLeaseCheck,    Mutant::kClockBeforeLock,
            Mutant::kNoUniqueKey,         Mutant::kBlindReap,       Mutant::kNoOrder,
            Mutant::kNoFenceBump,         Mutant::kNaiveResolve,    Mutant::kReviveLease,
            Mutant::kBeatShortens,        Mutant::kBeatPastTimeOut, Mutant::kNoOldLease,
            Mutant::kResolveBurnsNothing, Mutant::kCheckpointBack,  Mutant::kNoCheckpointOffer};
  }
  absl::StatusOr<std::unique_ptr<World>> NewWorld() override {
    std::string folder =
        absl::StrCat(std::filesystem::temp_directory_path().string(), "/matins-XXXXXX");
    if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("mkdtemp");
    auto world = std::make_unique<SqliteWorld>(folder);
    RETURN_IF_ERROR(world->database().Migrate());
    return world;
  }
};

}  // namespace

std::unique_ptr<Backend> MakeBackend() { return std::make_unique<SqliteBackend>(); }

}  // namespace matins::conformance
