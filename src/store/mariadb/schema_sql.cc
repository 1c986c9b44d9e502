#include "store/mariadb/schema_sql.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace matins::mariadb {
namespace {

// "@NAME", "@KEY", "@WORD", "@TEXT": texts that are compared as bytes, trailing blanks included.
std::string Typed(absl::string_view sql) {
  constexpr absl::string_view kBytes = " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin";
  return absl::StrReplaceAll(sql, {{"@NAME", absl::StrCat("VARCHAR(190)", kBytes)},
                                   {"@KEY", absl::StrCat("VARCHAR(600)", kBytes)},
                                   {"@WORD", absl::StrCat("VARCHAR(16)", kBytes)},
                                   {"@TEXT", absl::StrCat("LONGTEXT", kBytes)},
                                   {"@TABLE",
                                    " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 "
                                    "COLLATE utf8mb4_nopad_bin"}});
}

std::vector<std::string> TypedAll(std::vector<std::string> all) {
  for (std::string& sql : all) sql = Typed(sql);
  return all;
}

}  // namespace

const char kPeriodColumn[] =
    "period VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT ''";

const std::vector<std::string>& KnownColumns() {
  static const auto& columns = *new std::vector<std::string>(
      TypedAll({"job_name @NAME NOT NULL", "biz_date DATE NOT NULL", "status @WORD NOT NULL",
                "finished_at DATETIME(6) NULL"}));
  return columns;
}

const std::vector<std::pair<std::string, std::string>>& WatermarkColumns() {
  static const auto& columns = *[] {
    auto* list = new std::vector<std::pair<std::string, std::string>>{
        {"held", "BOOLEAN NOT NULL DEFAULT FALSE"},
        {"generation", "INT NOT NULL DEFAULT 1"},
        {"ver", "BIGINT NOT NULL DEFAULT 1"},
        {"op", "@WORD"},
        {"op_at", "DATETIME(6)"},
        {"due_at", "DATETIME(6)"},
        {"window_start", "DATETIME(6)"},
        {"window_end", "DATETIME(6)"},
        {"nominal", "VARCHAR(32)"},
        {"not_before", "DATETIME(6)"},
        {"start_by", "DATETIME(6)"},
        {"look_at", "DATETIME(6)"},
        {"version", "INT NOT NULL DEFAULT 0"},
        {"backfill", "BOOLEAN NOT NULL DEFAULT FALSE"},
        {"manual", "BOOLEAN NOT NULL DEFAULT FALSE"},
        {"params", "@TEXT"},
        {"reason", "@TEXT"},
        {"by_whom", "@TEXT"},
        {"priority", "INT NOT NULL DEFAULT 0"},
        {"lock_key", "@KEY"},
        {"tenant", "@NAME"},
        {"limit_key", "@KEY"},
        {"start_tag", "BIGINT NOT NULL DEFAULT 0"},
        {"attempts", "INT NOT NULL DEFAULT 0"},
        {"attempts_total", "INT NOT NULL DEFAULT 0"},
        {"losses", "INT NOT NULL DEFAULT 0"},
        {"fence", "BIGINT NOT NULL DEFAULT 0"},
        {"nonce", "BIGINT"},
        {"node", "@NAME"},
        {"held_by", "@NAME"},
        {"held_until", "DATETIME(6)"},
        {"planned_at", "DATETIME(6)"},
        {"dispatched_at", "DATETIME(6)"},
        {"claimed_at", "DATETIME(6)"},
        {"lease_until", "DATETIME(6)"},
        {"run_until", "DATETIME(6)"},
        {"wait_until", "DATETIME(6)"},
        {"checkpoint", "BIGINT NOT NULL DEFAULT 0"},
        {"checkpointed_at", "DATETIME(6)"},
        {"cancel_by", "@TEXT"},
        {"cancel_why", "@TEXT"},
        {"waits_for", "@KEY"},
        {"backfill_id", "BIGINT"},
        // How often the attempt's lease was extended; NULL is never.
        {"renewals", "INT"},
        {"open_backfill",
         "BIGINT AS (CASE WHEN status IN ('PLANNED', 'RUNNING', 'FAILED') THEN backfill_id END) "
         "STORED"},
        // The lock: a running row with a lock key is its holder, by a unique key.
        {"running_lock", "@KEY AS (CASE WHEN status = 'RUNNING' THEN lock_key END) STORED"},
        // The turn of a row that waits, where tenants are served in turn.
        {"turn",
         "BIGINT AS (CASE WHEN status = 'PLANNED' AND start_tag > 0 THEN start_tag END) STORED"},
        {"turn_at",
         "DATETIME(6) AS (CASE WHEN status = 'PLANNED' AND start_tag > 0 THEN look_at END) "
         "STORED"}};
    for (auto& column : *list) column.second = Typed(column.second);
    return list;
  }();
  return columns;
}

