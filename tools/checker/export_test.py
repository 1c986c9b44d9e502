#!/usr/bin/env python3
"""export.py over small stores made here: right evidence passes, and what is spoilt in it is found by the checker.

Over SQLite always; over PostgreSQL where MATINS_TEST_POSTGRES names the file that has its port (ctest sets it).
"""
import itertools
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest
from pathlib import Path

import export
from checker import check

DAY = 86400
NUMBER = itertools.count(1)
START = 1_760_000_000 // DAY * DAY                  # midnight UTC
TABLES = {
    'job': 'name text, first_sight TIME',
    'job_version': 'job text, version int, from_at TIME, definition text',
    'job_run': 'job_name text, period text, due_at TIME',
    'job_watermark': 'job_name text, period text, due_at TIME, generation int, status text, fence bigint',
    'job_event': 'id int, at TIME, kind text, job text, period text, generation int, who text, detail text',
    'job_span': 'job text, kind text, from_at TIME, to_at TIME, reason text',
    'job_journal': 'job_name text, period text, generation int, ver int, op text, op_at TIME, fence bigint, nonce bigint, '
                   'lease_until TIME, checkpoint int, status text, reason text, by_whom text, held bool, backfill bool, '
                   'manual bool',
}
DEFINITION = dict(schedule='0 1 * * *', period='day', biz_date='-1d', misfire='each')


class Sqlite:
    def __init__(self, folder):
        self.path = os.path.join(folder, 'store.db')
        self.url = f'sqlite:{self.path}'

    def run(self, script):
        with sqlite3.connect(self.path) as db:
            db.executescript(f'begin;\n{script}\ncommit;')

    @staticmethod
    def time(seconds):
        return 'null' if seconds is None else str(round(seconds * 1e6))

    types = {'TIME': 'int'}


class Postgres:
    def __init__(self, port):
        self.schema = f'export_{os.getpid()}_{next(NUMBER)}'
        self.base = f'postgresql://postgres@127.0.0.1:{port}/postgres'
        self.url = f'{self.base}?schema={self.schema}'
        self.psql(f'create schema {self.schema}')

    def psql(self, script):
        subprocess.run(['psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', self.base], input=script, text=True, check=True)

    def run(self, script):
        self.psql(f'set search_path = {self.schema};\n{script}')

    @staticmethod
    def time(seconds):
        return 'null' if seconds is None else f'to_timestamp({seconds!r})'

    types = {'TIME': 'timestamptz'}


class Evidence:
    """A store in which `recon` ran on three nights, the second one after a lost lease."""

    def __init__(self, store):
        self.store, self.fence, self.script, self.rows, self.seen = store, 100, [], [], []
        for name, columns in TABLES.items():
            for word, type in store.types.items():
                columns = columns.replace(word, type)
            self.script.append(f'create table {name} ({columns})')
        self.insert('job', 'recon', self.time(START + DAY))
        self.insert('job_version', 'recon', 1, self.time(START + DAY), json.dumps(DEFINITION))
        self.night(1)
        self.night(2, lost=True)
        self.night(3)

    def time(self, seconds):
        return ('time', self.store.time(seconds))

    def insert(self, table, *values):
        texts = [v[1] if isinstance(v, tuple) else 'null' if v is None else 'true' if v is True else 'false' if v is False
                 else str(v) if isinstance(v, int) else "'" + v.replace("'", "''") + "'" for v in values]
        self.script.append(f'insert into {table} values ({", ".join(texts)})')

    def night(self, n, lost=False):
        due = START + n * DAY + 3600
        period = export.datetime.fromtimestamp(due - DAY, export.cron.timezone.utc).date().isoformat()
        ver, steps = 0, ['plan', 'claim', 'reclaim', 'claim', 'ckpt', 'hb', 'commit'] if lost else ['plan', 'claim', 'commit']
        now = due - 1
        for op in steps:
            ver += 1
            now += 61 if op == 'reclaim' else 1
            if op in ('claim', 'reclaim'):
                self.fence += 1
            status = {'plan': 'PLANNED', 'reclaim': 'PLANNED', 'commit': 'DONE'}.get(op, 'RUNNING')
            lease = now + 30 if op in ('claim', 'hb') else None
            self.rows.append(dict(job='recon', period=period, gen=1, ver=ver, op=op, at=now, fence=self.fence,
                                  nonce=0 if op == 'reclaim' else 7 * self.fence, lease=lease,
                                  ckpt=1 if op in ('ckpt', 'hb', 'commit') and lost else 0, status=status))
        self.seen.append(dict(type='commit', res='inv', job='recon', period=period, token=str(self.fence)))
        self.seen.append(dict(type='commit', res='ok', job='recon', period=period, token=str(self.fence)))
        self.insert('job_watermark', 'recon', period, self.time(due), 1, 'DONE', self.fence)

    def row(self, op, n=0):
        return [row for row in self.rows if row['op'] == op][n]

    def verdict(self, folder):
        for r in self.rows:
            self.insert('job_journal', r['job'], r['period'], r['gen'], r['ver'], r['op'], self.time(r['at']), r['fence'],
                        r['nonce'], self.time(r['lease']), r['ckpt'], r['status'], r.get('reason'), 'policy', False, False,
                        False)
        self.store.run(';\n'.join(self.script) + ';')
        seen = Path(folder, 'history.jsonl')
        seen.write_text('\n'.join(map(json.dumps, self.seen)))
        options = export.parse([self.store.url, '--history', str(seen), '--cut', str(START + 3.5 * DAY)])
        return check(json.loads(json.dumps(export.export(options))))


