"""One sample of an experiment: a fresh store, fresh data, real nodes, the actions, and what is left of it.

A stage lives in a temporary folder (sockets' paths are short); the evidence is what is copied from there at the end.
"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from urllib.parse import urlsplit, urlunsplit

import body
import clock
import disk
import judge
import replicas
import soak_body
import stores
from deeds import ACTIONS, BRINGS_BACK, FAULTS, TAKES_AWAY, Anew, Deeds, said
from experiment import CONDITIONS
from nodes import children, label, tell
from program import HERE, MATINS, PATIENCE, eventually
from servers import Servers, small_disk
from watch import Watch

FILE_DISK, SERVER_DISK = 8, 256      # MiB that a small disk has
NO_FLUSH = dict(postgresql=['synchronous_commit=off'], mariadb=['--innodb-flush-log-at-trx-commit=0'])      # unless a session asks for it


class Stopped(Exception):
    """A stop condition came true."""


class Stage(Deeds):
    def __init__(self, experiment, conditions, servers, phase, older=None):
        """`older`: the program of the version before, where the conditions ask for one."""
        self.experiment, self.conditions, self.servers, self.phase = experiment, CONDITIONS | conditions, servers, phase
        self.older = older if self.conditions['topology.versions'] == 'two' else None
        self.at_most = experiment.told.get('at_most', PATIENCE)
        self.exits = ExitStack()
        self.folder = tempfile.mkdtemp(prefix='mtl')
        self.exits.callback(shutil.rmtree, self.folder, True)
        self.told, self.nodes, self.callers, self.held, self.written, self.disk, self.planned_before = [], [], [], None, None, None, ''
        self.watch, self.server, self.clock, self.logs = None, None, None, []      # logs: (name, path, where it begins)
        try:
            self.prepare()
        except BaseException:
            self.exits.close()
            raise

    # ---- what nodes.Member asks of a case -------------------------------------------------------------------------------

    def addCleanup(self, function, *args):  # noqa: N802 (unittest's word)
        self.exits.callback(function, *args)

    def env(self, whole=False):
        """`whole`: with all protections."""
        kept = {k: v for k, v in os.environ.items() if k not in ('MATINS_MUTANT', 'MATINS_FAULTS')}
        mutant = 'none' if whole else self.conditions['mutant']
        redis = self.servers.of('redis').url() if self.conditions['topology.redis'] != 'none' else None
        clock_of_the_file = self.clock.env() if self.clock and self.conditions['store'] == 'sqlite' else {}
        return {**kept, 'MATINS_STORE': self.store.url, **({'MATINS_MUTANT': mutant} if mutant != 'none' else {}),
                **({'MATINS_REDIS': redis} if redis else {}), **clock_of_the_file}

    def sql(self, statement):
        return self.store.sql(statement)

    def path(self, name):
        return os.path.join(self.folder, name)

    def day(self, back):
        return str(self.today - timedelta(days=int(back)))

    # ---- what there is ------------------------------------------------------------------------------------------------------

    def booked(self, question):
        """What the business database says."""
        db = sqlite3.connect(self.business, timeout=30)
        try:
            return db.execute(question).fetchall()
        finally:
            db.close()

    def entries(self):
        told = 'select job, period, step, at, fence from entry order by at'
        if self.conditions['job.guard'] != 'store':
            return self.booked(told)
        return [(job, period, int(step), float(at), int(fence)) for job, period, step, at, fence in self.sql(told)]

    def starts(self):
        return self.booked('select n, job, period, fence, pid, began, ended, resume from alive order by n')

    def rows(self):
        return self.sql('select job_name, period, status, reason from job_watermark order by job_name, period')

    # ---- data -----------------------------------------------------------------------------------------------------------

    def prepare(self):
        kind, name = self.conditions['store'], 'lab_' + os.path.basename(self.folder).lower().replace('-', '_')
        if self.conditions['topology.clock'] == 'its own':
            self.clock = clock.Clock()
            self.addCleanup(self.clock.end)
        if kind == 'sqlite':
            os.mkdir(self.path('disk'), 0o700)
            if self.conditions['topology.disk'] == 'small':
                small_disk(self.path('disk'), FILE_DISK)
                self.addCleanup(subprocess.run, ['umount', '-l', self.path('disk')])
            url = f'sqlite:{self.folder}/disk/matins.db'
        elif self.conditions['topology.server'] == 'own' or self.conditions['topology.disk'] == 'forgetful' or self.clock:
            url = self.own_server(kind).fresh(name)
            self.logs.append(('server.log', self.server.log, 0))
            if hasattr(self.server, 'standby'):
                self.logs.append(('replica.log', self.server.standby.log, 0))
        elif '://' in kind:
            url = beside(kind, name)
        else:
            server = self.servers.of(kind)
            url = server.fresh(name)
            self.logs.append(('server.log', server.log, os.path.getsize(server.log)))
        self.store = stores.open_store(url)
        self.today = datetime.now(timezone.utc).date()
        self.matins('db', 'migrate', program=self.older or MATINS, whole=True)
        with open(os.path.join(self.folder, 'fence.sql'), 'w') as f:
            subprocess.run([MATINS, 'fence', 'sql', '--dialect', 'sqlite'], env=self.env(), stdout=f, check=True)
        if self.conditions['job.guard'] == 'store':
            self.beside_the_rows()
        self.business = os.path.join(self.folder, 'business.db')
        db = sqlite3.connect(self.business, isolation_level=None)
        db.execute('pragma journal_mode = wal')
        for text in (*soak_body.statements(self.folder)[:2], *body.TABLES):
            db.execute(text)
        db.close()
        with open(os.path.join(self.folder, 'jobs.yaml'), 'w') as f:
            f.write(self.jobs())
        if self.conditions['client.door'] == 'exec':
            self.matins('job', 'apply', self.path('jobs.yaml'))
        if self.conditions['topology.disk'] == 'forgetful':
            self.matins('job', 'apply', self.path('jobs.yaml'), whole=True)
            if kind == 'sqlite':
                self.disk = disk.ForgetfulDisk(self.path('disk'))
                self.addCleanup(self.disk.end)

    def beside_the_rows(self):
        """What a job needs that writes its effects and its DONE into the store."""
        with open(self.path('commit.sql'), 'w') as f:
            subprocess.run([MATINS, 'fence', 'sql', '--dialect', self.store.kind], env=self.env(), stdout=f, check=True)
        with open(self.path('store.url'), 'w') as f:
            f.write(self.store.url)
        self.sql(body.ENTRY)

    def own_server(self, kind):
        c = self.conditions
        late = dict(options=NO_FLUSH[kind]) if c['topology.disk'] == 'forgetful' else {}
        self.server = replicas.pair(kind, c['topology.replication']) if c['topology.replication'] != 'none' else Servers.own(
            kind, preload=self.clock and self.clock.env(), disk=SERVER_DISK if c['topology.disk'] == 'small' else 0, **late)
        self.addCleanup(self.server.stop)
        return self.server

    def snapshot(self):
        """What the data are, without the folder's own name: equal for equal data."""
        return self.jobs().replace(self.folder, 'FOLDER').replace(sys.executable, 'PYTHON')

    def jobs(self):
        c = self.conditions
        command = json.dumps([sys.executable, '-S', '-B', os.path.join(HERE, 'body.py'), self.folder, c['job.guard'], c['job.gate'],
                              str(c['job.steps']), str(c['job.seconds']), c['job.marks']])
        lock = f'ttl: {c["client.ttl"]}' + (', scope: shared' if c['job.lock'] == 'shared' else '') + \
            (', provider: redis' if c['topology.redis'] != 'none' else '')
        limit = {'job': f'limits: {{ job: {c["job.limit"]} }}, ', 'key': 'limits: { key: shared }, ', 'tenant': 'tenant: ours, '}[
            c['job.limit_of']] if c['job.limit'] else ''
        shared = {'job': '', 'key': f'limits: {{ key: {{ shared: {c["job.limit"]} }} }}\n',
                  'tenant': f'limits: {{ tenant: {{ ours: {c["job.limit"]} }} }}\n'}[c['job.limit_of']] if c['job.limit'] else ''
        commit = 'commit: job, ' if c['job.commit'] == 'job' else ''
        window = f', source_window: {c["job.source_days"]}d' if c['job.source_days'] else ''
        work = '{ exec: true }' if c['client.door'] == 'exec' else f'{{ command: {command} }}'
        audit, of_all = ('audit: "5-59/10 * * * *", ', 'audit: "*/10 * * * *"\n') if c['topology.audits'] == 'often' else ('', '')
        overlap = 'overlap: replace, ' if c['job.overlap'] == 'replace' else 'overlap: allow, ' if c['job.order'] == 'none' else ''
        order = f', order: {c["job.order"]}' if c['job.order'] != 'usual' else ''

        def of_its_own(n):
            return ''.join((f'nodes: [{label(n)}], ' if c['topology.labels'] == 'own' else '', f'tenant: tenant{n}, ' if c['job.tenant'] == 'own' else '',
                            'after: [{ job: work }], ' if c['job.after'] == 'first' and n > 0 else ''))

        def first(n):
            days = c['data.other_days'] if n > 0 and c['data.other_days'] else c['data.days']
            return f'start: {self.today - timedelta(days=days)}, ' if days else ''
        names = ['work', *(f'work{n}' for n in range(2, c['job.copies'] + 1))]
        pager = [sys.executable, '-S', '-B', os.path.join(HERE, 'pager.py'), self.folder]
        alerts = f'alerts: {{ channels: {{ pager: {{ kind: command, command: {json.dumps(pager)} }} }} }}\n' if c['topology.pager'] == 'slow' else ''
        return f'journal: full\n{of_all}{alerts}{shared}jobs:' + ''.join(
            f'\n  - {{ name: {name}, schedule: "0 0 * * *", period: day, biz_date: -1d, misfire: {c["job.misfire"]}, {overlap}{of_its_own(n)}{limit}'
            f'{commit}{audit}'
            f'backfill: {{ {first(n)}max_periods: {c["job.max_periods"]}{order}{window}, '
            f'max_parallel: {c["job.max_parallel"]} }}, '
            f'lock: {{ {lock} }}, start_deadline: 60s, timeout: {c["job.timeout"]}, grace: {c["job.grace"] * 1000:g}ms, recovery: {c["job.recovery"]}, '
            f'max_lost: 100, retry: {{ attempts: {c["job.attempts"]}, backoff: {c["job.backoff"]} }}, run: {work} }}' for n, name in enumerate(names)) + '\n'

    def matins(self, *words, check=True, program=MATINS, whole=False, faults='none'):
        env = {**self.env(whole), **({'MATINS_FAULTS': faults} if faults != 'none' else {})}
        done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f'matins {" ".join(words)}: {done.stdout}{done.stderr}')
        return done

    # ---- the play ---------------------------------------------------------------------------------------------------------

    def play(self):
        """Does the actions. What becomes of them is in `told`; what did not come in time is told there too."""
        self.begun = time.time()
        self.deadline = time.monotonic() + self.at_most
        self.watch = Watch(self, self.experiment.told.get('stop_when', ()))
        self.settled = True
        self.watch.start()
        try:
            for action in self.experiment.told['actions']:
                self.act(action)
            for number in range(len(self.nodes)):
                self.end_node(number)
        except Stopped:
            self.settled = False
        except Anew:
            self.settled = None
            raise
        except AssertionError as e:
            self.settled = False
            self.tell('gave up', str(e))
        except (RuntimeError, OSError, sqlite3.Error, subprocess.SubprocessError, LookupError, TypeError, ValueError) as e:
            self.settled = None          # the lab's own trouble says nothing of the claim
            self.tell('the lab could not go on', f'{type(e).__name__}: {e}')
        finally:
            self.watch.end()
            self.ended = time.time()

    def tell(self, what, more='', **figures):
        self.told.append(dict(at=time.time(), what=what, **({'more': more} if more else {}), **figures))

    def act(self, action):
        """`[when KEY=VALUE:] WORD [ARGUMENTS]`"""
        text = action
        while text.startswith('when '):
            condition, _, text = text[len('when '):].partition(': ')
            key, _, value = condition.partition('=')
            if str(self.conditions[key.strip()]) != value.strip():
                return
        word, *arguments = text.split()
        fault = word in FAULTS
        # A pause has its length; and who is asked while he does not answer makes it longer.
        figures = dict(before=self.position()) if fault and not word.startswith('wake') and word not in BRINGS_BACK else {}
        self.tell(text, **figures)
        ACTIONS[word](self, *arguments)
        if fault:
            self.tell(f'{text}: done', **({} if word in TAKES_AWAY else dict(after=self.position())))
        self.look()

    def position(self):
        """Of the journal and the checkpoints."""
        try:
            entries, = self.sql('select count(*) from job_journal')[0]
            points = self.sql('select job_name, period, checkpoint from job_watermark where checkpoint > 0 order by job_name, period')
        except (RuntimeError, sqlite3.Error, subprocess.SubprocessError) as e:
            return dict(unknown=str(e))
        behind = replicas.lag(self.server)
        return dict(journal=int(entries), checkpoints=points, **(dict(replication=behind) if behind else {}))

    def look(self):
        if self.watch.stopped:
            raise Stopped

    def until(self, what, probe):
        def asked():
            self.look()
            if time.monotonic() > self.deadline:
                raise AssertionError(f'no {what} after {self.at_most} s')
            for member in self.nodes:
                if (member.process.poll() or 0) > 0 and not self.too_old(member):
                    raise AssertionError(f'a node ended with {member.process.poll()} before there was {what}: {said(member)[-500:]}')
            return probe()
        return eventually(what, asked, self.at_most + 5)

    def kill_all(self):
        """Everything of this stage that can write: nodes first stopped, so that nothing new begins, then all under them."""
        roots = [p.pid for p in (*(m.process for m in self.nodes if m.process), *self.callers) if p.poll() is None]
        for pid in roots:
            tell(pid, signal.SIGSTOP)
        for _ in range(2):
            family, found = children(), list(roots)
            for pid in found:
                found += family.get(pid, [])
            found += [pid for pid in self.strays() if pid not in found]
            for pid in found:
                tell(pid, signal.SIGKILL)

    def strays(self):
        """Processes of this stage that have lost their parents: its folder is in their command line."""
        found = []
        for name in os.listdir('/proc'):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f'/proc/{name}/cmdline', 'rb') as f:
                        if self.folder.encode() in f.read():
                            found.append(int(name))
                except OSError:
                    continue
        return found

    def end(self):
        self.kill_all()
        for prompt in (self.held, self.written):
            if prompt:
                prompt.end()
        if self.store.kind != 'sqlite' and not self.server:
            name = self.store.url.rsplit('=' if self.store.kind == 'postgresql' else '/', 1)[1]
            try:
                self.sql(f'drop schema {name} cascade' if self.store.kind == 'postgresql' else f'drop database {name}')
            except RuntimeError:
                pass
        self.exits.close()


def beside(url, name):
    """A schema (PostgreSQL) or database (MariaDB) of this sample's own on that server; nothing that is there is touched."""
    parts = urlsplit(url)
    if parts.scheme == 'mariadb':
        return urlunsplit(parts._replace(path='/' + name))
    return urlunsplit(parts._replace(query=f'schema={name}'))
