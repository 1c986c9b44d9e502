"""One sample of an experiment: a fresh store, fresh data, real nodes, the actions, and what is left of it.

A stage lives in a temporary folder (sockets' paths are short); the evidence is what is copied from there at the end.
"""
import json
import os
import re
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
import judge
import soak_body
import stores
from nodes import Member, children, guards_and_bodies, seen, tell
from program import HERE, MATINS, PATIENCE, eventually
from proxy import Proxy
from servers import Servers, small_disk
from stores import writable
from watch import Watch


class Anew(Exception):
    """The sample did not come to be what it was to be, by no fault of anybody: another one is played."""


FILE_DISK, SERVER_DISK = 8, 256      # MiB that a small disk has


class Stopped(Exception):
    """A stop condition came true."""


class Stage:
    def __init__(self, experiment, conditions, servers, phase):
        self.experiment, self.conditions, self.servers, self.phase = experiment, conditions, servers, phase
        self.at_most = experiment.told.get('at_most', 45)
        self.exits = ExitStack()
        self.folder = tempfile.mkdtemp(prefix='mtl')
        self.exits.callback(shutil.rmtree, self.folder, True)
        self.told, self.nodes, self.callers = [], [], []
        self.watch, self.server_log, self.server, self.clock = None, None, None, None
        try:
            self.prepare()
        except BaseException:
            self.exits.close()
            raise

    # ---- what nodes.Member asks of a case -------------------------------------------------------------------------------

    def addCleanup(self, function, *args):  # noqa: N802 (unittest's word)
        self.exits.callback(function, *args)

    def env(self):
        kept = {k: v for k, v in os.environ.items() if k not in ('MATINS_MUTANT', 'MATINS_FAULTS')}
        mutant = self.conditions['mutant']
        redis = self.servers.of('redis').url() if self.conditions['topology.redis'] != 'none' else None
        clock_of_the_file = self.clock.env() if self.clock and self.conditions['store'] == 'sqlite' else {}
        return {**kept, 'MATINS_STORE': self.store.url, **({'MATINS_MUTANT': mutant} if mutant != 'none' else {}),
                **({'MATINS_REDIS': redis} if redis else {}), **clock_of_the_file}

    def sql(self, statement):
        return self.store.sql(statement)

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
        elif self.conditions['topology.server'] == 'own' or self.clock:
            url = self.own_server(kind).fresh(name)
            self.server_log = self.server.log, 0
        elif '://' in kind:
            url = beside(kind, name)
        else:
            server = self.servers.of(kind)
            url = server.fresh(name)
            self.server_log = server.log, os.path.getsize(server.log)
        self.store = stores.open_store(url)
        self.today = datetime.now(timezone.utc).date()
        self.matins('db', 'migrate')
        with open(os.path.join(self.folder, 'fence.sql'), 'w') as f:
            subprocess.run([MATINS, 'fence', 'sql', '--dialect', 'sqlite'], env=self.env(), stdout=f, check=True)
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

    def own_server(self, kind):
        c = self.conditions
        self.server = Servers.own(kind, c['topology.replication'], **({} if c['topology.replication'] != 'none' else dict(
            preload=self.clock and self.clock.env(), disk=SERVER_DISK if c['topology.disk'] == 'small' else 0)))
        self.addCleanup(self.server.stop)
        return self.server

    def snapshot(self):
        """What the data are, without the folder's own name: equal for equal data."""
        return self.jobs().replace(self.folder, 'FOLDER').replace(sys.executable, 'PYTHON')

    def jobs(self):
        c = self.conditions
        command = json.dumps([sys.executable, '-S', '-B', os.path.join(HERE, 'body.py'), self.folder, c['job.guard'], c['job.gate'],
                              str(c['job.steps']), str(c['job.seconds']), c['job.marks']])
        first = self.today - timedelta(days=c['data.days'])
        lock = f'ttl: {c["client.ttl"]}' + (', scope: shared' if c['job.lock'] == 'shared' else '') + \
            (', provider: redis' if c['topology.redis'] != 'none' else '')
        limit = {'job': f'limits: {{ job: {c["job.limit"]} }}, ', 'key': 'limits: { key: shared }, ', 'tenant': 'tenant: ours, '}[
            c['job.limit_of']] if c['job.limit'] else ''
        shared = {'job': '', 'key': f'limits: {{ key: {{ shared: {c["job.limit"]} }} }}\n',
                  'tenant': f'limits: {{ tenant: {{ ours: {c["job.limit"]} }} }}\n'}[c['job.limit_of']] if c['job.limit'] else ''
        commit = 'commit: job, ' if c['job.commit'] == 'job' else ''
        window = f', source_window: {c["job.source_days"]}d' if c['job.source_days'] else ''
        work = '{ exec: true }' if c['client.door'] == 'exec' else f'{{ command: {command} }}'
        overlap = 'overlap: allow, ' if c['job.order'] == 'none' else ''
        order = f', order: {c["job.order"]}' if c['job.order'] != 'usual' else ''
        names = ['work', *(f'work{n}' for n in range(2, c['job.copies'] + 1))]
        return f'journal: full\n{shared}jobs:' + ''.join(
            f'\n  - {{ name: {name}, schedule: "0 0 * * *", period: day, biz_date: -1d, misfire: {c["job.misfire"]}, {overlap}{limit}{commit}'
            f'backfill: {{ start: {first}, max_periods: {c["job.max_periods"]}{order}{window}, '
            f'max_parallel: {c["job.max_parallel"]} }}, '
            f'lock: {{ {lock} }}, start_deadline: 60s, timeout: {c["job.timeout"]}, grace: {judge.GRACE * 1000:g}ms, recovery: {c["job.recovery"]}, '
            f'max_lost: 100, retry: {{ attempts: {c["job.attempts"]}, backoff: {c["job.backoff"]} }}, run: {work} }}' for name in names) + '\n'

    def matins(self, *words, check=True):
        done = subprocess.run([MATINS, *words], env=self.env(), capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
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
            for member in self.nodes:
                if member.alive():
                    member.stop()
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
        return dict(journal=int(entries), checkpoints=points)

    def look(self):
        if self.watch.stopped:
            raise Stopped

    def until(self, what, probe):
        def asked():
            self.look()
            if time.monotonic() > self.deadline:
                raise AssertionError(f'no {what} after {self.at_most} s')
            for member in self.nodes:
                if (member.process.poll() or 0) > 0:
                    with open(member.log, errors='replace') as f:
                        raise AssertionError(f'a node ended with {member.process.poll()} before there was {what}: {f.read()[-500:]}')
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
        if self.store.kind != 'sqlite' and not self.server:
            name = self.store.url.rsplit('=' if self.store.kind == 'postgresql' else '/', 1)[1]
            try:
                self.sql(f'drop schema {name} cascade' if self.store.kind == 'postgresql' else f'drop database {name}')
            except RuntimeError:
                pass
        self.exits.close()

    # ---- actions ----------------------------------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.folder, name)

    def day(self, back):
        return str(self.today - timedelta(days=int(back)))

    def node(self, number=None, point=None):
        """Another node, with a fault point of its own where one is named, or all that the topology has."""
        for _ in range(1 if number is not None else self.conditions['topology.nodes']):
            if not self.nodes and self.conditions['fault.point'] != 'none':
                point = self.conditions['fault.point']
            member = Member(self, len(self.nodes), self.link() if not self.nodes else None,
                            env={**({'MATINS_FAULTS': point} if point else {}), **(self.skew() if not self.nodes else {})})
            self.nodes.append(member)
            member.start()

    def skew(self):
        """The first node's own wall clock, where it is to be wrong."""
        if not self.conditions['topology.skew']:
            return {}
        wrong = clock.Clock(self.conditions['topology.skew'])
        self.addCleanup(wrong.end)
        return wrong.env()

    def link(self):
        """The store as the first node sees it: through a proxy where the topology has one."""
        if self.conditions['topology.link'] == 'direct':
            return None
        port = urlsplit(self.store.url).port
        self.proxy = Proxy(port, self.store.kind)
        self.addCleanup(self.proxy.end)
        return self.store.url.replace(f':{port}/', f':{self.proxy.port}/')

    def drop_reply(self):
        self.proxy.drop_reply()

    def hold_commit(self):
        self.proxy.hold_commit()

    def release(self):
        self.proxy.release()

    def blackhole(self):
        self.proxy.blackhole()

    def open_link(self):
        self.proxy.open()

    def reset_link(self):
        self.proxy.reset()

    def mute_link(self):
        self.proxy.mute()

    def deafen_link(self):
        self.proxy.deafen()

    def slow_link(self):
        self.proxy.slow(self.conditions['fault.step'])

    def drop_all(self):
        self.proxy.drop_reply(for_all=True)

    def hold_all(self):
        self.proxy.hold_commit(for_all=True)

    def answer_lost(self):
        self.until('an end of a run whose answer is lost', lambda: self.proxy.hits)

    # ---- the store's server, disk and clock ---------------------------------------------------------------------------------

    def kill_server(self):
        self.server.kill()

    def start_server(self):
        self.server.again()

    def stop_server(self):
        self.server.tell_all(signal.SIGSTOP)

    def wake_server(self):
        self.server.tell_all(signal.SIGCONT)

    def stop_replica(self):
        self.server.standby.tell_all(signal.SIGSTOP)

    def promote(self):
        self.server.promote()

    def bump_epoch(self):
        self.matins('epoch', 'bump', '--reason', 'of the experiment')

    def fill_disk(self):
        with open(self.ballast(), 'wb', buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError as e:
                self.tell('the disk is full', str(e))
        if self.server and self.store.kind == 'postgresql':     # its log has been made in advance: on to the next
            try:
                self.sql('select pg_switch_wal()')
            except RuntimeError as e:
                self.tell('the server says', str(e))

    def free_disk(self):
        os.remove(self.ballast())
        if self.server:
            self.server.again()

    def ballast(self):
        return os.path.join(self.server.folder if self.server else self.path('disk'), 'ballast')

    def step_clock(self):
        self.clock.step(self.conditions['fault.step'])

    def right_clock(self):
        self.clock.step(-self.clock.off)

    def frozen(self):
        name = 'name' if self.store.kind == 'mariadb' else 'key'
        self.until('the clock to be frozen', lambda: self.sql(f"select value from matins_meta where {name} = 'clock_frozen_why' and value <> ''"))

    def accept_clock(self):
        self.matins('clock', 'accept', '--reason', 'of the experiment')

    def began(self, n):
        self.until(f'start {n} of the body', lambda: os.path.exists(self.path(f'ran.{n}')))

    def effect(self, n=1):
        self.until(f'{n} effects', lambda: len(self.entries()) >= int(n))

    def entries(self):
        db = sqlite3.connect(self.business, timeout=30)
        try:
            return db.execute('select job, period, step, at, fence from entry order by at').fetchall()
        finally:
            db.close()

    def starts(self):
        db = sqlite3.connect(self.business, timeout=30)
        try:
            return db.execute('select n, job, period, fence, pid, began, ended, resume from alive order by n').fetchall()
        finally:
            db.close()

    def let(self, n, status='0'):
        if n == 'all':
            open(self.path('go'), 'w').close()
            return
        with open(self.path(f'new.{n}'), 'w') as f:
            f.write(status)
        os.rename(self.path(f'new.{n}'), self.path(f'go.{n}'))

    def rows(self):
        return self.sql('select job_name, period, status, reason from job_watermark order by job_name, period')

    def status(self, text, n=None):
        """Waits until n rows (all that there are) have this status."""
        def there():
            rows = [row[2] for row in self.rows()]
            return len([s for s in rows if s == text]) >= int(n) if n else rows and set(rows) == {text}
        self.until(f'status {text}', there)

    def all_settled(self):
        """Of everything that the data owe there is a row, and each is DONE, SKIPPED or FAILED for good."""
        want = self.conditions['data.days'] * self.conditions['job.copies']
        self.until('rows to settle', lambda: (lambda rows: len(rows) >= want and all(
            row[2] in ('DONE', 'SKIPPED', 'FAILED') for row in rows))(self.rows()))

    def lease_over(self):
        self.until('the end of the lease', lambda: int(self.sql(
            f'select count(*) from job_watermark where lease_until < {self.store.now}')[0][0]))

    def stop(self, number):
        """Node, its guards and their bodies: a machine that stands still."""
        member = self.nodes[int(number)]
        guards, bodies = guards_and_bodies(member)
        member.frozen, member.mark = [*guards, *bodies], seen([member])
        self.freeze(member.process.pid, *member.frozen)

    def stop_node(self, number):
        self.freeze(self.nodes[int(number)].process.pid)

    def freeze(self, *pids):
        """Who is stopped in the midst of a SQLite transaction stops everybody else too. That is another experiment: such a one goes on
        for a moment and is stopped again."""
        files = [self.business, *([self.store.path] if self.store.kind == 'sqlite' else [])]

        def stopped_and_writable():
            for pid in pids:
                tell(pid, signal.SIGSTOP)
            if all(writable(path) for path in files):
                return True
            for pid in pids:
                tell(pid, signal.SIGCONT)
            self.tell('stopped in a transaction, so once more')
            return False
        self.until('a stop outside a transaction', stopped_and_writable)

    def wake(self, number):
        member = self.nodes[int(number)]
        for pid in (*getattr(member, 'frozen', ()), member.process.pid):
            tell(pid, signal.SIGCONT)

    def wake_node(self, number):
        tell(self.nodes[int(number)].process.pid, signal.SIGCONT)

    def wake_body(self, number):
        """The body alone goes on; its guard, out of action, cannot end it. As long as it writes and then ends."""
        member = self.nodes[int(number)]
        guards = set(guards_and_bodies(member)[0])
        bodies = [pid for pid in member.frozen if pid not in guards]
        for pid in bodies:
            tell(pid, signal.SIGCONT)

        def over():
            for pid in bodies:
                try:
                    with open(f'/proc/{pid}/stat') as f:
                        if f.read().rpartition(')')[2].split()[0] not in 'ZX':
                            return False
                except OSError:
                    continue
            return True
        self.until('the end of the body', over)

    def pause(self):
        """The length is a condition, in leases: it is waited for, as nothing else tells how long a pause was."""
        time.sleep(self.conditions['fault.length'] * float(self.conditions['client.ttl'].rstrip('s')))

    def kill_node(self, number):
        self.nodes[int(number)].kill()

    def kill_machine(self, number):
        """Node, guards and bodies at one instant."""
        member = self.nodes[int(number)]
        guards, bodies = guards_and_bodies(member)
        for pid in (member.process.pid, *guards, *bodies):
            tell(pid, signal.SIGKILL)
        member.process.wait(PATIENCE)

    def kill_body(self, number):
        for pid in guards_and_bodies(self.nodes[int(number)])[1]:
            tell(pid, signal.SIGKILL)

    def again(self, number):
        self.nodes[int(number)].start()

    def end_node(self, number):
        self.nodes[int(number)].stop()

    def heard(self, number, kind, more='0'):
        """Waits for the node's answer to a call of this kind: the first, one after so many, or one that is `new` since it was stopped."""
        member = self.nodes[int(number)]

        def answers(count):
            return sum(n for what, n in count.items() if what.split()[0] == kind and what.split()[1] != 'inv')
        least = answers(member.mark) if more == 'new' else answers(seen([member])) if more == 'more' else int(more)
        self.until(f'an answer to {kind}', lambda: answers(seen([member])) > least)

    def heard_refused(self, number, least):
        self.heard_of(number, lambda what: re.fullmatch('(hb|ckpt|commit|fail) refused', what), least)

    def heard_unknown(self, number, least):
        self.heard_of(number, lambda what: what == 'commit info', least)

    def heard_of(self, number, which, least):
        self.until(f'{least} such answers', lambda: sum(
            n for what, n in seen([self.nodes[int(number)]]).items() if which(what)) >= int(least))

    def stopped_itself(self, number):
        def state():
            with open(f'/proc/{self.nodes[int(number)].process.pid}/stat') as f:
                return f.read().rpartition(')')[2].split()[0]
        self.until('the node to stop itself', lambda: state() == 'T')
        if self.store.kind == 'sqlite' and not writable(self.store.path):
            raise Anew      # another thread of it was in a transaction, and with it everybody stands still

    def delete_rows(self):
        self.sql('delete from job_watermark')

    def drop_index(self, name):
        on = ' on job_watermark' if self.store.kind == 'mariadb' else ''
        self.sql(f'drop index {name}{on}')

    def job_deleted(self):
        self.planned_before = self.planned_to()
        self.matins('job', 'delete', 'work', '--reason', 'of the experiment')

    def rerun(self):
        """What a person does with periods that stand FAILED."""
        for job, period, status, _ in self.rows():
            if status == 'FAILED':
                self.matins('run', job, '--date', period, '--reason', 'mended')

    def flush_redis(self):
        self.servers.of('redis').ask('FLUSHALL')

    def fire(self):
        """The same fire on each of `topology.callers` hosts at once: through matins exec, or straight to the command."""
        c = self.conditions
        words = [sys.executable, '-S', '-B', os.path.join(HERE, 'body.py'), self.folder, c['job.guard'], c['job.gate'], str(c['job.steps']),
                 str(c['job.seconds']), c['job.marks']]
        env = {**self.env(), 'LAB_PERIOD': self.day(1)}
        if c['client.door'] == 'exec':
            words = [MATINS, 'exec', 'work', '--config', self.path('jobs.yaml'), '--', *words]
        elif c['client.door'] == 'direct':
            env = {k: v for k, v in env.items() if not k.startswith('MATINS_')}
        for n in range(c['topology.callers']):
            with open(self.path(f'caller-{n}.log'), 'wb') as log:
                self.callers.append(subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            self.addCleanup(self.callers[-1].kill)

    def callers_end(self):
        self.until('the callers to end', lambda: all(p.poll() is not None for p in self.callers))
        self.tell('exit codes', ' '.join(str(p.returncode) for p in self.callers))

    def until_noticed(self):
        """A doubled effect, where there is one, has to be seen by the watch."""
        twice = len(self.entries()) > len({entry[:3] for entry in self.entries()})
        if twice and 'doubled' in self.watch.stops:
            self.until('stop', lambda: False)

    def planned(self):
        """Since the job was deleted: the plan moves the cursor up to its instant."""
        self.until('the plan', lambda: self.planned_to() > self.planned_before)

    def planned_to(self):
        return self.sql(f'select {"`cursor`" if self.store.kind == "mariadb" else "cursor"} from job')[0][0]


def beside(url, name):
    """A schema (PostgreSQL) or database (MariaDB) of this sample's own on that server; nothing that is there is touched."""
    parts = urlsplit(url)
    if parts.scheme == 'mariadb':
        return urlunsplit(parts._replace(path='/' + name))
    return urlunsplit(parts._replace(query=f'schema={name}'))


BRINGS_BACK = ('start_server', 'wake_server', 'promote', 'free_disk', 'open_link')
TAKES_AWAY = ('kill_server', 'stop_server', 'stop_replica', 'fill_disk')
FAULTS = (*BRINGS_BACK, *TAKES_AWAY, 'mute_link', 'deafen_link', 'slow_link', 'step_clock', 'right_clock', 'bump_epoch', 'accept_clock', 'stop', 'stop_node', 'wake', 'wake_node', 'wake_body', 'kill_node', 'kill_machine', 'kill_body', 'delete_rows', 'drop_index', 'job_deleted',
          'flush_redis', 'rerun', 'drop_reply', 'hold_commit', 'drop_all', 'hold_all', 'release', 'blackhole', 'reset_link')
ACTIONS = {name: getattr(Stage, name) for name in (
    *FAULTS, 'node', 'began', 'effect', 'let', 'status', 'all_settled', 'lease_over', 'pause', 'again', 'end_node', 'heard', 'stopped_itself', 'fire',
    'callers_end', 'planned', 'until_noticed', 'answer_lost', 'frozen', 'heard_unknown', 'heard_refused')}
