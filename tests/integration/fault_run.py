"""Whole processes under faults: a seeded workload with a business table, a nemesis, then peace, then a verdict.

The verdict is the checker's (tools/checker), over the store's journal, what the nodes saw, and the rows of the business
table. A run by hand, longer than the tests':

    MATINS_FAULT_SEED=7 MATINS_FAULT_SECONDS=600 MATINS_FAULT_KEEP=/tmp/evidence ctest -R fault_run.busy
"""
import heapq
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timedelta, timezone

import fault_run_body
from support import MATINS, PATIENCE

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKER = os.path.join(HERE, '..', '..', 'tools', 'checker')
TTL = 2.0           # seconds of a lease
DAYS, HOURS = 14, 8   # that are to be filled
TICK, CACHE = 3, 5  # seconds from fire to fire


def seed():
    return int(os.environ.get('MATINS_FAULT_SEED') or random.SystemRandom().randrange(10**6))


def fault_seconds(usual):
    return float(os.environ.get('MATINS_FAULT_SECONDS') or usual)


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
            for text in fault_run_body.statements(folder)[:2]:
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
        body = json.dumps([sys.executable, '-S', os.path.join(HERE, 'fault_run_body.py'), self.folder,
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


class Member:
    """A place for a node: its life ends and begins again; its history goes on in one file."""

    def __init__(self, case, number, store=None, env=None):
        self.env = {**case.env(), **(env or {})}
        if store:
            self.env['MATINS_STORE'] = store
        self.folder = case.folder
        self.jobs = [os.path.join(case.folder, 'jobs.yaml')]
        self.history = os.path.join(case.folder, f'history-{number}.jsonl')
        self.log = os.path.join(case.folder, f'node-{number}.log')
        self.process = None
        self.lives = 0
        case.addCleanup(self.kill)

    def start(self):
        self.lives += 1
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen([MATINS, 'serve', *self.jobs, '--runtime-dir', self.folder, '--history', self.history,
                                             '--drain', '10s'], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait(PATIENCE)

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        return self.process.wait(PATIENCE)


def children():
    """pid -> pids of its children"""
    found = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open(f'/proc/{name}/stat') as f:
                    parent = int(f.read().rpartition(')')[2].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(name))
    return found


def guards_and_bodies(member):
    """The processes under a node: the guards are its children, the bodies theirs."""
    family = children()
    guards = family.get(member.process.pid, [])
    return guards, [body for guard in guards for body in family.get(guard, [])]


def tell(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


class Nemesis:
    """Does evil in seeded order until its time is over; `done` counts what took place."""

    def __init__(self, case, members, rng, cuts=()):
        self.case, self.members, self.rng = case, members, rng
        self.cuts = list(cuts)            # [(name, function)]: what else can break, the network for instance
        self.later = []                   # heap of (instant, number, act)
        self.done = Counter()
        self.told = []

    def at(self, seconds, act):
        heapq.heappush(self.later, (time.monotonic() + seconds, len(self.told) + len(self.later), act))

    def did(self, what, more=''):
        self.done[what] += 1
        self.told.append(f'{time.time():.3f} {what} {more}')

    def rage(self, seconds, enough):
        """For `seconds`; and where what must happen has not happened by then, for a while longer."""
        start = next_act = time.monotonic()
        while time.monotonic() < start + seconds or time.monotonic() < start + 3 * seconds and not enough():
            while self.later and self.later[0][0] <= time.monotonic():
                heapq.heappop(self.later)[2]()
            if time.monotonic() >= next_act:
                self.act()
                next_act = time.monotonic() + self.rng.uniform(0.3, 1.5)
            time.sleep(0.02)
        while self.later:                 # peace: what was stopped goes on, what was killed comes back
            heapq.heappop(self.later)[2]()

    def act(self):
        choices = {self.kill_node: 3, self.stop_node: 4, self.stop_guard: 2, self.stop_body: 2, self.kill_guard: 2,
                   self.kill_body: 2, self.delete_row: 3}
        for name, cut in self.cuts:
            choices[lambda name=name, cut=cut: self.did(name, cut())] = 2
        act, = self.rng.choices(list(choices), list(choices.values()))
        act()

    def victim(self):
        alive = [member for member in self.members if member.alive()]
        return self.rng.choice(alive) if alive else None

    def kill_node(self):
        member = self.victim()
        if member:
            member.kill()
            self.did('kill_node', member.log)
            self.at(self.rng.uniform(0.1, 2), member.start)

    def stop_for_a_while(self, what, pid):
        if pid and tell(pid, signal.SIGSTOP):
            self.did(what, pid)
            self.at(self.rng.choice((0.5 * TTL, 1.6 * TTL, 2.2 * TTL)), lambda: tell(pid, signal.SIGCONT))

    def stop_node(self):
        member = self.victim()
        self.stop_for_a_while('stop_node', member and member.process.pid)

    def process(self, kind):
        """One of the guards (0) or bodies (1) of some node that has any."""
        member = self.victim()
        found = guards_and_bodies(member)[kind] if member else []
        return self.rng.choice(sorted(found)) if found else None

    def stop_guard(self):
        self.stop_for_a_while('stop_guard', self.process(0))

    def stop_body(self):
        self.stop_for_a_while('stop_body', self.process(1))

    def kill_one(self, what, pid):
        if pid and tell(pid, signal.SIGKILL):
            self.did(what, pid)

    def kill_guard(self):
        self.kill_one('kill_guard', self.process(0))

    def kill_body(self):
        self.kill_one('kill_body', self.process(1))

    def delete_row(self):
        rows = self.case.sql("select job_name, period, status from job_watermark where job_name in ('recon', 'hourly') "
                             'order by job_name, period')
        if rows:
            job, period, status = self.rng.choice(rows)
            self.case.sql(f"delete from job_watermark where job_name = '{job}' and period = '{period}'")
            self.did('delete_row', f'{job} {period} {status}')


class Proxy:
    """tests/support's fault_proxy before PostgreSQL or, with `wire`, before MariaDB."""

    def __init__(self, case, server_port, *wire):
        self.process = subprocess.Popen([os.environ['MATINS_FAULT_PROXY'], str(server_port), *wire], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.end)
        self.port = int(self.process.stdout.readline().split()[1])

    def ask(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer.startswith('no such'):
            raise ValueError(answer)
        return answer

    def end(self):
        self.process.communicate(timeout=PATIENCE)


class Pool:
    """A pgbouncer in transaction mode before PostgreSQL."""

    def __init__(self, case, server_port):
        program = shutil.which('pgbouncer', path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
        folder = tempfile.mkdtemp(prefix='mtpool')
        case.addCleanup(shutil.rmtree, folder)
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        config = os.path.join(folder, 'pgbouncer.ini')
        with open(config, 'w') as f:
            f.write(f'[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n[pgbouncer]\n'
                    f'listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n'
                    'pool_mode = transaction\ndefault_pool_size = 10\n')
        user = {}
        if os.getuid() == 0:              # it does not run as root
            os.chmod(folder, 0o755)
            user = dict(user='nobody')
        with open(os.path.join(folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen([program, config], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **user)
        case.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait(PATIENCE)


class Evidence:
    """What is left of a run, and the checker's word on it."""

    def __init__(self, case, work, members, quiet=30):
        """`quiet`: what is due longer ago than this must be settled. What is planned ahead is due before the cut."""
        ahead = 60
        effects, demands = (os.path.join(case.folder, name) for name in ('effects.jsonl', 'demands.jsonl'))
        work.write_effects(effects)
        work.write_demands(demands)
        histories = [m.history for m in members if os.path.exists(m.history)]
        command = [sys.executable, '-B', os.path.join(CHECKER, 'export.py'), case.store, '--effects', effects,
                   '--jobs', demands, '--quiet', str(quiet + ahead), '--cut', str(time.time() + ahead)]
        for path in histories:
            command += ['--history', path]
        exported = os.path.join(case.folder, 'evidence.jsonl')
        with open(exported, 'w') as f:
            subprocess.run(command, stdout=f, check=True, timeout=PATIENCE)
        judged = subprocess.run([sys.executable, '-B', os.path.join(CHECKER, 'checker.py'), exported], text=True,
                                stdout=subprocess.PIPE, timeout=PATIENCE)
        self.verdict = json.loads(judged.stdout)
        self.stats = Counter(self.verdict['stats'])
        self.seen = seen(members)


def seen(members):
    """How often the nodes saw which answer, 'hb refused' for instance."""
    count = Counter()
    for member in members:
        if os.path.exists(member.history):
            with open(member.history) as f:
                count.update(f"{e['type']} {e['res']}" for e in map(json.loads, f))
    return count


def refusals(count):
    """Of old owners."""
    return sum(n for what, n in count.items() if re.fullmatch('(hb|ckpt|commit|fail) refused', what))


def keep(folder, name):
    """Evidence of a run that failed, or that was asked for, goes where MATINS_FAULT_KEEP says."""
    to = os.environ.get('MATINS_FAULT_KEEP')
    if to:
        shutil.copytree(folder, os.path.join(to, name), dirs_exist_ok=True,
                        ignore=lambda _, names: [n for n in names if n.startswith('matins')])
