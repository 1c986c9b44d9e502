#include "store/postgresql/schema_sql.h"

namespace matins::postgresql {

// Column by column, so that a table which somebody else made keeps its rows. No heartbeat column is
// in an index: an Extend then updates in place (HOT), and the pages keep room for it.
const std::vector<std::string>& TakeOverWatermark() {
  static const auto& statements = *new std::vector<std::string>{
      R"(do $do$ declare name text; begin
        for name in select c.conname from pg_constraint c
            where c.conrelid = '@.job_watermark'::regclass and c.contype in ('p', 'u', 'c') loop
          execute format('alter table @.job_watermark drop constraint %I', name);
        end loop;
      end $do$)",
      R"(alter table @.job_watermark
        alter column job_name type text collate "C",
        alter column biz_date type date using biz_date::date,
        alter column status type text collate "C",
        alter column finished_at drop not null)",
      R"(do $do$ begin
        if (select format_type(atttypid, null) from pg_attribute
            where attrelid = '@.job_watermark'::regclass and attname = 'finished_at')
            <> 'timestamp with time zone' then
          alter table @.job_watermark alter column finished_at type timestamptz
            using finished_at::timestamp at time zone 'UTC';
        end if;
      end $do$)",
      R"(alter table @.job_watermark add column if not exists period text collate "C")",
      R"(update @.job_watermark set period = to_char(biz_date, 'YYYY-MM-DD') where period is null)",
  };
  return statements;
}

namespace {

constexpr char kWatermarkColumns[] = R"(alter table @.job_watermark
  alter column period set not null,
  alter column job_name set not null,
  alter column biz_date set not null,
  alter column status set not null,
  add column held boolean not null default false,
  add column generation int not null default 1,
  add column ver bigint not null default 1,
  add column op text,
  add column op_at timestamptz,
  add column due_at timestamptz,
  add column window_start timestamptz,
  add column window_end timestamptz,
  add column nominal text,
  add column not_before timestamptz,
  add column start_by timestamptz,
  add column look_at timestamptz,
  add column version int not null default 0,
  add column backfill boolean not null default false,
  add column manual boolean not null default false,
  add column params text,
  add column reason text,
  add column by_whom text,
  add column priority int not null default 0,
  add column lock_key text collate "C",
  add column attempts int not null default 0,
  add column attempts_total int not null default 0,
  add column losses int not null default 0,
  add column fence bigint not null default 0,
  add column nonce bigint,
  add column node text,
  add column held_by text,
  add column held_until timestamptz,
  add column planned_at timestamptz,
  add column dispatched_at timestamptz,
  add column claimed_at timestamptz,
  add column lease_until timestamptz,
  add column run_until timestamptz,
  add column wait_until timestamptz,
  add column checkpoint bigint not null default 0,
  add column checkpointed_at timestamptz,
  add column cancel_by text,
  add column cancel_why text,
  add column waits_for text collate "C",
  add primary key (job_name, period))";

// Of other programs' rows: the period, the generation that a deletion has opened, and since when
// they run (for the job's stale_after).
constexpr char kForeignRows[] = R"(create function @.matins_foreign_row()
  returns trigger language plpgsql as $fn$ begin
    new.period := coalesce(new.period, to_char(new.biz_date, 'YYYY-MM-DD'));
    if tg_op = 'INSERT' and new.due_at is null then
      new.generation := greatest(new.generation, (select max(e.generation) from @.job_event e
        where e.kind = 'reopened' and e.job = new.job_name and e.period = new.period));
    end if;
    if new.status = 'RUNNING' and new.lease_until is null then
      new.claimed_at := clock_timestamp();
    end if;
    return new;
  end $fn$)";

// In plpgsql, which keeps the plan of what it asks: a function in SQL is parsed and planned anew in
// each statement that calls it, which took longer than most of those statements.
constexpr char kNow[] = R"(create or replace function @.matins_now()
  returns timestamptz language plpgsql volatile as $fn$ begin
    return greatest(@.matins_clock(), (select timestamptz 'epoch' +
      m.value::bigint * interval '1 microsecond' from @.matins_meta m where m.key = 'clock_hwm'));
  end $fn$)";
constexpr char kFrozen[] = R"(create or replace function @.matins_frozen()
  returns boolean language plpgsql volatile as $fn$ begin
    return exists (select from @.matins_meta m where m.key = 'clock_frozen_why' and m.value <> '')
      or coalesce(@.matins_clock() < (select timestamptz 'epoch' + m.value::bigint *
        interval '1 microsecond' - interval '2 seconds' from @.matins_meta m
        where m.key = 'clock_hwm'), false);
  end $fn$)";