// No heartbeat column is in a key: a beat touches the row alone.
const std::vector<std::pair<std::string, std::string>>& WatermarkKeys() {
  static const auto& keys = *new std::vector<std::pair<std::string, std::string>>{
      {"job_watermark_due", "KEY job_watermark_due (status, look_at)"},
      {"job_watermark_open", "KEY job_watermark_open (job_name, status, due_at)"},
      {"job_watermark_lock", "UNIQUE KEY job_watermark_lock (running_lock)"},
      {"job_watermark_day", "KEY job_watermark_day (biz_date, job_name)"},
      {"job_watermark_waiting", "KEY job_watermark_waiting (waits_for, due_at)"},
      {"job_watermark_held", "KEY job_watermark_held (held_by)"},
      {"job_watermark_turn", "KEY job_watermark_turn (turn, turn_at)"},
      {"job_watermark_backfill", "KEY job_watermark_backfill (backfill_id)"},
      {"job_watermark_open_backfill", "KEY job_watermark_open_backfill (open_backfill)"}};
  return keys;
}

std::string CreateWatermark() {
  std::string sql = "CREATE TABLE IF NOT EXISTS job_watermark (";
  for (const std::string& column : KnownColumns()) absl::StrAppend(&sql, column, ", ");
  absl::StrAppend(&sql, kPeriodColumn, ", ");
  for (const auto& [name, type] : WatermarkColumns()) absl::StrAppend(&sql, name, " ", type, ", ");
  absl::StrAppend(&sql, "PRIMARY KEY (job_name, period)");
  for (const auto& [name, key] : WatermarkKeys()) absl::StrAppend(&sql, ", ", key);
  return Typed(absl::StrCat(sql, ") @TABLE"));
}

