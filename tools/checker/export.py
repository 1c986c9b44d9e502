#!/usr/bin/env python3
"""Merges the scheduler's evidence into a history that checker.py judges; prints it as JSON lines.

    python3 export.py STORE [options] > history.jsonl

    STORE               sqlite:PATH, postgresql://...?schema=NAME or mariadb://..., with `journal: full`
    --history FILE      what a node saw (witness W1); may be given more than once
    --effects FILE      what the business table holds at the end, one {"job","period","step","db"} a line; `period` is
                        the period's key
    --jobs FILE         job_def lines (history.py), for what is better said by the test than read from the store. Each
                        adds to, and wins over, what is derived from the newest definition of the job of that name
    --cut SECONDS       the instant of the verdict, on the store's clock (default: the store's now)
    --quiet SECONDS     nothing may be unsettled that was due longer ago than this at the cut (default 60)
    --fault-from, --fault-to SECONDS    an outage: sets a `gap` for each job

Periods are named in the store by their keys and in a history by the instant they are due. Which is which comes from
targets.py's own enumeration of the schedule, so that a period that the scheduler made up, or named wrongly, stands out;
only periods that the enumeration does not know are taken at the store's word.
"""
import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from datetime import date, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit, urlunsplit

import cron
import history
import targets

MICRO = 1e-6
FOREVER = 10**12            # what stands for no limit, of seconds or of periods
JOURNAL = ('job_name', 'period', 'generation', 'ver', 'op', 'op_at', 'fence', 'nonce', 'lease_until', 'checkpoint', 'status',
           'reason', 'by_whom', 'held', 'backfill', 'manual')


# ---- reading the store ------------------------------------------------------------------------------------------------

class SqliteStore:
    def __init__(self, path):
        self.db = sqlite3.connect(f'file:{path}?mode=ro', uri=True)

    def rows(self, table, columns, times=(), order=''):
        found = self.db.execute(f'select {", ".join(columns)} from {table} {order}')
        return [dict(zip(columns, row)) for row in found]

    def now(self):
        return time.time()


class PostgresStore:
    """Through psql: nothing but Debian's client is needed."""

    def __init__(self, url):
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self.schema = query.get('schema', ['matins'])[0]
        self.url = urlunsplit(parts._replace(query=''))

    def ask(self, sql):
        done = subprocess.run(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', self.url, '-c', sql], text=True,
                              check=True, stdout=subprocess.PIPE)
        return done.stdout

    def rows(self, table, columns, times=(), order=''):
        picked = ', '.join(f'(extract(epoch from {c}) * 1000000)::bigint as {c}' if c in times else c for c in columns)
        sql = f'select row_to_json(x) from (select {picked} from "{self.schema}".{table} {order}) x'
        return [json.loads(line) for line in self.ask(sql).splitlines()]

    def now(self):
        return float(self.ask('select extract(epoch from clock_timestamp())'))


class MariadbStore:
    """Through Debian's client, mariadb."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.command = ['mariadb', '--no-defaults', '-NBr', '-h', parts.hostname, '-P', str(parts.port or 3306),
                        '-u', parts.username or 'root', parts.path.lstrip('/') or 'matins', '-e']
        self.password = {'MYSQL_PWD': parts.password} if parts.password else {}

    def ask(self, sql):
        done = subprocess.run([*self.command, sql], text=True, check=True, stdout=subprocess.PIPE,
                              env={**os.environ, **self.password})
        return done.stdout

    def rows(self, table, columns, times=(), order=''):
        picked = ', '.join(f"'{c}', " + (f"timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', `{c}`)" if c in times
                                         else f'`{c}`') for c in columns)
        return [json.loads(line) for line in self.ask(f'select json_object({picked}) from {table} {order}').splitlines()]

    def now(self):
        return float(self.ask('select unix_timestamp(now(6))'))


def open_store(url):
    if url.startswith('sqlite:'):
        return SqliteStore(url[len('sqlite:'):].split('?')[0])
    if url.startswith(('postgresql://', 'postgres://')):
        return PostgresStore(url)
    if url.startswith('mariadb://'):
        return MariadbStore(url)
    sys.exit(f'export: {url!r} is no store; write sqlite:PATH, postgresql://...?schema=NAME or mariadb://...')


def at(micros):
    return None if micros is None else micros * MICRO


# ---- what jobs demand --------------------------------------------------------------------------------------------------

def job_def(name, versions, first_sight, quiet):
    """The job_def of a job's definitions, each {from, definition}, oldest first."""
    newest = versions[-1]['definition']
    backfill, start_deadline = newest.get('backfill', {}), seconds(newest.get('start_deadline', '60s'))
    misfire = newest['misfire']
    made = dict(
        type='job_def', job=name, claim_starts=True, policy=misfire,
        start=first_owed(newest, first_sight),
        deadline=start_deadline, grace=start_deadline, audit_cadence=quiet, audit_grace=0,
        retention=seconds(backfill.get('source_window'), FOREVER),
        max_periods=number(backfill.get('max_periods', 30)), max_parallel=number(backfill.get('max_parallel', 1)),
        ordered=backfill.get('order', 'strict' if misfire == 'each' else 'none') == 'strict',
        recovery=newest.get('recovery', 'rerun'), max_lost=newest.get('max_lost', 5),
        same_tx=newest.get('commit') == 'job', steps=0)
    key = newest.get('limits', {}).get('key', '').replace('{{', '{').replace('}}', '}')
    made |= {name: value for name, value in (
        ('tenant', newest.get('tenant')), ('limit', newest.get('limits', {}).get('job')),
        # A key that names the period is one for each.
        ('limit_key', '' if '{period' in key or '{biz_date' in key
         else key.replace('{tenant}', newest.get('tenant', '')).replace('{job}', name))) if value}
    made['versions'] = [schedule_of(v['definition']) | {'from': v['from']} for v in versions]
    made['versions'][0]['from'] = made['start']
    return made


