"""The jobs of a soak and their business table, and the checker's word on a run of them."""
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import soak_body
from nodes import seen
from program import HERE, MATINS, PATIENCE, checker_folder

TTL = 2.0           # seconds of a lease
DAYS, HOURS = 14, 8   # that are to be filled
TICK, CACHE = 3, 5  # seconds from fire to fire


class Work:
    """The jobs, what they must have done in the end, and the business table that tells what they did."""
    STEPS = dict(recon=3, hourly=2, tick=1, cache=1)

    def __init__(self, folder):
        self.folder = folder
        self.business = os.path.join(folder, 'business.db')
        with open(os.path.join(folder, 'fence.sql'), 'w') as f:
            subprocess.run([MATINS, 'fence', 'sql', '--dialect', 'sqlite'], stdout=f, check=True)
        with sqlite3.connect(self.business) as db:
            db.execute('pragma journal_mode = wal')
            for text in soak_body.statements(folder)[:2]:
                db.execute(text)
            db.execute('create table entry (job text, period text, step int, generation int, fence int, at real)')
        self.now = datetime.now(timezone.utc)
        self.begun = None

    def jobs(self):
        first_day = (self.now - timedelta(days=DAYS)).date()
        return 'journal: full\njobs:' + ''.join((
            self.job('recon', 0.35, '"0 0 * * *"', 'each',
                     f'period: day, biz_date: -1d, backfill: {{ start: {first_day}, max_periods: 100 }}'),
            self.job('hourly', 0.5, '"@hourly"', 'each',
                     f'period: hour, overlap: allow, backfill: {{ start: {self.now.date()}, max_periods: {HOURS}, '
                     'order: none, max_parallel: 2 }'),
            self.job('tick', 1.2, f'"@every {TICK}s"', 'each',
                     'overlap: allow, backfill: { max_periods: 1000, order: none, max_parallel: 3 }'),
            self.job('cache', 0.4, f'"@every {CACHE}s"', 'latest', 'overlap: queue')))

    def job(self, name, seconds, schedule, misfire, more):
        body = json.dumps([sys.executable, '-S', os.path.join(HERE, 'soak_body.py'), self.folder,
                           str(self.STEPS[name]), str(seconds)])
        return (f'\n  - {{ name: {name}, schedule: {schedule}, misfire: {misfire}, {more}, lock: {{ ttl: {TTL:g}s }}, '
                f'start_deadline: {2 if name in ("tick", "cache") else 60}s, timeout: 20s, grace: 300ms, max_lost: 1000, '
                f'retry: {{ attempts: 100, backoff: 100ms..500ms }}, run: {{ command: {body} }} }}')

    def due(self, until):
        """job -> keys of the periods that must be settled; of fires only those since the work began."""
        fires = {}
        for job, step in (('tick', TICK), ('cache', CACHE)):
            first = -(-self.begun // step) * step
            fires[job] = [datetime.fromtimestamp(t, timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
                          for t in range(int(first), int(until) + 1, step)]
        days = [(self.now - timedelta(days=back)).date().isoformat() for back in range(DAYS, 0, -1)]
        return fires | {'recon': days}

    def entries(self):
        with sqlite3.connect(self.business, timeout=30) as db:
            return db.execute('select job, period, step, at from entry').fetchall()

    def write_effects(self, path):
        with open(path, 'w') as f:
            for job, period, step, at in self.entries():
                f.write(json.dumps(dict(job=job, period=period, step=step - 1, db=at)) + '\n')

    def write_demands(self, path):
        """What the checker is told of the jobs beside their definitions. Claims of one unordered job by several nodes are
        simultaneous within `race` seconds."""
        with open(path, 'w') as f:
            for job, steps in self.STEPS.items():
                f.write(json.dumps(dict(job=job, steps=steps, race=0 if job == 'recon' else 0.5)) + '\n')


class Evidence:
    """What is left of a run, and the checker's word on it."""

    def __init__(self, case, work, members, quiet=30):
        """`quiet`: what is due longer ago than this must be settled. What is planned ahead is due before the cut."""
        ahead = 60
        effects, demands = (os.path.join(case.folder, name) for name in ('effects.jsonl', 'demands.jsonl'))
        work.write_effects(effects)
        work.write_demands(demands)
        histories = [m.history for m in members if os.path.exists(m.history)]
        command = [sys.executable, '-B', os.path.join(checker_folder(), 'export.py'), case.store, '--effects', effects,
                   '--jobs', demands, '--quiet', str(quiet + ahead), '--cut', str(time.time() + ahead)]
        for path in histories:
            command += ['--history', path]
        exported = os.path.join(case.folder, 'evidence.jsonl')
        with open(exported, 'w') as f:
            subprocess.run(command, stdout=f, check=True, timeout=PATIENCE)
        judged = subprocess.run([sys.executable, '-B', os.path.join(checker_folder(), 'checker.py'), exported], text=True,
                                stdout=subprocess.PIPE, timeout=PATIENCE)
        self.verdict = json.loads(judged.stdout)
        self.stats = Counter(self.verdict['stats'])
        self.seen = seen(members)
