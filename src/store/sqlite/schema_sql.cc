#include "store/sqlite/schema_sql.h"

namespace matins::sqlite {

// Every column but the four well-known ones is nullable or has a default: other programs insert
// four. An empty period is replaced by biz_date's text at once (trigger below).
const char kWatermarkTable[] = R"sql(
CREATE TABLE job_watermark (
  job_name TEXT NOT NULL,
  period TEXT NOT NULL DEFAULT '',
  biz_date TEXT NOT NULL,
  status TEXT NOT NULL
    CHECK (status IN ('PLANNED', 'RUNNING', 'DONE', 'FAILED', 'SKIPPED')),
  finished_at TEXT,
  held INTEGER NOT NULL DEFAULT 0,
  generation INTEGER NOT NULL DEFAULT 1,
  ver INTEGER NOT NULL DEFAULT 1,
  op TEXT NOT NULL DEFAULT 'plan',
  op_at INTEGER,
  due_at INTEGER,
  window_start INTEGER,
  window_end INTEGER,
  nominal TEXT,
  not_before INTEGER,
  start_by INTEGER,
  look_at INTEGER,
  version INTEGER NOT NULL DEFAULT 0,
  backfill INTEGER NOT NULL DEFAULT 0,
  manual INTEGER NOT NULL DEFAULT 0,
  params TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT '',
  by_whom TEXT NOT NULL DEFAULT '',
  priority INTEGER NOT NULL DEFAULT 0,
  lock_key TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  attempts_total INTEGER NOT NULL DEFAULT 0,
  losses INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  nonce INTEGER NOT NULL DEFAULT 0,
  node TEXT NOT NULL DEFAULT '',
  held_by TEXT NOT NULL DEFAULT '',
  held_until INTEGER,
  planned_at INTEGER,
  dispatched_at INTEGER,
  claimed_at INTEGER,
  lease_until INTEGER,
  run_until INTEGER,
  wait_until INTEGER,
  checkpoint INTEGER NOT NULL DEFAULT 0,
  checkpointed_at INTEGER,
  cancel_by TEXT,
  cancel_why TEXT,
  PRIMARY KEY (job_name, period));
)sql";

const char kOtherTables[] = R"sql(
CREATE TABLE matins_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO matins_meta (key, value) VALUES
  ('epoch', 1), ('fence_next', 0), ('journal', 'runs'), ('clock_hwm', NULL);
CREATE TABLE job (
  name TEXT PRIMARY KEY, id TEXT NOT NULL, version INTEGER NOT NULL, source TEXT NOT NULL DEFAULT '',
  digest TEXT NOT NULL DEFAULT '', definition TEXT NOT NULL, first_sight INTEGER NOT NULL,
  floor INTEGER, cursor INTEGER, next_look INTEGER, gap_from INTEGER, pending TEXT,
  revision INTEGER NOT NULL DEFAULT 1,
  suspended_at INTEGER, suspended_by TEXT NOT NULL DEFAULT '', suspended_why TEXT NOT NULL DEFAULT '',
  deleted INTEGER NOT NULL DEFAULT 0,
  strict INTEGER NOT NULL DEFAULT 0, overlap TEXT NOT NULL, lock_scope TEXT NOT NULL,
  lock_ttl INTEGER NOT NULL, timeout INTEGER NOT NULL, grace INTEGER NOT NULL,
  job_limit INTEGER, max_parallel INTEGER, labels TEXT NOT NULL DEFAULT '[]',
  priority INTEGER NOT NULL DEFAULT 0, recovery TEXT NOT NULL, max_lost INTEGER NOT NULL,
  stale_after INTEGER NOT NULL, commit_by TEXT NOT NULL,
  history_succeeded INTEGER NOT NULL, history_failed INTEGER NOT NULL, keep_for INTEGER,
  last_success INTEGER, last_result TEXT NOT NULL DEFAULT '',
  worst_duration INTEGER NOT NULL DEFAULT 0);
CREATE TABLE job_after (job TEXT NOT NULL, after_job TEXT NOT NULL, PRIMARY KEY (job, after_job))
  WITHOUT ROWID;
