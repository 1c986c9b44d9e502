// MariaDB through its C client: a commit is one packet of statements, and one round trip.
#include <mysql.h>

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "backends/backends.h"
#include "bench/floor/floor.h"

namespace matins::bench {
namespace {

// The same columns, no matter what Matins' schema has by now, without those that it has for an
// index alone; its keys, and one way to what is due.
constexpr char kBareTables[] = R"(
  CREATE TABLE bare_job_watermark LIKE job_watermark;
  ALTER TABLE bare_job_watermark DROP KEY job_watermark_open, DROP KEY job_watermark_lock,
    DROP KEY job_watermark_day, DROP KEY job_watermark_waiting, DROP KEY job_watermark_held,
    DROP KEY job_watermark_turn, DROP KEY job_watermark_backfill,
    DROP KEY job_watermark_open_backfill, DROP COLUMN running_lock, DROP COLUMN turn,
    DROP COLUMN turn_at, DROP COLUMN open_backfill;
  CREATE TABLE bare_job_run LIKE job_run;
  ALTER TABLE bare_job_run DROP KEY job_run_period, DROP KEY job_run_finished,
    DROP KEY job_run_lost, DROP COLUMN lost_at)";

constexpr char kPlan[] = R"(
  INSERT INTO @job_watermark (job_name, period, biz_date, status, generation, op, op_at, due_at,
    window_start, window_end, nominal, not_before, start_by, look_at, version, lock_key, planned_at)
  SELECT IF('$shape' = 'jobs', CONCAT('job-', LPAD(n.seq, 8, '0')), 'job'),
    DATE_FORMAT(n.at, '%Y-%m-%dT%H:%i:%sZ'), DATE(n.at), 'PLANNED', 1, 'plan', UTC_TIMESTAMP(6),
    n.at, n.at - INTERVAL 1 DAY, n.at, DATE_FORMAT(n.at, '%Y-%m-%d %H:%i:%s'), n.at,
    n.at + INTERVAL 1 DAY, n.at, 1,
    IF('$shape' = 'jobs', CONCAT('job/job-', LPAD(n.seq, 8, '0')), NULL), UTC_TIMESTAMP(6)
  FROM (SELECT seq, TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ($first + seq * $apart) MICROSECOND AS at
    FROM seq_0_to_$last) n)";

constexpr char kSetClaimed[] = R"( SET r.status = 'RUNNING', r.fence = NEXTVAL(bare_fence),
    r.nonce = $nonce, r.node = 'floor/1', r.attempts = r.attempts + 1,
    r.attempts_total = r.attempts_total + 1, r.claimed_at = UTC_TIMESTAMP(6),
    r.op_at = UTC_TIMESTAMP(6), r.op = 'claim', r.run_until = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR,
    r.lease_until = UTC_TIMESTAMP(6) + INTERVAL 30 SECOND, r.held_by = NULL, r.held_until = NULL,
    r.wait_until = NULL, r.waits_for = NULL, r.reason = NULL, r.start_by = NULL,
    r.checkpointed_at = NULL, r.cancel_by = NULL, r.cancel_why = NULL, r.finished_at = NULL,
    r.ver = r.ver + 1, r.look_at = NULL)";

// Found by the index, passing over what another connection takes, then written by key.
constexpr char kDue[] = R"(
  UPDATE (SELECT job_name, period FROM @job_watermark WHERE status = 'PLANNED' AND
      look_at <= UTC_TIMESTAMP(6) ORDER BY look_at LIMIT $batch FOR UPDATE SKIP LOCKED) d
    STRAIGHT_JOIN @job_watermark r ON r.job_name = d.job_name AND r.period = d.period)";
constexpr char kClaimed[] =
    "SELECT job_name, period, fence FROM @job_watermark WHERE status = 'RUNNING' AND "
    "nonce = $nonce";

