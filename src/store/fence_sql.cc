#include "store/fence_sql.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/fault.h"
#include "base/status.h"

namespace matins {
namespace {

// SQLite and PostgreSQL both understand these; only the names of the types differ, and SQLite takes
// PostgreSQL's.
constexpr char kTables[] =
    "CREATE TABLE IF NOT EXISTS matins_fence (\n"
    "  job TEXT NOT NULL, period TEXT NOT NULL, generation INTEGER NOT NULL, fence BIGINT NOT "
    "NULL,\n"
    "  checkpoint BIGINT NOT NULL, PRIMARY KEY (job, period));\n"
    "CREATE TABLE IF NOT EXISTS matins_effect (\n"
    "  job TEXT NOT NULL, period TEXT NOT NULL, step BIGINT NOT NULL, fence BIGINT NOT NULL,\n"
    "  PRIMARY KEY (job, period, step));\n";

// The store's schema has a sequence of the table's name: there the table is not made, and
// PostgreSQL says so in a notice alone.
constexpr char kPostgresqlIsTable[] =
    "-- An error here: this schema is the store's, with a sequence of that name. "
    "SET search_path TO your own, and begin again.\n"
    "SELECT checkpoint FROM matins_fence LIMIT 0;\n";

constexpr char kRaise[] =
    "INSERT INTO matins_fence AS f (job, period, generation, fence, checkpoint) VALUES (?, ?, ?, "
    "?, 0)\n"
    "ON CONFLICT (job, period) DO UPDATE SET\n"
    "  checkpoint = CASE WHEN f.generation = excluded.generation THEN f.checkpoint ELSE 0 END,\n"
    "  generation = excluded.generation, fence = excluded.fence\n"
    "WHERE f.fence <= excluded.fence RETURNING checkpoint";

constexpr char kStep[] =
    "UPDATE matins_fence SET checkpoint = ?\n"
    "WHERE job = ? AND period = ? AND fence = ? AND checkpoint = ?";

constexpr char kOnce[] =
    "INSERT INTO matins_effect (job, period, step, fence) VALUES (?, ?, ?, ?) ON CONFLICT DO "
    "NOTHING";

// Texts that are compared as bytes, trailing blanks included.
#define MATINS_MARIADB_NAME "VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL"

constexpr char kMariadbTables[] =
    "CREATE TABLE IF NOT EXISTS matins_fence (\n"
    "  job " MATINS_MARIADB_NAME ",\n  period " MATINS_MARIADB_NAME
    ",\n"
    "  generation INT NOT NULL, fence BIGINT NOT NULL, checkpoint BIGINT NOT NULL,\n"
    "  PRIMARY KEY (job, period)) ENGINE=InnoDB;\n"
    "CREATE TABLE IF NOT EXISTS matins_effect (\n"
    "  job " MATINS_MARIADB_NAME ",\n  period " MATINS_MARIADB_NAME
    ",\n"
    "  step BIGINT NOT NULL, fence BIGINT NOT NULL, PRIMARY KEY (job, period, step)) "
    "ENGINE=InnoDB;\n";

// Assigned from left to right: what the row was is asked before it changes.
constexpr char kMariadbRaise[] =
    "INSERT INTO matins_fence (job, period, generation, fence, checkpoint) VALUES (?, ?, ?, ?, 0)\n"
    "ON DUPLICATE KEY UPDATE\n"
    "  checkpoint = IF(VALUES(fence) < fence OR VALUES(generation) = generation, checkpoint, 0),\n"
    "  generation = IF(VALUES(fence) < fence, generation, VALUES(generation)),\n"
    "  fence = GREATEST(fence, VALUES(fence))";

constexpr char kMariadbRaised[] =
    "SELECT checkpoint FROM matins_fence\n"
    "WHERE job = ? AND period = ? AND generation = ? AND fence = ? FOR UPDATE";

constexpr char kMariadbOnce[] =
    "INSERT IGNORE INTO matins_effect (job, period, step, fence) VALUES (?, ?, ?, ?)";

// The store's clock in plain SQL, as matins_now() has it: the machine's, never below the mark.
#define MATINS_SQLITE_NOW                                                 \
  "max(CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER), " \
  "coalesce((SELECT value FROM matins_meta WHERE key = 'clock_hwm'), 0))"

constexpr char kSqliteLock[] =
    "SELECT 1 FROM job_watermark WHERE job_name = ? AND period = ? AND generation = ? AND fence = "
    "?";

constexpr char kSqliteCommit[] =
    "UPDATE job_watermark SET status = 'DONE', reason = '', ver = ver + 1, op = 'commit',\n"
    "  op_at = " MATINS_SQLITE_NOW
    ",\n"
    "  finished_at = strftime('%Y-%m-%d %H:%M:%f', 'now') || '000', lease_until = NULL,\n"
    "  run_until = NULL, held_by = '', held_until = NULL, cancel_by = NULL, cancel_why = NULL\n"
    "WHERE job_name = ? AND period = ? AND generation = ? AND fence = ? AND status = 'RUNNING'\n"
    // Two milliseconds on: plain SQL knows whole ones alone, rounded, and never calls an ended
    // lease alive (I4).
    "  AND lease_until > 2000 + " MATINS_SQLITE_NOW "\n  AND run_until > 2000 + " MATINS_SQLITE_NOW;

constexpr char kRecord[] =
    "INSERT INTO job_run (fence, job_name, period, biz_date, generation, attempt, "
    "attempts_total,\n"
    "  node, status, due_at, planned_at, dispatched_at, claimed_at, checkpointed_at, "
    "finished_at,\n"
    "  backfill, manual, version)\n"
    "SELECT fence, job_name, period, biz_date, generation, attempts, attempts_total, node, "
    "status,\n"
    "  due_at, planned_at, dispatched_at, claimed_at, checkpointed_at, op_at, backfill, manual,\n"
    "  version\n"
    "FROM job_watermark WHERE job_name = ? AND period = ? AND generation = ? AND fence = ?\n"
    "  AND status = 'DONE'\n"
    "ON CONFLICT (fence) DO NOTHING";

constexpr char kPostgresqlLock[] =
    "SELECT 1 FROM job_watermark WHERE job_name = ? AND period = ? AND generation = ? AND fence = "
    "?\nFOR UPDATE";

constexpr char kPostgresqlCommit[] =
    "UPDATE job_watermark SET status = 'DONE', reason = '', ver = ver + 1, op = 'commit',\n"
    "  op_at = matins_now(), finished_at = matins_now(), lease_until = NULL, run_until = NULL,\n"
    "  held_until = NULL, cancel_by = NULL, cancel_why = NULL\n"
    "WHERE job_name = ? AND period = ? AND generation = ? AND fence = ? AND status = 'RUNNING'\n"
    "  AND lease_until > matins_now() AND run_until > matins_now()";

// A mutant takes conditions out, and leaves each '?' where it was.
std::string StepText() {
  if (!IsMutant(Mutant::kUnfencedStep)) return kStep;
  return absl::StrReplaceAll(kStep, {{"fence = ? AND checkpoint = ?", "? > 0 AND ? >= 0"}});
}
std::string CommitText(absl::string_view commit) {
  if (!IsMutant(Mutant::kUnfencedCommit)) return std::string(commit);
  return absl::StrReplaceAll(commit, {{"generation = ? AND fence = ?", "? > 0 AND ? > 0"}});
}

constexpr char kMariadbCommit[] =
    "UPDATE job_watermark SET ver = ver + 1, op = 'commit', reason = NULL, op_at = matins_now(),\n"
    "  finished_at = matins_now(), lease_until = NULL, run_until = NULL, held_until = NULL,\n"
    "  cancel_by = NULL, cancel_why = NULL, status = 'DONE'\n"
    "WHERE job_name = ? AND period = ? AND generation = ? AND fence = ? AND status = 'RUNNING'\n"
    "  AND lease_until > matins_now() AND run_until > matins_now()";

// The statement with each '?' in turn replaced by its name.
std::string Named(absl::string_view statement, const std::vector<absl::string_view>& names) {
  std::string text;
  size_t next = 0;
  for (const char c : statement) {
    if (c == '?') {
      absl::StrAppend(&text, names[next++]);
    } else {
      text += c;
    }
  }
  return text;
}

std::string CommitScript(const FenceStatements& sql, absl::string_view begin,
                         absl::string_view note) {
  const std::vector<absl::string_view> names = {":job", ":period", ":generation", ":fence"};
  return absl::StrCat(
      "\n-- The store's own database, for a job with `commit: job`. Its own writes first, these "
      "last, COMMIT at once.\n",
      note, begin, ";\n-- ... the job's own writes ...\n", Named(sql.lock, names),
      ";\n-- No row changed: ROLLBACK and stop; another owns the period, or the lease has "
      "ended.\n",
      Named(sql.commit, names), ";\n", Named(sql.record, names), ";\nCOMMIT;\n");
}

// In MariaDB the answer is a statement of its own.
std::string Raise(const FenceStatements& sql) {
  const std::vector<absl::string_view> names = {":job", ":period", ":generation", ":fence"};
  if (sql.raised.empty()) return Named(sql.raise, names);
  return absl::StrCat("BEGIN;\n", Named(sql.raise, names), ";\n", Named(sql.raised, names),
                      ";\nCOMMIT");
}

std::string Script(const FenceStatements& sql, absl::string_view begin, absl::string_view note) {
  return absl::StrCat(
      "-- Once: the fence's table, and one for effects that must never happen twice.\n", sql.tables,
      "\n-- 1. RAISE, first thing a run does, in a transaction of its own. No row: a newer owner "
      "was here; stop.\n"
      "--    The answer is the last step that was committed in this generation; go on with the "
      "next one.\n",
      Raise(sql),
      ";\n\n-- 2. Each STEP, in one transaction with what it writes. No row changed: ROLLBACK and "
      "stop.\n",
      begin, ";\n", Named(sql.step, {":step", ":job", ":period", ":fence", ":step - 1"}),
      ";\n--    An effect that must not happen again in a later generation (money): no row "
      "inserted: leave it out.\n",
      Named(sql.once, {":job", ":period", ":step", ":fence"}),
      ";\n--    ... the step's own writes ...\nCOMMIT;\n"
      "-- After an unknown COMMIT: RAISE again and read the step from its answer.\n"
      "-- :job :period :generation :fence are MATINS_JOB, MATINS_PERIOD, MATINS_GENERATION and "
      "MATINS_FENCE.\n",
      CommitScript(sql, begin, note));
}

}  // namespace

const FenceStatements& FenceSql(FenceDialect dialect) {
  static const auto* const sqlite = new FenceStatements{
      kTables, kRaise, "", StepText(), kOnce, kSqliteLock, CommitText(kSqliteCommit), kRecord};
  static const auto* const postgresql =
      new FenceStatements{absl::StrCat(kTables, kPostgresqlIsTable),
                          kRaise,
                          "",
                          StepText(),
                          kOnce,
                          kPostgresqlLock,
                          CommitText(kPostgresqlCommit),
                          kRecord};
  static const auto* const mariadb = new FenceStatements{
      kMariadbTables,
      kMariadbRaise,
      kMariadbRaised,
      StepText(),
      kMariadbOnce,
      kPostgresqlLock,
      CommitText(kMariadbCommit),
      absl::StrReplaceAll(kRecord, {{"ON CONFLICT (fence) DO NOTHING",
                                     "ON DUPLICATE KEY UPDATE fence = VALUES(fence)"}})};
  switch (dialect) {
    case FenceDialect::kSqlite:
      return *sqlite;
    case FenceDialect::kPostgresql:
      return *postgresql;
    case FenceDialect::kMariadb:
      break;
  }
  return *mariadb;
}

absl::StatusOr<std::string> FenceSqlText(absl::string_view dialect) {
  if (dialect == "sqlite") {
    return Script(FenceSql(FenceDialect::kSqlite), "BEGIN IMMEDIATE", "");
  }
  if (dialect == "postgresql") {
    return Script(FenceSql(FenceDialect::kPostgresql), "BEGIN",
                  "-- The store's schema (matins, unless its URL says otherwise) must be in the "
                  "search_path.\n");
  }
  if (dialect == "mariadb") {
    return Script(FenceSql(FenceDialect::kMariadb), "BEGIN",
                  "-- The store's database must be the current one (USE matins), or stand before "
                  "its tables and matins_now().\n");
  }
  return BadInput("--dialect", absl::StrCat("'", dialect, "' is not known"),
                  "postgresql, mariadb or sqlite");
}

}  // namespace matins