CREATE TABLE job_version (
  job TEXT NOT NULL, version INTEGER NOT NULL, from_at INTEGER, definition TEXT NOT NULL,
  digest TEXT NOT NULL DEFAULT '', applied_by TEXT NOT NULL DEFAULT '',
  source TEXT NOT NULL DEFAULT '', PRIMARY KEY (job, version));
CREATE TABLE job_source (
  source TEXT NOT NULL, digest TEXT NOT NULL, applied_at INTEGER, current INTEGER NOT NULL,
  PRIMARY KEY (source, digest)) WITHOUT ROWID;
CREATE TABLE job_span (
  id INTEGER PRIMARY KEY, job TEXT NOT NULL, kind TEXT NOT NULL, from_at INTEGER NOT NULL,
  to_at INTEGER, first_period TEXT, last_period TEXT, count INTEGER, reason TEXT, by_whom TEXT,
  why TEXT);
CREATE TABLE job_run (
  fence INTEGER PRIMARY KEY, job_name TEXT NOT NULL, period TEXT NOT NULL, biz_date TEXT NOT NULL,
  generation INTEGER NOT NULL, attempt INTEGER NOT NULL, attempts_total INTEGER NOT NULL,
  node TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '',
  message TEXT NOT NULL DEFAULT '', exit_code INTEGER, signal INTEGER,
  result TEXT NOT NULL DEFAULT '', due_at INTEGER, planned_at INTEGER, dispatched_at INTEGER,
  claimed_at INTEGER, started_at INTEGER, checkpointed_at INTEGER, finished_at INTEGER,
  backfill INTEGER NOT NULL DEFAULT 0, manual INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0);
CREATE TABLE job_event (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, kind TEXT NOT NULL,
  job TEXT NOT NULL DEFAULT '', period TEXT NOT NULL DEFAULT '',
  generation INTEGER NOT NULL DEFAULT 0, who TEXT NOT NULL DEFAULT '',
  why TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '');
CREATE TABLE job_checkpoint (
  job_name TEXT NOT NULL, period TEXT NOT NULL, generation INTEGER NOT NULL,
  number INTEGER NOT NULL, data BLOB NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (job_name, period, generation));
CREATE TABLE job_figure (
  id INTEGER PRIMARY KEY, job_name TEXT NOT NULL, period TEXT NOT NULL,
  generation INTEGER NOT NULL, fence INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
  at INTEGER NOT NULL);
CREATE TABLE job_output (
  fence INTEGER PRIMARY KEY, head BLOB NOT NULL, tail BLOB NOT NULL, bytes INTEGER NOT NULL,
  at INTEGER NOT NULL);
CREATE TABLE job_lock (
  lock_key TEXT PRIMARY KEY, job_name TEXT NOT NULL, period TEXT NOT NULL, fence INTEGER NOT NULL,
  until INTEGER) WITHOUT ROWID;
CREATE TABLE job_node (
  name TEXT PRIMARY KEY, labels TEXT NOT NULL DEFAULT '[]', started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL, left INTEGER NOT NULL DEFAULT 0, boot INTEGER NOT NULL DEFAULT 0,
  clock_offset INTEGER NOT NULL DEFAULT 0);
CREATE TABLE job_journal (
  job_name TEXT NOT NULL, period TEXT NOT NULL, generation INTEGER NOT NULL, ver INTEGER NOT NULL,
  op TEXT NOT NULL, op_at INTEGER, fence INTEGER, nonce INTEGER, lease_until INTEGER,
  checkpoint INTEGER, status TEXT NOT NULL, reason TEXT, by_whom TEXT, held INTEGER,
  backfill INTEGER, manual INTEGER,
  PRIMARY KEY (job_name, period, generation, ver)) WITHOUT ROWID;
)sql";

const char kIndexes[] = R"sql(
CREATE INDEX job_watermark_due ON job_watermark (look_at, priority) WHERE status = 'PLANNED';
CREATE INDEX job_watermark_stale ON job_watermark (lease_until) WHERE status = 'RUNNING';
CREATE INDEX job_watermark_running ON job_watermark (job_name) WHERE status = 'RUNNING';
CREATE UNIQUE INDEX job_watermark_lock ON job_watermark (lock_key)
  WHERE status = 'RUNNING' AND lock_key IS NOT NULL;