constexpr char kDeleteTrigger[] = R"(create function @.matins_row_deleted()
  returns trigger language plpgsql as $fn$
  declare
    settled timestamptz;
    due timestamptz := coalesce(old.due_at,
                                old.biz_date::timestamp at time zone 'UTC' - interval '1 day');
  begin
    if old.op = 'withdrawn' then return null; end if;
    select j.floor into settled from @.job j where j.name = old.job_name for no key update;
    if settled is not null and due <= settled and old.status in ('DONE', 'SKIPPED') then
      return null;
    end if;
    insert into @.job_event(at, kind, job, period, generation, who, why, detail)
      values (clock_timestamp(), 'reopened', old.job_name, old.period, old.generation + 1,
              'delete', 'the row was deleted',
              json_build_object('old_status', old.status, 'old_fence', old.fence::text,
                'lease_until', (extract(epoch from case when old.status = 'RUNNING' then
                  old.lease_until else old.wait_until end) * 1000000)::bigint)::text);
    update @.job set gap_from = least(gap_from, due), revision = revision + 1,
      next_look = timestamptz 'epoch' where name = old.job_name and not deleted;
    if old.status = 'RUNNING' and old.lock_key is not null and old.lease_until is not null then
      insert into @.job_lock as k (lock_key, job_name, period, fence, until)
        values (old.lock_key, old.job_name, old.period, old.fence, old.lease_until)
        on conflict (lock_key) do update set until = greatest(k.until, excluded.until);
    end if;
    return null;
  end $fn$)";

constexpr char kJournalFunction[] = R"(create function @.matins_journal()
  returns trigger language plpgsql as $fn$ begin
    insert into @.job_journal(job_name, period, generation, ver, op, op_at, fence, nonce,
                              lease_until, checkpoint, status, reason, by_whom, held, backfill,
                              manual)
      values (new.job_name, new.period, new.generation, new.ver, coalesce(new.op, 'foreign'),
              coalesce(new.op_at, clock_timestamp()), new.fence, new.nonce, new.lease_until,
              new.checkpoint, new.status, new.reason, new.by_whom, new.held, new.backfill,
              new.manual);
    return null;
  end $fn$)";