// Single-table statements: under READ COMMITTED they pass over rows of another nonce, locked or
// not.
constexpr char kFinish[] = R"(
  UPDATE @job_watermark r SET r.status = 'DONE', r.held = FALSE, r.reason = NULL,
    r.finished_at = UTC_TIMESTAMP(6), r.look_at = r.not_before, r.waits_for = NULL,
    r.held_by = NULL, r.held_until = NULL, r.lease_until = NULL, r.run_until = NULL,
    r.cancel_by = NULL, r.cancel_why = NULL, r.ver = r.ver + 1, r.op = 'commit',
    r.op_at = UTC_TIMESTAMP(6)
  WHERE r.status = 'RUNNING' AND r.nonce = $nonce)";
constexpr char kRun[] = R"(
  INSERT INTO @job_run (fence, job_name, period, biz_date, generation, attempt, attempts_total,
    node, due_at, planned_at, dispatched_at, claimed_at, checkpointed_at, backfill, manual,
    version, finished_at, status, started_at)
  SELECT fence, job_name, period, biz_date, generation, attempts, attempts_total, node, due_at,
    planned_at, dispatched_at, claimed_at, checkpointed_at, backfill, manual, version,
    UTC_TIMESTAMP(6), 'DONE', claimed_at
  FROM @job_watermark WHERE status = 'RUNNING' AND nonce = $nonce)";

struct Target {
  std::string user, host, database, prefix;
  int port = 0;
};