CREATE INDEX job_watermark_open ON job_watermark (job_name, due_at)
  WHERE status IN ('PLANNED', 'RUNNING', 'FAILED');
CREATE INDEX job_watermark_put_off ON job_watermark (job_name, due_at)
  WHERE status = 'PLANNED' AND look_at > not_before;
CREATE INDEX job_watermark_waits ON job_watermark (lock_key, due_at)
  WHERE status = 'PLANNED' AND look_at > not_before AND lock_key IS NOT NULL;
CREATE INDEX job_watermark_held ON job_watermark (held_by)
  WHERE status = 'PLANNED' AND held_by <> '';
CREATE INDEX job_watermark_day ON job_watermark (biz_date, job_name);
CREATE INDEX job_watermark_settled ON job_watermark (job_name, due_at)
  WHERE status IN ('DONE', 'SKIPPED');
CREATE INDEX job_look ON job (next_look) WHERE NOT deleted;
CREATE INDEX job_after_by ON job_after (after_job);
CREATE INDEX job_span_by_job ON job_span (job, from_at);
CREATE INDEX job_run_by_period ON job_run (job_name, period, fence);
CREATE INDEX job_run_by_end ON job_run (job_name, finished_at);
CREATE INDEX job_event_by_job ON job_event (job, id);
CREATE INDEX job_event_reopened ON job_event (job, period, id) WHERE kind = 'reopened';
CREATE INDEX job_figure_by_period ON job_figure (job_name, period, name);
)sql";

// None of them asks matins_now(): plain sqlite3 must be able to insert and delete. A row of another
// program has no due instant; after a deletion it is of the generation that the deletion opened.
const char kTriggers[] = R"sql(
CREATE TRIGGER job_watermark_foreign AFTER INSERT ON job_watermark WHEN new.period = ''
BEGIN
  UPDATE job_watermark SET period = biz_date, claimed_at =
      CASE WHEN status = 'RUNNING' THEN
        CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) END
    WHERE rowid = new.rowid;
  DELETE FROM job_watermark WHERE rowid = new.rowid AND period = '';
END;
CREATE TRIGGER job_watermark_foreign_running AFTER UPDATE OF status ON job_watermark
WHEN new.status = 'RUNNING' AND new.lease_until IS NULL AND old.status <> 'RUNNING'
BEGIN
  UPDATE job_watermark SET claimed_at =
      CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)
    WHERE rowid = new.rowid;
END;
CREATE TRIGGER job_watermark_foreign_again AFTER INSERT ON job_watermark
WHEN new.due_at IS NULL
BEGIN
  UPDATE job_watermark SET generation = max(generation, coalesce((SELECT max(e.generation)
      FROM job_event e WHERE e.kind = 'reopened' AND e.job = new.job_name AND
      e.period = CASE new.period WHEN '' THEN new.biz_date ELSE new.period END), 1))
    WHERE rowid = new.rowid;
END;
CREATE TRIGGER job_watermark_deleted AFTER DELETE ON job_watermark
WHEN old.period <> '' AND old.op <> 'withdrawn' AND (old.status NOT IN ('DONE', 'SKIPPED') OR
  coalesce(old.due_at > (SELECT floor FROM job WHERE name = old.job_name), 1))
BEGIN
  INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES (
    CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER), 'reopened', old.job_name,
    old.period, old.generation + 1, 'delete', 'the row was deleted',
    json_object('old_status', old.status, 'old_fence', CAST(old.fence AS TEXT),
      'lease_until', CASE WHEN old.status = 'RUNNING' THEN old.lease_until ELSE old.wait_until END));
  UPDATE job SET revision = revision + 1, next_look = 0,
      gap_from = min(coalesce(gap_from, 9223372036854775807), coalesce(old.due_at,
        (CAST(strftime('%s', old.biz_date) AS INTEGER) - 86400) * 1000000))
    WHERE name = old.job_name AND NOT deleted;
  INSERT INTO job_lock (lock_key, job_name, period, fence, until)
    SELECT old.lock_key, old.job_name, old.period, old.fence, old.lease_until
    WHERE old.status = 'RUNNING' AND old.lock_key IS NOT NULL AND old.lease_until IS NOT NULL
    ON CONFLICT (lock_key) DO UPDATE SET until = max(until, excluded.until),
      job_name = excluded.job_name, period = excluded.period, fence = excluded.fence;