const std::vector<std::string>& CreateSchema() {
  static const auto& statements = *new std::vector<std::string>{
      R"(create table if not exists @.job_watermark(
        job_name text collate "C", period text collate "C", biz_date date,
        status text collate "C", finished_at timestamptz))",
      kWatermarkColumns,
      R"(alter table @.job_watermark set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05))",
      R"(create index job_watermark_due on @.job_watermark (look_at) where status = 'PLANNED')",
      R"(create index job_watermark_running on @.job_watermark (job_name)
        where status = 'RUNNING')",
      R"(create unique index job_watermark_lock on @.job_watermark (lock_key)
        where status = 'RUNNING' and lock_key is not null)",
      R"(create index job_watermark_open on @.job_watermark (job_name, due_at)
        where status in ('PLANNED', 'RUNNING', 'FAILED'))",
      R"(create index job_watermark_day on @.job_watermark (job_name, biz_date))",
      R"(create index job_watermark_waiting on @.job_watermark (waits_for, due_at)
        where status = 'PLANNED' and waits_for is not null)",
      R"(create table @.job(
        name text collate "C" primary key, id text not null, version int not null,
        source text not null, digest text, definition text not null,
        first_sight timestamptz not null, floor timestamptz, cursor timestamptz,
        next_look timestamptz, gap_from timestamptz, pending text,
        revision bigint not null default 1, suspended_at timestamptz, suspended_by text,
        suspended_why text, deleted boolean not null default false,
        strict boolean not null, overlap text not null, lock_scope text not null,
        lock_ttl interval not null, timeout interval not null, grace interval not null,
        job_limit int, max_parallel int, labels jsonb not null, priority int not null,
        recovery text not null, max_lost int not null, stale_after interval not null,
        commit_by text not null, history_succeeded int not null, history_failed int not null,
        keep_for interval, last_success timestamptz, last_result text,
        worst_duration interval) with (fillfactor = 70))",
      R"(create index job_next_look on @.job (next_look) where not deleted)",
      R"(create table @.job_after(job text collate "C", after_job text collate "C",
        primary key (job, after_job)))",
      R"(create table @.job_version(job text collate "C", version int, from_at timestamptz,
        definition text not null, digest text, applied_by text, source text,
        primary key (job, version)))",
      R"(create table @.job_source(source text collate "C", digest text, applied_at timestamptz,
        current boolean not null, primary key (source, digest)))",
      R"(create table @.job_span(id bigserial primary key, job text collate "C" not null,
        kind text not null, from_at timestamptz not null, to_at timestamptz, first_period text,
        last_period text, count bigint not null default 0, reason text, by_whom text, why text))",
      R"(create index job_span_job on @.job_span (job, to_at))",
      R"(create table @.job_run(fence bigint primary key, job_name text collate "C" not null,
        period text collate "C" not null, biz_date date, generation int not null, attempt int,
        attempts_total int, node text, status text not null, reason text, message text,
        exit_code int, signal int, result text, due_at timestamptz, planned_at timestamptz,
        dispatched_at timestamptz, claimed_at timestamptz, started_at timestamptz,
        checkpointed_at timestamptz, finished_at timestamptz, backfill boolean, manual boolean,
        version int))",
      R"(create index job_run_period on @.job_run (job_name, period, fence))",
      R"(create index job_run_finished on @.job_run (job_name, finished_at))",
      R"(create table @.job_event(id bigserial primary key, at timestamptz not null,
        kind text not null, job text collate "C", period text collate "C", generation int,
        who text, why text, detail text))",
      R"(create index job_event_reopened on @.job_event (job, period, id)
        where kind = 'reopened')",
      R"(create index job_event_job on @.job_event (job, id))",
      R"(create table @.job_checkpoint(job_name text collate "C", period text collate "C",
        generation int, number bigint not null, data bytea, at timestamptz not null,
        primary key (job_name, period, generation)))",
      R"(create table @.job_figure(job_name text collate "C", period text collate "C",
        generation int, fence bigint, name text, value float8, at timestamptz,
        primary key (fence, name)))",
      R"(create index job_figure_period on @.job_figure (job_name, period))",
      R"(create table @.job_output(fence bigint primary key, head bytea, tail bytea,
        bytes bigint not null, at timestamptz))",
      R"(create table @.job_lock(lock_key text collate "C" primary key,
        job_name text collate "C", period text collate "C", fence bigint, until timestamptz))",
      R"(create index job_lock_fence on @.job_lock (fence))",
      R"(create table @.job_node(name text collate "C" primary key, labels jsonb,
        started_at timestamptz, seen_at timestamptz, "left" boolean not null default false,
        boot bigint, clock_offset interval))",
      R"(create table @.job_journal(job_name text collate "C", period text collate "C",
        generation int, ver bigint, op text, op_at timestamptz, fence bigint, nonce bigint,
        lease_until timestamptz, checkpoint bigint, status text, reason text, by_whom text,
        held boolean, backfill boolean, manual boolean,
        primary key (job_name, period, generation, ver)))",
      R"(create sequence @.matins_fence as bigint cache 1)",
      R"(create function @.matins_clock() returns timestamptz language sql volatile
        as $fn$ select clock_timestamp() $fn$)",
      kNow,
      kFrozen,
      kForeignRows,
      R"(create trigger matins_foreign_insert before insert on @.job_watermark for each row
        when (new.due_at is null)
        execute function @.matins_foreign_row())",
      R"(create trigger matins_foreign_update before update of status on @.job_watermark
        for each row when (new.status = 'RUNNING' and old.status <> 'RUNNING' and
          new.lease_until is null) execute function @.matins_foreign_row())",
      kDeleteTrigger,
      R"(create trigger matins_row_deleted after delete on @.job_watermark for each row
        execute function @.matins_row_deleted())",
      kJournalFunction,
      R"(insert into @.matins_meta(key, value) values ('epoch', '1'), ('journal', 'runs'),
        ('start', ''), ('apply', ''), ('clock_hwm', null), ('clock_frozen_why', ''),
        ('clock_frozen_at', null), ('clock_raw', null), ('return_last', null),
        ('return_wait', '0'), ('return_due', null))",
  };
  return statements;
}

// A claim leaves the index of what is open: what runs has one of its own. Jobs that are to be
// looked at together are found in the order in which they are taken, without a sort.
const std::vector<std::string>& FewerIndexes() {
  static const auto& statements = *new std::vector<std::string>{
      "drop index @.job_watermark_open",
      R"(create index job_watermark_open on @.job_watermark (job_name, due_at)
        where status in ('PLANNED', 'FAILED'))",
      "drop index @.job_next_look",
      R"(create index job_next_look on @.job (next_look, name) where not deleted)",
  };
  return statements;
}