namespace {

const char* const kTables[] = {
    R"(CREATE TABLE IF NOT EXISTS job (
      name @NAME PRIMARY KEY, id VARCHAR(64) NOT NULL, version INT NOT NULL, source @TEXT NOT NULL,
      digest @TEXT, definition @TEXT NOT NULL, first_sight DATETIME(6) NOT NULL,
      floor DATETIME(6), `cursor` DATETIME(6), next_look DATETIME(6), gap_from DATETIME(6),
      pending @WORD, revision BIGINT NOT NULL DEFAULT 1, suspended_at DATETIME(6),
      suspended_by @TEXT, suspended_why @TEXT, deleted BOOLEAN NOT NULL DEFAULT FALSE,
      strict BOOLEAN NOT NULL, overlap @WORD NOT NULL, lock_scope @WORD NOT NULL,
      lock_ttl BIGINT NOT NULL, timeout BIGINT NOT NULL, grace BIGINT NOT NULL, job_limit INT,
      max_parallel INT, labels @TEXT NOT NULL, priority INT NOT NULL, recovery @WORD NOT NULL,
      max_lost INT NOT NULL, stale_after BIGINT NOT NULL, commit_by @WORD NOT NULL,
      history_succeeded INT NOT NULL, history_failed INT NOT NULL, keep_for BIGINT,
      last_success DATETIME(6), last_result @TEXT, worst_duration BIGINT,
      KEY job_next_look (deleted, next_look)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_after (job @NAME, after_job @NAME,
      PRIMARY KEY (job, after_job)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_version (job @NAME, version INT, from_at DATETIME(6),
      definition @TEXT NOT NULL, digest @TEXT, applied_by @TEXT, source @TEXT,
      PRIMARY KEY (job, version)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_source (source @KEY, digest VARCHAR(128), applied_at DATETIME(6),
      `current` BOOLEAN NOT NULL, PRIMARY KEY (source, digest)) ROW_FORMAT=DYNAMIC @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_span (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      job @NAME NOT NULL, kind @WORD NOT NULL, from_at DATETIME(6) NOT NULL, to_at DATETIME(6),
      first_period @NAME, last_period @NAME, count BIGINT NOT NULL DEFAULT 0, reason @TEXT,
      by_whom @TEXT, why @TEXT, KEY job_span_job (job, to_at)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_run (fence BIGINT PRIMARY KEY, job_name @NAME NOT NULL,
      period @NAME NOT NULL, biz_date DATE, generation INT NOT NULL, attempt INT,
      attempts_total INT, node @NAME, status @WORD NOT NULL, reason @TEXT, message @TEXT,
      exit_code INT, `signal` INT, result @TEXT, due_at DATETIME(6), planned_at DATETIME(6),
      dispatched_at DATETIME(6), claimed_at DATETIME(6), started_at DATETIME(6),
      checkpointed_at DATETIME(6), finished_at DATETIME(6), backfill BOOLEAN, manual BOOLEAN,
      version INT, KEY job_run_period (job_name, period, fence),
      KEY job_run_finished (job_name, finished_at)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_event (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      at DATETIME(6) NOT NULL, kind @WORD NOT NULL, job @NAME NOT NULL DEFAULT '',
      period @NAME NOT NULL DEFAULT '', generation INT NOT NULL DEFAULT 0, who @TEXT, why @TEXT,
      detail @TEXT, KEY job_event_reopened (kind, job, period), KEY job_event_job (job)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_checkpoint (job_name @NAME, period @NAME, generation INT,
      number BIGINT NOT NULL, data LONGBLOB, at DATETIME(6) NOT NULL,
      PRIMARY KEY (job_name, period, generation)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_figure (job_name @NAME, period @NAME, generation INT,
      fence BIGINT, name @NAME, value DOUBLE, at DATETIME(6), PRIMARY KEY (fence, name),
      KEY job_figure_period (job_name, period)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_output (fence BIGINT PRIMARY KEY, head LONGBLOB,
      tail LONGBLOB, bytes BIGINT NOT NULL, at DATETIME(6)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_lock (lock_key @KEY PRIMARY KEY, job_name @NAME,
      period @NAME, fence BIGINT, until DATETIME(6), KEY job_lock_fence (fence)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_limit (kind @WORD, name VARCHAR(200) CHARACTER SET utf8mb4
      COLLATE utf8mb4_nopad_bin, most INT NOT NULL, source @TEXT NOT NULL, by_whom @TEXT NOT NULL,
      at DATETIME(6) NOT NULL, PRIMARY KEY (kind, name)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_slot (fence BIGINT PRIMARY KEY, job_name @NAME NOT NULL,
      period @NAME NOT NULL, tenant @NAME, limit_key @KEY, backfill BOOLEAN NOT NULL,
      until DATETIME(6) NOT NULL) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_node (name @NAME PRIMARY KEY, labels @TEXT,
      started_at DATETIME(6), seen_at DATETIME(6), `left` BOOLEAN NOT NULL DEFAULT FALSE,
      boot BIGINT, clock_offset BIGINT) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_journal (job_name @NAME, period @NAME, generation INT,
      ver BIGINT, op @WORD, op_at DATETIME(6), fence BIGINT, nonce BIGINT,
      lease_until DATETIME(6), checkpoint BIGINT, status @WORD, reason @TEXT, by_whom @TEXT,
      held BOOLEAN, backfill BOOLEAN, manual BOOLEAN,
      PRIMARY KEY (job_name, period, generation, ver)) @TABLE)",
    // One row an audit; a beat's instant has one, whoever makes it.
    R"(CREATE TABLE IF NOT EXISTS job_audit (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      beat @KEY NOT NULL, due_at DATETIME(6) NOT NULL, by_whom @TEXT NOT NULL,
      started_at DATETIME(6) NOT NULL, finished_at DATETIME(6), expected BIGINT NOT NULL DEFAULT 0,
      done BIGINT NOT NULL DEFAULT 0, findings BIGINT NOT NULL DEFAULT 0,
      alarms BIGINT NOT NULL DEFAULT 0, canary BOOLEAN NOT NULL DEFAULT FALSE, detail @TEXT,
      UNIQUE KEY job_audit_beat (beat, due_at), KEY job_audit_due (due_at))
      ROW_FORMAT=DYNAMIC @TABLE)",
    // Drills, and the rows that they deleted, as they were. One of a job is open at a time.
    R"(CREATE TABLE IF NOT EXISTS job_drill (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      job @NAME NOT NULL, by_whom @TEXT NOT NULL, why @TEXT, started_at DATETIME(6) NOT NULL,
      until DATETIME(6) NOT NULL, finished_at DATETIME(6), result @WORD NOT NULL DEFAULT '',
      detail @TEXT, open_job @NAME AS (CASE WHEN finished_at IS NULL THEN job END) STORED,
      UNIQUE KEY job_drill_open (open_job)) @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_drill_row (drill BIGINT, period @NAME, generation INT NOT NULL,
      fence BIGINT NOT NULL, doc @TEXT NOT NULL, PRIMARY KEY (drill, period)) @TABLE)",
    // Alerts, one row for each thing that is wrong and each channel; and when nothing is told of a
    // job.
    R"(CREATE TABLE IF NOT EXISTS job_alert (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      topic @WORD NOT NULL, job @NAME NOT NULL, about @NAME NOT NULL, channel @NAME NOT NULL,
      episode INT NOT NULL, kind @WORD NOT NULL, level INT NOT NULL, period @NAME NOT NULL,
      due_at DATETIME(6), count BIGINT NOT NULL, text @TEXT NOT NULL, by_job BOOLEAN NOT NULL,
      by_audit BOOLEAN NOT NULL, momentary BOOLEAN NOT NULL, opened_at DATETIME(6) NOT NULL,
      seen_at DATETIME(6) NOT NULL, resolved_at DATETIME(6), resolution @TEXT NOT NULL,
      told_at DATETIME(6), resolve_told_at DATETIME(6), next_at DATETIME(6),
      attempts INT NOT NULL, claimed_by @NAME NOT NULL, last_error @TEXT NOT NULL,
      acked_at DATETIME(6), acked_by @TEXT NOT NULL, acked_why @TEXT NOT NULL, remind BIGINT,
      UNIQUE KEY job_alert_key (topic, job, about, channel), KEY job_alert_next (next_at),
      KEY job_alert_open (resolved_at, job, period)) ROW_FORMAT=DYNAMIC @TABLE)",
    R"(CREATE TABLE IF NOT EXISTS job_silence (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      job @NAME NOT NULL, from_at DATETIME(6) NOT NULL, until_at DATETIME(6) NOT NULL,
      who @TEXT NOT NULL, why @TEXT NOT NULL, ended_at DATETIME(6), ended_by @TEXT,
      KEY job_silence_until (until_at)) @TABLE)",
    // What was lost is found by when: the key has nothing of other runs.
    R"(ALTER TABLE job_run ADD COLUMN IF NOT EXISTS lost_at DATETIME(6)
      AS (CASE WHEN status = 'LOST' THEN finished_at END) VIRTUAL)",
    "ALTER TABLE job_run ADD KEY IF NOT EXISTS job_run_lost (lost_at)",
    // Back-fills that people ask for.
    R"(CREATE TABLE IF NOT EXISTS job_backfill (id BIGINT AUTO_INCREMENT PRIMARY KEY,
      job @NAME NOT NULL, from_day DATE NOT NULL, to_day DATE NOT NULL, reprocess @WORD NOT NULL,
      max_parallel INT, hours @WORD NOT NULL, zone @NAME NOT NULL, cascades BOOLEAN NOT NULL,
      state @WORD NOT NULL, periods BIGINT NOT NULL, who @TEXT NOT NULL, why @TEXT NOT NULL,
      at DATETIME(6) NOT NULL, changed_by @TEXT, changed_why @TEXT, changed_at DATETIME(6))
      @TABLE)",
    // The source of fences: its numbers only rise, also over a rollback and a restart.
    R"(CREATE TABLE IF NOT EXISTS matins_fence_numbers (id BIGINT AUTO_INCREMENT PRIMARY KEY) @TABLE)",
};