END;
CREATE TRIGGER job_watermark_journal_insert AFTER INSERT ON job_watermark
WHEN new.period <> '' AND (SELECT value FROM matins_meta WHERE key = 'journal') = 'full'
BEGIN
  INSERT INTO job_journal VALUES (new.job_name, new.period, CASE WHEN new.due_at IS NULL THEN
    max(new.generation, coalesce((SELECT max(generation) FROM job_event WHERE kind = 'reopened' AND
      job = new.job_name AND period = new.period), 1)) ELSE new.generation END, new.ver, new.op,
    new.op_at, new.fence, new.nonce, new.lease_until, new.checkpoint, new.status, new.reason,
    new.by_whom, new.held, new.backfill, new.manual);
END;
CREATE TRIGGER job_watermark_journal_update AFTER UPDATE OF ver ON job_watermark
WHEN new.op <> 'withdrawn' AND (SELECT value FROM matins_meta WHERE key = 'journal') = 'full'
BEGIN
  INSERT INTO job_journal VALUES (new.job_name, new.period, new.generation, new.ver, new.op,
    new.op_at, new.fence, new.nonce, new.lease_until, new.checkpoint, new.status, new.reason,
    new.by_whom, new.held, new.backfill, new.manual);
END;
)sql";

// A claim leaves the index of what is open: what runs has one of its own, by which dead runs are
// found as well. Jobs that are to be looked at together are found in the order in which they are
// taken, without a sort. The journal's triggers are there while there is a journal.
const char kFewerIndexes[] = R"sql(
DROP INDEX job_watermark_stale;
DROP INDEX job_watermark_open;
CREATE INDEX job_watermark_open ON job_watermark (job_name, due_at)
  WHERE status IN ('PLANNED', 'FAILED');
DROP INDEX job_look;
CREATE INDEX job_look ON job (next_look, name) WHERE NOT deleted;
DROP TRIGGER job_watermark_journal_insert;
DROP TRIGGER job_watermark_journal_update;
)sql";

// One row an audit; a beat's instant has one, whoever makes it.
const char kAuditTable[] = R"sql(
CREATE TABLE job_audit (
  id INTEGER PRIMARY KEY, beat TEXT NOT NULL, due_at INTEGER NOT NULL, by_whom TEXT NOT NULL,
  started_at INTEGER NOT NULL, finished_at INTEGER, expected INTEGER NOT NULL DEFAULT 0,
  done INTEGER NOT NULL DEFAULT 0, findings INTEGER NOT NULL DEFAULT 0,
  alarms INTEGER NOT NULL DEFAULT 0, canary INTEGER NOT NULL DEFAULT 0,
  detail TEXT NOT NULL DEFAULT '', UNIQUE (beat, due_at));
CREATE INDEX job_audit_by_due ON job_audit (due_at);
)sql";