// One row an audit; a beat's instant has one, whoever makes it.
const std::vector<std::string>& AuditTable() {
  static const auto& statements = *new std::vector<std::string>{
      R"(create table @.job_audit(id bigserial primary key, beat text collate "C" not null,
        due_at timestamptz not null, by_whom text not null, started_at timestamptz not null,
        finished_at timestamptz, expected bigint not null default 0,
        done bigint not null default 0, findings bigint not null default 0,
        alarms bigint not null default 0, canary boolean not null default false, detail text))",
      "create unique index job_audit_beat on @.job_audit (beat, due_at)",
      "create index job_audit_due on @.job_audit (due_at)",
  };
  return statements;
}

constexpr char kDeleteLeavesSlot[] = R"(create or replace function @.matins_row_deleted()
  returns trigger language plpgsql as $fn$
  declare
    settled timestamptz;
    due timestamptz := coalesce(old.due_at,
                                old.biz_date::timestamp at time zone 'UTC' - interval '1 day');
  begin
    if old.op = 'withdrawn' then return null; end if;
    select j.floor into settled from @.job j where j.name = old.job_name for no key update;
    if settled is not null and due <= settled and old.status in ('DONE', 'SKIPPED') then
      return null;
    end if;
    insert into @.job_event(at, kind, job, period, generation, who, why, detail)
      values (greatest(clock_timestamp(), old.op_at), 'reopened', old.job_name, old.period,
              old.generation + 1, 'delete', 'the row was deleted',
              json_build_object('old_status', old.status, 'old_fence', old.fence::text,
                'lease_until', (extract(epoch from case when old.status = 'RUNNING' then
                  old.lease_until else old.wait_until end) * 1000000)::bigint)::text);
    update @.job set gap_from = least(gap_from, due), revision = revision + 1,
      next_look = timestamptz 'epoch' where name = old.job_name and not deleted;
    if old.status = 'RUNNING' and old.lock_key is not null and old.lease_until is not null then
      insert into @.job_lock as k (lock_key, job_name, period, fence, until)
        values (old.lock_key, old.job_name, old.period, old.fence, old.lease_until)
        on conflict (lock_key) do update set until = greatest(k.until, excluded.until);
    end if;
    if old.status = 'RUNNING' and old.fence > 0 and old.lease_until is not null then
      insert into @.job_slot (fence, job_name, period, tenant, limit_key, backfill, until)
        values (old.fence, old.job_name, old.period, old.tenant, old.limit_key, old.backfill,
                old.lease_until) on conflict (fence) do nothing;
    end if;
    return null;
  end $fn$)";

// Limits beside a job's own: their rules, whom a row counts against, the slots of runs whose row no
// longer speaks of them, and the turn in which tenants' rows are served.
const std::vector<std::string>& Limits() {
  static const auto& statements = *new std::vector<std::string>{
      R"(alter table @.job_watermark
        add column tenant text collate "C",
        add column limit_key text collate "C",
        add column start_tag bigint not null default 0)",
      R"(create table @.job_limit(kind text collate "C", name text collate "C", most int not null,
        source text not null, by_whom text not null, at timestamptz not null,
        primary key (kind, name)))",
      R"(create table @.job_slot(fence bigint primary key, job_name text collate "C" not null,
        period text collate "C" not null, tenant text collate "C", limit_key text collate "C",
        backfill boolean not null, until timestamptz not null))",
      R"(create index job_watermark_tenant on @.job_watermark (tenant)
        where status = 'RUNNING' and tenant is not null)",
      R"(create index job_watermark_key on @.job_watermark (limit_key)
        where status = 'RUNNING' and limit_key is not null)",
      R"(create index job_watermark_turn on @.job_watermark (start_tag, look_at)
        where status = 'PLANNED' and start_tag > 0)",
      R"(create index job_watermark_queue on @.job_watermark (tenant, start_tag)
        where status = 'PLANNED' and start_tag > 0)",
      kDeleteLeavesSlot,
  };
  return statements;
}

// Drills, and the rows that they deleted, as they were.
const std::vector<std::string>& Drills() {
  static const auto& statements = *new std::vector<std::string>{
      R"(create table @.job_drill(id bigserial primary key, job text collate "C" not null,
        by_whom text not null, why text, started_at timestamptz not null,
        until timestamptz not null, finished_at timestamptz, result text not null default '',
        detail text))",
      "create unique index job_drill_open on @.job_drill (job) where finished_at is null",
      R"(create table @.job_drill_row(drill bigint, period text collate "C", generation int not null,
        fence bigint not null, doc jsonb not null, primary key (drill, period)))",
  };
  return statements;
}