// The functions read as their caller: nobody's rights are lent by them. Times are of the calling
// statement's start, so a verb that has locked rows asks in a statement of its own.
const char* const kFunctions[] = {
    "DROP FUNCTION IF EXISTS matins_clock",
    "CREATE FUNCTION matins_clock() RETURNS DATETIME(6) NOT DETERMINISTIC NO SQL "
    "SQL SECURITY INVOKER RETURN UTC_TIMESTAMP(6)",
    "DROP FUNCTION IF EXISTS matins_mark",
    "CREATE FUNCTION matins_mark() RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA "
    "SQL SECURITY INVOKER RETURN (SELECT TIMESTAMP'1970-01-01 00:00:00' + INTERVAL "
    "CAST(m.value AS SIGNED) MICROSECOND FROM matins_meta m WHERE m.name = 'clock_hwm')",
    "DROP FUNCTION IF EXISTS matins_now",
    "CREATE FUNCTION matins_now() RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA "
    "SQL SECURITY INVOKER RETURN GREATEST(matins_clock(), "
    "COALESCE(matins_mark(), TIMESTAMP'1970-01-01 00:00:00'))",
    "DROP FUNCTION IF EXISTS matins_frozen",
    "CREATE FUNCTION matins_frozen() RETURNS BOOLEAN NOT DETERMINISTIC READS SQL DATA "
    "SQL SECURITY INVOKER RETURN EXISTS (SELECT 1 FROM matins_meta m WHERE "
    "m.name = 'clock_frozen_why' AND m.value <> '') OR "
    "COALESCE(matins_clock() < matins_mark() - INTERVAL 2 SECOND, FALSE)",
    "DROP FUNCTION IF EXISTS matins_unjudged",
    "CREATE FUNCTION matins_unjudged() RETURNS BOOLEAN NOT DETERMINISTIC READS SQL DATA "
    "SQL SECURITY INVOKER RETURN "
    "COALESCE(matins_clock() > matins_mark() + INTERVAL 1 HOUR, FALSE)",
};