def schedule_of(definition):
    text = definition.get('schedule', '')
    return dict(schedule=text, timezone=definition.get('timezone', 'UTC'), period=definition.get('period', 'fire'),
                biz_date=definition.get('biz_date'))


def seconds(text, otherwise=None):
    if text is None or text == 'unlimited':
        return otherwise
    return cron.seconds_of(text) if isinstance(text, str) else text


def number(value):
    return FOREVER if value in (None, 'unlimited') else value


def first_owed(definition, first_sight):
    """Nothing that is due before this is owed. `backfill.start` is the first business date, not the day of its fire."""
    text, shift = definition.get('backfill', {}).get('start'), definition.get('biz_date')
    if not text:
        return first_sight
    start = date.fromisoformat(text)
    day = next(day for day in (start + timedelta(days=n) for n in range(-800, 800)) if cron.shifted_day(day, shift) >= start)
    midnight = datetime(day.year, day.month, day.day, tzinfo=cron.zone(definition.get('timezone', 'UTC'))).timestamp()
    return midnight - 3600 * cron.shift_of(shift, 'h')


def read_jobs(store, given, quiet):
    seen = {row['name']: at(row['first_sight']) for row in store.rows('job', ('name', 'first_sight'), ('first_sight',))}
    versions = {}
    for row in store.rows('job_version', ('job', 'version', 'from_at', 'definition'), ('from_at',), 'order by job, version'):
        versions.setdefault(row['job'], []).append({'from': at(row['from_at']) or 0,
                                                    'definition': json.loads(row['definition'])})
    jobs = {name: job_def(name, versions[name], seen[name], quiet) for name in seen if name in versions}
    for extra in given:
        jobs[extra['job']] = jobs.get(extra['job'], {}) | {'type': 'job_def'} | extra
        if 'versions' not in extra and ('schedule' in extra or 'every' in extra):
            jobs[extra['job']].pop('versions', None)
    return jobs


def instant_of(key):
    """Rows of other programs have no due instant; where no schedule has such a period either, its key stands for it."""
    try:
        told = datetime.fromisoformat(key.replace('Z', '+00:00'))
        return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
    except ValueError:
        return key


class Names:
    """(job, period's key) -> the instant it is due."""

    def __init__(self, store, jobs, cut):
        self.due = {(name, key): due for name, job in jobs.items() for due, key in targets.periods(job, cut)}
        self.told = {}
        for table in ('job_run', 'job_watermark'):
            for row in store.rows(table, ('job_name', 'period', 'due_at'), ('due_at',)):
                self.told[row['job_name'], row['period']] = at(row['due_at']) or instant_of(row['period'])

    def __call__(self, job, period):
        key = job, period
        return self.due.get(key, self.told.get(key, period))


# ---- the three witnesses -----------------------------------------------------------------------------------------------

def journal_event(row, due):
    """One row of job_journal as the checker's `jr`."""
    e = dict(type='jr', job=row['job_name'], period=due(row['job_name'], row['period']), gen=row['generation'],
             ver=row['ver'], op=row['op'], db=at(row['op_at']))
    e |= {mark: True for mark in ('backfill', 'manual') if row[mark]}
    op, failed = row['op'], row['status'] == 'FAILED'
    if op in ('claim', 'hb', 'ckpt', 'commit', 'fail'):
        e |= dict(token=str(row['fence']), nonce=str(row['nonce']))
    if op in ('reclaim', 'burn') or op == 'skip' and row['reason'] == 'replaced':
        e['token'] = str(row['fence'])
    if op in ('claim', 'hb'):
        e['lease_until'] = at(row['lease_until'])
    if op == 'claim':
        e |= dict(resume=row['checkpoint'] or None, backfill=bool(row['backfill']))
    if op == 'ckpt':
        e['n'] = row['checkpoint']
    if op in ('fail', 'reclaim', 'burn'):
        e |= dict(held=bool(row['held']), final=failed and not row['held'])
        if row['reason'] == 'cancelled':
            e['cancelled'] = True
        if op == 'burn' and row['reason'] == 'lost':
            e['lost'] = True
    if op == 'skip':
        by_policy = (row['by_whom'] or 'policy') == 'policy'
        e |= dict(reason=row['reason'], by='policy' if by_policy else 'person')
    return e


