#include "simulator/sqlite_simulation.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "store/sqlite/sqlite_database.h"

namespace matins {
namespace {

class SqliteSimulation final : public SimDatabase {
 public:
  SqliteSimulation(std::string path, std::function<absl::Time()> clock) : path_(std::move(path)) {
    DatabaseOptions options;
    options.clock = std::move(clock);
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

 private:
  absl::Status ByHand(char* sql) {
    int rc = person_ == nullptr ? sqlite3_open(path_.c_str(), &person_) : SQLITE_OK;
    if (rc == SQLITE_OK) rc = sqlite3_exec(person_, sql, nullptr, nullptr, nullptr);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? absl::OkStatus() : absl::InternalError(sqlite3_errmsg(person_));
  }

  const std::string path_;
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