const char* const kTriggers[] = {
    // Of other programs' rows: the period, the generation that a deletion has opened, and since
    // when they run (for the job's stale_after).
    "DROP TRIGGER IF EXISTS matins_foreign_insert",
    R"(CREATE TRIGGER matins_foreign_insert BEFORE INSERT ON job_watermark FOR EACH ROW BEGIN
      IF NEW.period = '' THEN SET NEW.period = DATE_FORMAT(NEW.biz_date, '%Y-%m-%d'); END IF;
      IF NEW.due_at IS NULL THEN
        SET NEW.generation = GREATEST(NEW.generation, COALESCE((SELECT MAX(e.generation)
          FROM job_event e WHERE e.kind = 'reopened' AND e.job = NEW.job_name AND
          e.period = NEW.period), 1));
      END IF;
      IF NEW.status = 'RUNNING' AND NEW.lease_until IS NULL THEN
        SET NEW.claimed_at = UTC_TIMESTAMP(6);
      END IF;
    END)",
    "DROP TRIGGER IF EXISTS matins_foreign_update",
    R"(CREATE TRIGGER matins_foreign_update BEFORE UPDATE ON job_watermark FOR EACH ROW BEGIN
      IF NEW.status = 'RUNNING' AND OLD.status <> 'RUNNING' AND NEW.lease_until IS NULL THEN
        SET NEW.claimed_at = UTC_TIMESTAMP(6);
      END IF;
    END)",
    "DROP TRIGGER IF EXISTS matins_row_deleted",
    R"(CREATE TRIGGER matins_row_deleted AFTER DELETE ON job_watermark FOR EACH ROW BEGIN
      DECLARE settled DATETIME(6) DEFAULT NULL;
      DECLARE due DATETIME(6) DEFAULT COALESCE(OLD.due_at, OLD.biz_date - INTERVAL 1 DAY);
      IF COALESCE(OLD.op, '') <> 'withdrawn' THEN
        SET settled = (SELECT j.floor FROM job j WHERE j.name = OLD.job_name FOR UPDATE);
        IF NOT (settled IS NOT NULL AND due <= settled AND OLD.status IN ('DONE', 'SKIPPED')) THEN
          INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES
            (GREATEST(UTC_TIMESTAMP(6), COALESCE(OLD.op_at, UTC_TIMESTAMP(6))), 'reopened',
             OLD.job_name, OLD.period, OLD.generation + 1, 'delete', 'the row was deleted',
             JSON_OBJECT('old_status', OLD.status,
               'old_fence', CAST(OLD.fence AS CHAR), 'lease_until',
               TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00',
                 CASE WHEN OLD.status = 'RUNNING' THEN OLD.lease_until ELSE OLD.wait_until END)));
          UPDATE job j SET j.gap_from = LEAST(COALESCE(j.gap_from, due), due),
            j.revision = j.revision + 1, j.next_look = TIMESTAMP'1970-01-01 00:00:00'
            WHERE j.name = OLD.job_name AND NOT j.deleted;
          IF OLD.status = 'RUNNING' AND OLD.lock_key IS NOT NULL AND
              OLD.lease_until IS NOT NULL THEN
            INSERT INTO job_lock (lock_key, job_name, period, fence, until) VALUES
              (OLD.lock_key, OLD.job_name, OLD.period, OLD.fence, OLD.lease_until)
              ON DUPLICATE KEY UPDATE until = GREATEST(job_lock.until, VALUES(until));
          END IF;
          IF OLD.status = 'RUNNING' AND OLD.fence > 0 AND OLD.lease_until IS NOT NULL THEN
            INSERT IGNORE INTO job_slot (fence, job_name, period, tenant, limit_key, backfill,
              until) VALUES (OLD.fence, OLD.job_name, OLD.period, OLD.tenant, OLD.limit_key,
              OLD.backfill, OLD.lease_until);
          END IF;
        END IF;
      END IF;
    END)",
};