def journal(store, due):
    rows = store.rows('job_journal', JOURNAL, ('op_at', 'lease_until'))
    return [journal_event(row, due) for row in rows]


def reopened(store, due):
    columns = 'job', 'period', 'generation', 'who', 'at', 'detail'
    for row in store.rows('job_event', columns, ('at',), "where kind = 'reopened' order by id"):
        detail = json.loads(row['detail'])
        yield dict(type='reopened', job=row['job'], period=due(row['job'], row['period']), gen=row['generation'],
                   by='delete' if row['who'] == 'delete' else 'person', old_state=detail['old_status'],
                   old_token=int(detail['old_fence'] or 0), lease_end=at(detail['lease_until']), db=at(row['at']))


def stops_of_the_clock(store):
    for row in store.rows('job_event', ('at', 'detail'), ('at',), "where kind = 'clock' order by id"):
        if json.loads(row['detail'] or '{}').get('frozen'):
            yield dict(type='clock', db=at(row['at']))


def limits(store):
    for row in store.rows('job_event', ('at', 'detail'), ('at',), "where kind = 'limits' order by id"):
        told = json.loads(row['detail'])
        for name in told['cleared'] + told['set']:
            name, _, most = name.rpartition(' ') if name in told['set'] else (name, '', None)
            kind, _, which = name.partition('/')
            yield dict(type='limit', kind=kind, name=which, most=most and int(most.rstrip('%')), db=at(row['at']))


def spans(store, jobs, cut):
    """More than 100 SKIPPED in a row stand in one row; here they are told one by one."""
    columns = 'job', 'kind', 'from_at', 'to_at', 'reason'
    for row in store.rows('job_span', columns, ('from_at', 'to_at')):
        if row['kind'] != 'skipped' or row['job'] not in jobs:
            continue
        for due in targets.targets(jobs[row['job']], cut):
            if at(row['from_at']) <= due <= at(row['to_at']):
                yield dict(type='jr', job=row['job'], period=due, gen=1, ver=1, op='skip', db=cut, reason=row['reason'],
                           by='policy')


def final_rows(store, due):
    columns = 'job_name', 'period', 'generation', 'status', 'fence'
    for row in store.rows('job_watermark', columns):
        yield dict(type='final', job=row['job_name'], period=due(row['job_name'], row['period']), gen=row['generation'],
                   state=row['status'], token=str(row['fence']),
                   result_token=str(row['fence']) if row['status'] == 'DONE' else None)


def witnessed(paths, due):
    """W1: what was asked (inv) is no answer, a claim or heartbeat is judged by the journal alone, and so is the answer to
    how a failed attempt was written down."""
    for path in paths:
        for e in history.read(path):
            told = dict(job=e.get('job'), period=due(e.get('job'), e.get('period')), token=e.get('token', '0'))
            if e['type'] == 'commit' and e.get('res') in ('ok', 'refused', 'info'):
                yield dict(type='commit', res=e['res'], **told)
            elif e['type'] == 'resolve' and e.get('res') in ('yes', 'no') and e.get('detail') in ('done', 'done_by_job'):
                yield dict(type='resolve', ans=e['res'], **told)


def effects(path, due):
    for e in history.read(path) if path else ():
        yield dict(e, type='effect', period=due(e['job'], e['period']))


# ---- all of it ---------------------------------------------------------------------------------------------------------

def export(options):
    store = open_store(options.store)
    cut = options.cut if options.cut is not None else store.now()
    jobs = read_jobs(store, history.read(options.jobs) if options.jobs else [], options.quiet)
    due = Names(store, jobs, cut)
    told = list(jobs.values())
    if options.fault_from is not None:
        told += [dict(type='gap', job=name, **{'from': options.fault_from, 'to': options.fault_to or cut}) for name in jobs]
    told += journal(store, due)
    told += reopened(store, due)
    told += limits(store)
    told += stops_of_the_clock(store)
    told += spans(store, jobs, cut)
    told += final_rows(store, due)
    told += witnessed(options.history, due)
    told += effects(options.effects, due)
    told.append(dict(type='cut', db=cut, audit=False))
    return told


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('store')
    parser.add_argument('--history', action='append', default=[])
    parser.add_argument('--effects')
    parser.add_argument('--jobs')
    parser.add_argument('--cut', type=float)
    parser.add_argument('--quiet', type=float, default=60)
    parser.add_argument('--fault-from', type=float)
    parser.add_argument('--fault-to', type=float)
    return parser.parse_args(arguments)


if __name__ == '__main__':
    for event in export(parse(sys.argv[1:])):
        print(json.dumps(event))
