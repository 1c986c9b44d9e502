#include "simulator/sqlite_simulation.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "simulator/plain_instant.h"
#include "store/fence_sql.h"
#include "store/sqlite/sqlite_database.h"

namespace matins {
namespace {

class SqliteSimulation final : public SimDatabase {
 public:
  SqliteSimulation(std::string path, std::function<absl::Time()> clock)
      : path_(std::move(path)), clock_(std::move(clock)) {
    DatabaseOptions options;
    options.clock = clock_;
    database_ = sqlite::NewDatabase(path_, std::move(options));
  }
  ~SqliteSimulation() override { sqlite3_close_v2(person_); }

  Database& database() override { return *database_; }

  // Over a connection that knows nothing of Matins: no functions, no settings.
  absl::Status DeleteRow(const PeriodKey& key) override {
    return ByHand(sqlite3_mprintf("DELETE FROM job_watermark WHERE job_name = %Q AND period = %Q",
                                  key.job.c_str(), key.period.c_str()));
  }

  absl::Status InsertDoneRow(const PeriodKey& key) override {
    return ByHand(
        sqlite3_mprintf("INSERT INTO job_watermark (job_name, period, biz_date, status) VALUES "
                        "(%Q, %Q, %Q, 'DONE')",
                        key.job.c_str(), key.period.c_str(), key.period.substr(0, 10).c_str()));
  }
  absl::StatusOr<bool> CommitByJob(const PeriodKey& key, int generation, int64_t fence) override {
    const FenceStatements& sql = FenceSql(FenceDialect::kSqlite);
    RETURN_IF_ERROR(ByHand(sqlite3_mprintf("BEGIN IMMEDIATE")));
    ASSIGN_OR_RETURN(const int changed, Do(sql.commit, key, generation, fence));
    if (changed == 1) RETURN_IF_ERROR(Do(sql.record, key, generation, fence).status());
    RETURN_IF_ERROR(ByHand(sqlite3_mprintf(changed == 1 ? "COMMIT" : "ROLLBACK")));
    return changed == 1;
  }

 private:
  // One of the statements for `commit: job`, as a run's own connection has it; how many rows it
  // changed.
  absl::StatusOr<int> Do(const std::string& sql, const PeriodKey& key, int generation,
                         int64_t fence) {
    const std::string now = absl::StrCat("'", PlainInstantOf(clock_()).text, "'");
    const std::string text = absl::StrReplaceAll(sql, {{"'now'", now}});
    sqlite3_stmt* statement = nullptr;
    int rc = sqlite3_prepare_v2(person_, text.c_str(), -1, &statement, nullptr);
    if (rc == SQLITE_OK) {
      sqlite3_bind_text(statement, 1, key.job.c_str(), -1, SQLITE_STATIC);
      sqlite3_bind_text(statement, 2, key.period.c_str(), -1, SQLITE_STATIC);
      sqlite3_bind_int(statement, 3, generation);
      sqlite3_bind_int64(statement, 4, fence);
      rc = sqlite3_step(statement);
    }
    const int changed = sqlite3_changes(person_);
    sqlite3_finalize(statement);
    if (rc != SQLITE_DONE) return absl::InternalError(sqlite3_errmsg(person_));
    return changed;
  }

  absl::Status ByHand(char* sql) {
    int rc = person_ == nullptr ? sqlite3_open(path_.c_str(), &person_) : SQLITE_OK;
    if (rc == SQLITE_OK) rc = sqlite3_exec(person_, sql, nullptr, nullptr, nullptr);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? absl::OkStatus() : absl::InternalError(sqlite3_errmsg(person_));
  }

  const std::string path_;
  const std::function<absl::Time()> clock_;
  std::unique_ptr<Database> database_;
  sqlite3* person_ = nullptr;
};

}  // namespace

SimDatabaseMaker SqliteAt(std::string path) {
  return [path](std::function<absl::Time()> clock) -> absl::StatusOr<std::unique_ptr<SimDatabase>> {
    return std::make_unique<SqliteSimulation>(path, std::move(clock));
  };
}

ScratchFolder::ScratchFolder() {
  const char* chosen = std::getenv("TMPDIR");
  std::string base = chosen != nullptr ? chosen : "/tmp";
  if (chosen == nullptr && access("/dev/shm", W_OK) == 0) base = "/dev/shm";
  std::string name = absl::StrCat(base, "/matins-simulator-XXXXXX");
  if (mkdtemp(name.data()) == nullptr) {
    std::perror("a folder for the simulation");
    std::abort();
  }
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace matins
