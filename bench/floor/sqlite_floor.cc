// SQLite, WAL, synchronous=FULL: statements prepared once, rows found once and then named by rowid.
#include <sqlite3.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "backends/backends.h"
#include "bench/floor/floor.h"

namespace matins::bench {
namespace {

// The same columns, no matter what Matins' schema has by now; its keys, and one way to what is due.
constexpr char kBareTables[] = R"(
  CREATE TABLE bare_job_watermark AS SELECT * FROM job_watermark WHERE 0;
  CREATE UNIQUE INDEX bare_period ON bare_job_watermark (job_name, period);
  CREATE INDEX bare_due ON bare_job_watermark (look_at) WHERE status = 'PLANNED';
  CREATE TABLE bare_job_run (fence INTEGER PRIMARY KEY, job_name TEXT, period TEXT, biz_date TEXT,
    generation INTEGER, attempt INTEGER, attempts_total INTEGER, node TEXT, status TEXT,
    reason TEXT, message TEXT, exit_code INTEGER, signal INTEGER, result TEXT, due_at INTEGER,
    planned_at INTEGER, dispatched_at INTEGER, claimed_at INTEGER, started_at INTEGER,
    checkpointed_at INTEGER, finished_at INTEGER, backfill INTEGER, manual INTEGER,
    version INTEGER);)";

constexpr char kPlan[] = R"(
  WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
  INSERT INTO @job_watermark (job_name, period, biz_date, status, held, generation, ver, op, op_at,
    due_at, window_start, window_end, nominal, not_before, start_by, look_at, version, backfill,
    manual, params, reason, by_whom, priority, lock_key, attempts, attempts_total, losses, fence,
    nonce, node, held_by, planned_at, checkpoint)
  SELECT CASE WHEN ?4 = 'jobs' THEN printf('job-%08d', i) ELSE 'job' END,
    strftime('%Y-%m-%dT%H:%M:%SZ', (?2 + i * ?3) / 1000000, 'unixepoch'),
    date((?2 + i * ?3) / 1000000, 'unixepoch'), 'PLANNED', 0, 1, 1, 'plan', ?2, ?2 + i * ?3,
    ?2 + i * ?3 - 86400000000, ?2 + i * ?3,
    datetime((?2 + i * ?3) / 1000000, 'unixepoch'), ?2 + i * ?3, ?2 + i * ?3 + 86400000000,
    ?2 + i * ?3, 1, 0, 0, '', '', '', 0,
    CASE WHEN ?4 = 'jobs' THEN printf('job/job-%08d', i) END, 0, 0, 0, 0, 0, '', '', ?2, 0 FROM n)";

constexpr char kDue[] =
    "SELECT rowid, job_name, period FROM @job_watermark WHERE status = 'PLANNED' AND look_at <= ? "
    "ORDER BY look_at LIMIT ?";
constexpr char kClaim[] =
    "UPDATE @job_watermark SET status = 'RUNNING', ver = ver + 1, op = 'claim', op_at = ?1, "
    "attempts = attempts + 1, attempts_total = attempts_total + 1, fence = ?2, nonce = 4711, "
    "node = 'floor/1', held_by = '', held_until = NULL, claimed_at = ?1, lease_until = ?3, "
    "run_until = ?4, wait_until = NULL, start_by = NULL, reason = '', finished_at = NULL, "
    "checkpointed_at = NULL WHERE rowid = ?5 AND status = 'PLANNED'";
constexpr char kFinish[] =
    "UPDATE @job_watermark SET status = 'DONE', held = 0, reason = '', ver = ver + 1, "
    "op = 'commit', op_at = ?1, finished_at = ?2, look_at = not_before, lease_until = NULL, "
    "run_until = NULL, wait_until = NULL, held_by = '', held_until = NULL, cancel_by = NULL, "
    "cancel_why = NULL WHERE rowid = ?3 AND status = 'RUNNING' AND fence = ?4 AND nonce = 4711";
constexpr char kRun[] =
    "INSERT INTO @job_run (fence, job_name, period, biz_date, generation, attempt, "
    "attempts_total, node, status, reason, message, result, due_at, planned_at, dispatched_at, "
    "claimed_at, started_at, checkpointed_at, finished_at, backfill, manual, version) "
    "SELECT fence, job_name, period, biz_date, generation, attempts, attempts_total, node, status, "
    "'', '', '', due_at, planned_at, dispatched_at, claimed_at, claimed_at, checkpointed_at, "
    "op_at, backfill, manual, version FROM @job_watermark WHERE rowid = ?1";

struct Target {
  std::string path;
  std::string prefix;
};

class Handle {
 public:
  explicit Handle(const Target& target) : target_(target) {
    if (sqlite3_open(target.path.c_str(), &db_) != SQLITE_OK) Fail();
    sqlite3_busy_timeout(db_, 60'000);
    Script("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;");
  }
  ~Handle() { sqlite3_close_v2(db_); }

  std::string In(absl::string_view sql) const {
    return absl::StrReplaceAll(sql, {{"@", target_.prefix}});
  }
  sqlite3_stmt* Prepare(absl::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, In(sql).c_str(), -1, &statement, nullptr) != SQLITE_OK) Fail();
    return statement;
  }
  void Script(absl::string_view sql) {
    if (sqlite3_exec(db_, In(sql).c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) Fail();
  }
  // Runs a statement that answers nothing; leaves it ready for the next time.
  void Run(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) Fail();
    sqlite3_reset(statement);
  }
  int64_t Number(absl::string_view sql) {
    sqlite3_stmt* statement = Prepare(sql);
    if (sqlite3_step(statement) != SQLITE_ROW) Fail();
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
  }
  int changes() const { return sqlite3_changes(db_); }
  [[noreturn]] void Fail() { Die(sqlite3_errmsg(db_)); }

 private:
  Target target_;
  sqlite3* db_ = nullptr;
};