const char kFirstFacts[] =
    "INSERT IGNORE INTO matins_meta (name, value) VALUES ('epoch', '1'), ('journal', 'runs'), "
    "('start', ''), ('apply', ''), ('limits', '0'), ('clock_hwm', NULL), ('clock_frozen_why', ''), "
    "('clock_frozen_at', NULL), ('clock_raw', NULL), ('return_last', NULL), ('return_wait', '0'), "
    "('return_due', NULL)";

// Written by the same statement as the change (J).
std::string JournalTrigger(absl::string_view event, absl::string_view when) {
  return absl::StrCat(
      "CREATE TRIGGER matins_journal_", event, " AFTER ", event,
      " ON job_watermark FOR EACH ROW BEGIN IF ", when,
      " THEN INSERT INTO job_journal (job_name, period, generation, ver, op, op_at, fence, nonce, "
      "lease_until, checkpoint, status, reason, by_whom, held, backfill, manual) VALUES "
      "(NEW.job_name, NEW.period, NEW.generation, NEW.ver, COALESCE(NEW.op, 'foreign'), "
      "COALESCE(NEW.op_at, UTC_TIMESTAMP(6)), NEW.fence, NEW.nonce, NEW.lease_until, "
      "NEW.checkpoint, NEW.status, NEW.reason, NEW.by_whom, NEW.held, NEW.backfill, NEW.manual); "
      "END IF; END");
}

}  // namespace

const std::vector<std::string>& CreateRest() {
  static const auto& statements = *[] {
    auto* all = new std::vector<std::string>();
    for (const char* sql : kTables) all->push_back(Typed(sql));
    for (const char* sql : kFunctions) all->push_back(sql);
    for (const char* sql : kTriggers) all->push_back(sql);
    all->push_back(kFirstFacts);
    return all;
  }();
  return statements;
}

const std::vector<std::string>& EnableJournal() {
  static const auto& statements = *new std::vector<std::string>{
      "DROP TRIGGER IF EXISTS matins_journal_insert",
      JournalTrigger("insert", "TRUE"),
      "DROP TRIGGER IF EXISTS matins_journal_update",
      JournalTrigger("update", "OLD.ver <> NEW.ver OR OLD.generation <> NEW.generation"),
  };
  return statements;
}

const std::vector<std::string>& DisableJournal() {
  static const auto& statements =
      *new std::vector<std::string>{"DROP TRIGGER IF EXISTS matins_journal_insert",
                                    "DROP TRIGGER IF EXISTS matins_journal_update"};
  return statements;
}

}  // namespace matins::mariadb