// Alerts, one row for each thing that is wrong and each channel; and when nothing is told of a job.
// What fails or is lost is found by when it became so.
const std::vector<std::string>& Alerts() {
  static const auto& statements = *new std::vector<std::string>{
      R"(create table @.job_alert(id bigserial primary key, topic text collate "C" not null,
        job text collate "C" not null, about text collate "C" not null,
        channel text collate "C" not null, episode int not null, kind text not null,
        level int not null, period text collate "C" not null, due_at timestamptz,
        count bigint not null, text text not null, by_job boolean not null,
        by_audit boolean not null, momentary boolean not null, opened_at timestamptz not null,
        seen_at timestamptz not null, resolved_at timestamptz, resolution text not null,
        told_at timestamptz, resolve_told_at timestamptz, next_at timestamptz,
        attempts int not null, claimed_by text not null, last_error text not null,
        acked_at timestamptz, acked_by text not null, acked_why text not null, remind bigint))",
      "create unique index job_alert_key on @.job_alert (topic, job, about, channel)",
      "create index job_alert_next on @.job_alert (next_at) where next_at is not null",
      "create index job_alert_open on @.job_alert (job, period) where resolved_at is null",
      R"(create table @.job_silence(id bigserial primary key, job text collate "C" not null,
        from_at timestamptz not null, until_at timestamptz not null, who text not null,
        why text not null, ended_at timestamptz, ended_by text))",
      "create index job_silence_until on @.job_silence (until_at) where ended_at is null",
      // Not by op_at, which each heartbeat writes: what an index has is no update in place.
      R"(create index job_watermark_failed on @.job_watermark (finished_at)
        where status = 'FAILED')",
      R"(create index job_run_lost on @.job_run (finished_at) where status = 'LOST')",
  };
  return statements;
}

// Back-fills that people ask for, and which rows belong to them.
const std::vector<std::string>& Backfills() {
  static const auto& statements = *new std::vector<std::string>{
      R"(create table @.job_backfill(id bigserial primary key, job text collate "C" not null,
        from_day date not null, to_day date not null, reprocess text not null, max_parallel int,
        hours text not null, zone text not null, cascades boolean not null, state text not null,
        periods bigint not null, who text not null, why text not null, at timestamptz not null,
        changed_by text, changed_why text, changed_at timestamptz))",
      "alter table @.job_watermark add column backfill_id bigint",
      R"(create index job_watermark_backfill on @.job_watermark
        (backfill_id, status, job_name, due_at) where backfill_id is not null)",
  };
  return statements;
}

// How often an attempt's lease was extended. NULL is never: a run that is over before its first
// heartbeat has a row no longer than before. In no index, as nothing that heartbeats write.
const std::vector<std::string>& Renewals() {
  static const auto& statements = *new std::vector<std::string>{
      "alter table @.job_watermark add column renewals int",
  };
  return statements;
}

// Functions that were others before.
const std::vector<std::string>& FasterClock() {
  static const auto& statements = *new std::vector<std::string>{kNow, kFrozen, kDeleteLeavesSlot};
  return statements;
}

}  // namespace

const std::vector<const std::vector<std::string>*>& SchemaSteps() {
  static const auto& steps = *new std::vector<const std::vector<std::string>*>{
      &CreateSchema(), &FewerIndexes(), &AuditTable(), &Limits(),     &Drills(),
      &Alerts(),       &Backfills(),    &Renewals(),   &FasterClock()};
  return steps;
}

const char kEnableJournal[] = R"(do $do$ begin
  if not exists (select from pg_trigger where tgrelid = '@.job_watermark'::regclass
                 and tgname = 'matins_journal_insert') then
    create trigger matins_journal_insert after insert on @.job_watermark for each row
      execute function @.matins_journal();
    create trigger matins_journal_update after update on @.job_watermark for each row
      when (old.ver <> new.ver or old.generation <> new.generation)
      execute function @.matins_journal();
  end if;
end $do$)";
const char kDisableJournal[] = R"(do $do$ begin
  drop trigger if exists matins_journal_insert on @.job_watermark;
  drop trigger if exists matins_journal_update on @.job_watermark;
end $do$)";

}  // namespace matins::postgresql