class SqliteConnection : public Connection {
 public:
  explicit SqliteConnection(const Target& target)
      : db_(target),
        begin_(db_.Prepare("BEGIN IMMEDIATE")),
        commit_(db_.Prepare("COMMIT")),
        due_(db_.Prepare(kDue)),
        claim_(db_.Prepare(kClaim)),
        finish_(db_.Prepare(kFinish)),
        run_(db_.Prepare(kRun)) {
    fence_ = db_.Number("SELECT coalesce(max(fence), 0) FROM @job_watermark");
  }
  ~SqliteConnection() override {
    for (sqlite3_stmt* statement : {begin_, commit_, due_, claim_, finish_, run_}) {
      sqlite3_finalize(statement);
    }
  }

  int Claim(int batch) override {
    db_.Run(begin_);
    Find(batch);
    for (const Run& run : claimed_) Claim(run);
    db_.Run(commit_);
    return static_cast<int>(claimed_.size());
  }
  void Finish() override {
    db_.Run(begin_);
    EndClaimed();
    db_.Run(commit_);
  }
  int FinishAndClaim(int batch) override {
    db_.Run(begin_);
    EndClaimed();
    Find(batch);
    for (const Run& run : claimed_) Claim(run);
    db_.Run(commit_);
    return static_cast<int>(claimed_.size());
  }
  void ClaimRow(int64_t row) override {
    db_.Run(begin_);
    Claim({row + 1, ++fence_});
    if (db_.changes() != 1) Die(absl::StrCat("row ", row, " could not be claimed"));
    db_.Run(commit_);
  }

 private:
  struct Run {
    int64_t row;
    int64_t fence;
  };

  void Find(int batch) {
    claimed_.clear();
    sqlite3_bind_int64(due_, 1, absl::ToUnixMicros(absl::Now()));
    sqlite3_bind_int(due_, 2, batch);
    while (sqlite3_step(due_) == SQLITE_ROW) {
      claimed_.push_back({sqlite3_column_int64(due_, 0), ++fence_});
    }
    sqlite3_reset(due_);
  }
  void Claim(const Run& run) {
    const int64_t now = absl::ToUnixMicros(absl::Now());
    sqlite3_bind_int64(claim_, 1, now);
    sqlite3_bind_int64(claim_, 2, run.fence);
    sqlite3_bind_int64(claim_, 3, now + 30'000'000);
    sqlite3_bind_int64(claim_, 4, now + 3'600'000'000);
    sqlite3_bind_int64(claim_, 5, run.row);
    db_.Run(claim_);
  }
  void EndClaimed() {
    const absl::Time now = absl::Now();
    const std::string text = absl::FormatTime("%Y-%m-%d %H:%M:%E6S", now, absl::UTCTimeZone());
    for (const Run& run : claimed_) {
      sqlite3_bind_int64(finish_, 1, absl::ToUnixMicros(now));
      sqlite3_bind_text(finish_, 2, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
      sqlite3_bind_int64(finish_, 3, run.row);
      sqlite3_bind_int64(finish_, 4, run.fence);
      db_.Run(finish_);
      if (db_.changes() != 1) Die(absl::StrCat("row ", run.row, " could not be ended"));
      sqlite3_bind_int64(run_, 1, run.row);
      db_.Run(run_);
    }
  }

  Handle db_;
  sqlite3_stmt *begin_, *commit_, *due_, *claim_, *finish_, *run_;
  std::vector<Run> claimed_;
  int64_t fence_ = 0;
};

class SqliteFloor : public Floor {
 public:
  void Prepare(const Setting& setting, absl::Time first, absl::Duration apart) override {
    auto database = DatabaseFromUrl(setting.store);
    if (!database.ok()) Die(database.status().ToString());
    if (auto status = (*database)->Migrate(); !status.ok()) Die(status.ToString());
    target_ = {std::string(absl::StripPrefix(setting.store, "sqlite:")),
               setting.bare ? "bare_" : ""};
    Handle db(target_);
    if (setting.bare) db.Script(kBareTables);
    sqlite3_stmt* plan = db.Prepare(kPlan);
    sqlite3_bind_int64(plan, 1, setting.runs);
    sqlite3_bind_int64(plan, 2, absl::ToUnixMicros(first));
    sqlite3_bind_int64(plan, 3, absl::ToInt64Microseconds(apart));
    sqlite3_bind_text(plan, 4, setting.shape.c_str(), -1, SQLITE_STATIC);
    db.Run(plan);
    sqlite3_finalize(plan);
    db.Script("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  std::unique_ptr<Connection> Connect() override {
    return std::make_unique<SqliteConnection>(target_);
  }
  int64_t Done() override {
    return Handle(target_).Number(
        "SELECT count(*) FROM @job_watermark w JOIN @job_run r ON r.fence = w.fence AND "
        "r.job_name = w.job_name AND r.period = w.period AND r.status = w.status "
        "WHERE w.status = 'DONE'");
  }

 private:
  Target target_;
};

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  matins::bench::SqliteFloor floor;
  return matins::bench::Main(argc, argv, floor);
}