class Common:
    """What is worth asking of both stores."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name
        self.evidence = Evidence(self.store())

    def verdict(self):
        return self.evidence.verdict(self.folder)

    def broken(self):
        return self.verdict()['violations'].keys()

    def test_right_evidence_passes(self):
        verdict = self.verdict()
        self.assertEqual(verdict['violations'], {})
        self.assertEqual((verdict['stats']['periods'], verdict['stats']['commits'], verdict['stats']['lost']), (3, 3, 1))

    def test_a_commit_under_an_old_fence_is_found(self):
        self.evidence.row('commit', 1)['fence'] -= 1
        self.assertIn('I3', self.broken())

    def test_a_deleted_row_opens_a_generation(self):
        first = self.evidence.row('plan')
        done = self.evidence.row('commit')
        detail = json.dumps(dict(old_status='DONE', old_fence=str(done['fence']), lease_until=None))
        self.evidence.insert('job_event', 1, self.evidence.time(START + 3.2 * DAY), 'reopened', 'recon', first['period'], 2,
                             'delete', detail)
        self.evidence.script = [line.replace(', 1, ', ', 2, ') if line.startswith('insert into job_watermark')
                                and first['period'] in line else line for line in self.evidence.script]
        fence = 200
        for ver, op in enumerate(('plan', 'claim', 'commit'), 1):
            now = START + 3.2 * DAY + ver
            self.evidence.rows.append(dict(
                first, gen=2, ver=ver, op=op, at=now, fence=fence, nonce=fence, lease=now + 30 if op == 'claim' else None,
                status={'plan': 'PLANNED', 'claim': 'RUNNING'}.get(op, 'DONE')))
        self.evidence.script = [line.replace(f", 'DONE', {done['fence']})", f", 'DONE', {fence})") for line in
                                self.evidence.script]
        verdict = self.verdict()
        self.assertEqual((verdict['violations'], verdict['stats']['reopened']), ({}, 1))


class OverSqlite(Common, unittest.TestCase):
    def store(self):
        return Sqlite(self.folder)

    def test_a_commit_after_the_lease_is_found(self):
        self.evidence.row('commit', 0)['at'] += 60
        self.assertIn('I4', self.broken())

    def test_an_acknowledged_commit_that_is_not_there_is_found(self):
        self.evidence.rows.remove(self.evidence.row('commit', 2))
        self.assertIn('I11', self.broken())

    def test_a_resolved_no_that_was_committed_is_found(self):
        self.evidence.seen.append(dict(self.evidence.seen[1], type='resolve', res='no', detail='done'))
        self.assertIn('I9', self.broken())

    def test_what_became_of_a_failure_is_no_answer_about_a_commit(self):
        self.evidence.seen.append(dict(self.evidence.seen[1], type='resolve', res='no', detail='retry'))
        self.assertEqual(self.verdict()['violations'], {})

    def test_an_early_start_is_found(self):
        for op in ('plan', 'claim'):
            self.evidence.row(op)['at'] -= 100
        self.assertIn('I15', self.broken())

    def test_a_period_that_the_schedule_does_not_have_is_found(self):
        self.evidence.insert('job_watermark', 'recon', 'made-up', self.evidence.time(START + DAY), 1, 'PLANNED', 0)
        self.evidence.rows.append(dict(self.evidence.row('plan'), period='made-up'))
        self.assertIn('I15', self.broken())

    def test_a_night_without_a_row_is_found(self):
        period = self.evidence.row('plan', 1)['period']
        self.evidence.rows = [row for row in self.evidence.rows if row['period'] != period]
        self.assertLessEqual({'I14', 'I16'}, self.broken())

    def test_backfill_starts_at_a_business_date_not_at_the_day_of_its_fire(self):
        first = self.evidence.row('plan')['period']
        definition = dict(DEFINITION, backfill=dict(start=first))
        self.assertEqual(export.job_def('recon', [{'from': 0, 'definition': definition}], START + 9 * DAY, 60)['start'],
                         START + DAY)

    def test_a_span_of_skipped_periods_counts_for_each(self):
        period = self.evidence.row('plan', 1)['period']
        self.evidence.rows = [row for row in self.evidence.rows if row['period'] != period]
        self.evidence.script = [line for line in self.evidence.script
                                if not (line.startswith('insert into job_watermark') and period in line)]
        self.evidence.seen = [e for e in self.evidence.seen if e['period'] != period]
        day = START + 2 * DAY + 3600
        self.evidence.insert('job_span', 'recon', 'skipped', self.evidence.time(day), self.evidence.time(day), 'cap')
        self.assertNotIn('I14', self.broken())


@unittest.skipUnless('MATINS_TEST_POSTGRES' in os.environ, 'no PostgreSQL of a ctest run')
class OverPostgres(Common, unittest.TestCase):
    def store(self):
        return Postgres(Path(os.environ['MATINS_TEST_POSTGRES']).read_text().split()[0])


if __name__ == '__main__':
    unittest.main()