// Limits beside a job's own: their rules, whom a row counts against, the slots of runs whose row no
// longer speaks of them, and the turn in which tenants' rows are served.
const char kLimits[] = R"sql(
ALTER TABLE job_watermark ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE job_watermark ADD COLUMN limit_key TEXT NOT NULL DEFAULT '';
ALTER TABLE job_watermark ADD COLUMN waits_for TEXT;
ALTER TABLE job_watermark ADD COLUMN start_tag INTEGER NOT NULL DEFAULT 0;
CREATE TABLE job_limit (
  kind TEXT NOT NULL, name TEXT NOT NULL, most INTEGER NOT NULL, source TEXT NOT NULL DEFAULT '',
  by_whom TEXT NOT NULL DEFAULT '', at INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE job_slot (
  fence INTEGER PRIMARY KEY, job_name TEXT NOT NULL, period TEXT NOT NULL, tenant TEXT NOT NULL,
  limit_key TEXT NOT NULL, backfill INTEGER NOT NULL, until INTEGER NOT NULL);
CREATE INDEX job_watermark_tenant ON job_watermark (tenant)
  WHERE status = 'RUNNING' AND tenant <> '';
CREATE INDEX job_watermark_key ON job_watermark (limit_key)
  WHERE status = 'RUNNING' AND limit_key <> '';
CREATE INDEX job_watermark_waits_for ON job_watermark (waits_for, due_at)
  WHERE status = 'PLANNED' AND waits_for IS NOT NULL;
CREATE INDEX job_watermark_turn ON job_watermark (start_tag, look_at)
  WHERE status = 'PLANNED' AND start_tag > 0;
CREATE INDEX job_watermark_queue ON job_watermark (tenant, start_tag)
  WHERE status = 'PLANNED' AND start_tag > 0;
)sql";

// Told of at the row's last change if that is later: plain sqlite3 has whole milliseconds.
const char kDeletedTrigger[] = R"sql(
DROP TRIGGER job_watermark_deleted;
CREATE TRIGGER job_watermark_deleted AFTER DELETE ON job_watermark
WHEN old.period <> '' AND old.op <> 'withdrawn' AND (old.status NOT IN ('DONE', 'SKIPPED') OR
  coalesce(old.due_at > (SELECT floor FROM job WHERE name = old.job_name), 1))
BEGIN
  INSERT INTO job_event (at, kind, job, period, generation, who, why, detail) VALUES (
    max(CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER), coalesce(old.op_at, 0)),
    'reopened', old.job_name, old.period, old.generation + 1, 'delete', 'the row was deleted',
    json_object('old_status', old.status, 'old_fence', CAST(old.fence AS TEXT),
      'lease_until', CASE WHEN old.status = 'RUNNING' THEN old.lease_until ELSE old.wait_until END));
  UPDATE job SET revision = revision + 1, next_look = 0,
      gap_from = min(coalesce(gap_from, 9223372036854775807), coalesce(old.due_at,
        (CAST(strftime('%s', old.biz_date) AS INTEGER) - 86400) * 1000000))
    WHERE name = old.job_name AND NOT deleted;
  INSERT INTO job_lock (lock_key, job_name, period, fence, until)
    SELECT old.lock_key, old.job_name, old.period, old.fence, old.lease_until
    WHERE old.status = 'RUNNING' AND old.lock_key IS NOT NULL AND old.lease_until IS NOT NULL
    ON CONFLICT (lock_key) DO UPDATE SET until = max(until, excluded.until),
      job_name = excluded.job_name, period = excluded.period, fence = excluded.fence;
  INSERT OR REPLACE INTO job_slot (fence, job_name, period, tenant, limit_key, backfill, until)
    SELECT old.fence, old.job_name, old.period, old.tenant, old.limit_key, old.backfill,
      old.lease_until
    WHERE old.status = 'RUNNING' AND old.fence > 0 AND old.lease_until IS NOT NULL;
END;
)sql";

// Drills, and the rows that they deleted, as they were.
const char kDrills[] = R"sql(
CREATE TABLE job_drill (
  id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, by_whom TEXT NOT NULL,
  why TEXT NOT NULL DEFAULT '', started_at INTEGER NOT NULL, until INTEGER NOT NULL,
  finished_at INTEGER, result TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX job_drill_open ON job_drill (job) WHERE finished_at IS NULL;
CREATE TABLE job_drill_row (
  drill INTEGER NOT NULL, period TEXT NOT NULL, generation INTEGER NOT NULL,
  fence INTEGER NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (drill, period)) WITHOUT ROWID;
)sql";