class Handle {
 public:
  Handle(const Target& target, int64_t nonce) : target_(target), nonce_(nonce) {
    connection_ = mysql_init(nullptr);
    const my_bool no = 0;
    mysql_options(connection_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
    if (mysql_real_connect(connection_, target.host.c_str(), target.user.c_str(), "",
                           target.database.c_str(), static_cast<unsigned>(target.port), nullptr,
                           CLIENT_MULTI_STATEMENTS | CLIENT_FOUND_ROWS) == nullptr) {
      Die(mysql_error(connection_));
    }
    Run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  ~Handle() { mysql_close(connection_); }

  std::string In(absl::string_view sql) const {
    return absl::StrReplaceAll(sql, {{"@", target_.prefix}, {"$nonce", absl::StrCat(nonce_)}});
  }

  using Rows = std::vector<std::vector<std::string>>;
  struct Answer {
    Rows rows;          // of the last statement that has any
    int64_t found = 0;  // of the last that has none, and matched any
  };

  // A packet of statements.
  Answer Run(const std::string& sql) {
    Answer answer;
    const std::string text = In(sql);
    int status = mysql_real_query(connection_, text.data(), text.size());
    while (status == 0) {
      if (MYSQL_RES* const result = mysql_store_result(connection_); result != nullptr) {
        answer.rows.clear();
        while (MYSQL_ROW row = mysql_fetch_row(result)) {
          std::vector<std::string>& cells = answer.rows.emplace_back();
          for (unsigned i = 0; i < mysql_num_fields(result); ++i) {
            cells.emplace_back(row[i] == nullptr ? "" : row[i]);
          }
        }
        mysql_free_result(result);
      } else if (const auto found = mysql_affected_rows(connection_); found > 0) {
        answer.found = static_cast<int64_t>(found);
      }
      status = mysql_next_result(connection_);
    }
    if (mysql_errno(connection_) != 0) Die(absl::StrCat(mysql_error(connection_), " in ", text));
    return answer;
  }
  int64_t Number(const std::string& sql) { return std::atoll(Run(sql).rows.at(0).at(0).c_str()); }

 private:
  Target target_;
  int64_t nonce_;
  MYSQL* connection_;
};

class MariadbConnection : public Connection {
 public:
  MariadbConnection(const Target& target, int64_t nonce, std::vector<std::string> keys)
      : db_(target, nonce), keys_(std::move(keys)) {}

  int Claim(int batch) override {
    claimed_ =
        static_cast<int>(db_.Run(absl::StrCat("BEGIN; ", Claiming(batch), "; COMMIT")).rows.size());
    return claimed_;
  }
  void Finish() override {
    Check(db_.Run(absl::StrCat("BEGIN; ", kRun, ";", kFinish, "; COMMIT")));
  }
  int FinishAndClaim(int batch) override {
    const Handle::Answer answer =
        db_.Run(absl::StrCat("BEGIN; ", kRun, ";", kFinish, "; ", Claiming(batch), "; COMMIT"));
    claimed_ = static_cast<int>(answer.rows.size());
    return claimed_;
  }
  void ClaimRow(int64_t row) override {
    const Handle::Answer answer =
        db_.Run(absl::StrCat("UPDATE @job_watermark r", kSetClaimed,
                             " WHERE (r.job_name, r.period) = ", keys_[static_cast<size_t>(row)],
                             " AND r.status = 'PLANNED'"));
    if (answer.found != 1) Die(absl::StrCat("row ", row, " could not be claimed"));
  }

 private:
  static std::string Claiming(int batch) {
    return absl::StrCat(absl::StrReplaceAll(kDue, {{"$batch", absl::StrCat(batch)}}), kSetClaimed,
                        "; ", kClaimed);
  }
  void Check(const Handle::Answer& answer) const {
    if (answer.found != claimed_) Die(absl::StrCat("ended ", answer.found, " of ", claimed_));
  }

  Handle db_;
  std::vector<std::string> keys_;
  int claimed_ = 0;
};

class MariadbFloor : public Floor {
 public:
  void Prepare(const Setting& setting, absl::Time first, absl::Duration apart) override {
    Target target = TargetOf(setting);
    auto database = DatabaseFromUrl(setting.store);
    if (!database.ok()) Die(database.status().ToString());
    if (auto status = (*database)->Migrate(); !status.ok()) Die(status.ToString());
    target_ = std::move(target);
    Handle db(target_, 0);
    if (setting.bare) db.Run(kBareTables);
    db.Run("CREATE SEQUENCE bare_fence CACHE 10000");
    db.Run(absl::StrReplaceAll(kPlan, {{"$shape", setting.shape},
                                       {"$first", absl::StrCat(absl::ToUnixMicros(first))},
                                       {"$apart", absl::StrCat(absl::ToInt64Microseconds(apart))},
                                       {"$last", absl::StrCat(setting.runs - 1)}}));
    db.Run("ANALYZE TABLE @job_watermark");
    keys_.clear();
    for (const auto& row :
         db.Run("SELECT job_name, period FROM @job_watermark ORDER BY look_at, job_name").rows) {
      keys_.push_back(absl::StrCat("('", row[0], "', '", row[1], "')"));
    }
  }
  std::unique_ptr<Connection> Connect() override {
    return std::make_unique<MariadbConnection>(target_, ++connections_, keys_);
  }
  int64_t Done() override {
    return Handle(target_, 0)
        .Number(
            "SELECT COUNT(*) FROM @job_watermark w JOIN @job_run r ON r.fence = w.fence AND "
            "r.job_name = w.job_name AND r.period = w.period AND r.status = w.status "
            "WHERE w.status = 'DONE'");
  }

 private:
  static Target TargetOf(const Setting& setting) {
    const std::vector<std::string> parts =
        absl::StrSplit(setting.store.substr(setting.store.find("//") + 2), absl::ByAnyChar("@:/"));
    Target target;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &target.port)) {
      Die(absl::StrCat(setting.store, ": write mariadb://USER@HOST:PORT/DATABASE"));
    }
    target.user = parts[0];
    target.host = parts[1];
    target.database = parts[3];
    if (setting.bare) target.prefix = "bare_";
    return target;
  }

  Target target_;
  std::vector<std::string> keys_;
  int64_t connections_ = 0;
};

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  matins::bench::MariadbFloor floor;
  return matins::bench::Main(argc, argv, floor);
}