// Alerts, one row for each thing that is wrong and each channel; and when nothing is told of a job.
// What fails or is lost is found by when it became so.
const char kAlerts[] = R"sql(
CREATE TABLE job_alert (
  id INTEGER PRIMARY KEY, topic TEXT NOT NULL, job TEXT NOT NULL, about TEXT NOT NULL,
  channel TEXT NOT NULL, episode INTEGER NOT NULL, kind TEXT NOT NULL, level INTEGER NOT NULL,
  period TEXT NOT NULL, due_at INTEGER, count INTEGER NOT NULL, text TEXT NOT NULL,
  by_job INTEGER NOT NULL, by_audit INTEGER NOT NULL, momentary INTEGER NOT NULL,
  opened_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, resolved_at INTEGER,
  resolution TEXT NOT NULL, told_at INTEGER, resolve_told_at INTEGER, next_at INTEGER,
  attempts INTEGER NOT NULL, claimed_by TEXT NOT NULL, last_error TEXT NOT NULL, acked_at INTEGER,
  acked_by TEXT NOT NULL, acked_why TEXT NOT NULL, remind INTEGER,
  UNIQUE (topic, job, about, channel));
CREATE INDEX job_alert_next ON job_alert (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX job_alert_open ON job_alert (job, period) WHERE resolved_at IS NULL;
CREATE TABLE job_silence (
  id INTEGER PRIMARY KEY, job TEXT NOT NULL, from_at INTEGER NOT NULL, until_at INTEGER NOT NULL,
  who TEXT NOT NULL, why TEXT NOT NULL, ended_at INTEGER, ended_by TEXT NOT NULL DEFAULT '');
CREATE INDEX job_silence_until ON job_silence (until_at) WHERE ended_at IS NULL;
CREATE INDEX job_watermark_failed ON job_watermark (op_at) WHERE status = 'FAILED';
CREATE INDEX job_run_lost ON job_run (finished_at) WHERE status = 'LOST';
)sql";

// Back-fills that people ask for, and which rows belong to them.
const char kBackfills[] = R"sql(
CREATE TABLE job_backfill (
  id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, from_day TEXT NOT NULL,
  to_day TEXT NOT NULL, reprocess TEXT NOT NULL, max_parallel INTEGER, hours TEXT NOT NULL,
  zone TEXT NOT NULL, cascades INTEGER NOT NULL, state TEXT NOT NULL, periods INTEGER NOT NULL,
  who TEXT NOT NULL, why TEXT NOT NULL, at INTEGER NOT NULL, changed_by TEXT NOT NULL DEFAULT '',
  changed_why TEXT NOT NULL DEFAULT '', changed_at INTEGER);
ALTER TABLE job_watermark ADD COLUMN backfill_id INTEGER;
CREATE INDEX job_watermark_backfill ON job_watermark (backfill_id, status, job_name, due_at)
  WHERE backfill_id IS NOT NULL;
)sql";

// How often an attempt's lease was extended. NULL is never: a run that is over before its first
// heartbeat has nothing more to write.
const char kRenewals[] = "ALTER TABLE job_watermark ADD COLUMN renewals INTEGER";

const char kEnableJournal[] = R"sql(
CREATE TRIGGER IF NOT EXISTS job_watermark_journal_insert AFTER INSERT ON job_watermark
WHEN new.period <> ''
BEGIN
  INSERT INTO job_journal VALUES (new.job_name, new.period, CASE WHEN new.due_at IS NULL THEN
    max(new.generation, coalesce((SELECT max(generation) FROM job_event WHERE kind = 'reopened' AND
      job = new.job_name AND period = new.period), 1)) ELSE new.generation END, new.ver, new.op,
    new.op_at, new.fence, new.nonce, new.lease_until, new.checkpoint, new.status, new.reason,
    new.by_whom, new.held, new.backfill, new.manual);
END;
CREATE TRIGGER IF NOT EXISTS job_watermark_journal_update AFTER UPDATE OF ver ON job_watermark
WHEN new.op <> 'withdrawn'
BEGIN
  INSERT INTO job_journal VALUES (new.job_name, new.period, new.generation, new.ver, new.op,
    new.op_at, new.fence, new.nonce, new.lease_until, new.checkpoint, new.status, new.reason,
    new.by_whom, new.held, new.backfill, new.manual);
END;
)sql";

const char kDisableJournal[] = R"sql(
DROP TRIGGER IF EXISTS job_watermark_journal_insert;
DROP TRIGGER IF EXISTS job_watermark_journal_update;
)sql";

}  // namespace matins::sqlite
