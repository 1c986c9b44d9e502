"""What an experiment may do to a stage: nodes, links, servers, disks and clocks, and what can be waited for. Each action is a method of its name."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from urllib.parse import urlsplit

import body
import clock
import prompt
import replicas
from nodes import Member, guards_and_bodies, label, seen, state_of, tell
from program import HERE, MATINS, PATIENCE
from proxy import Proxy
from stores import writable


CALLERS_A_LOG = 100     # that append to one file
# Sqlite says what it knows, the servers what they have.
TOO_OLD = re.compile(r'schema\b.*\bnewer\b')


class Anew(Exception):
    """The sample did not come to be what it was to be, by no fault of anybody: another one is played."""


def said(member):
    with open(member.log, errors='replace') as f:
        return f.read()


class Deeds:
    """The half of a stage (stage.py) that acts."""

    # ---- nodes and their links ----------------------------------------------------------------------------------------------

    def node(self, number=None, point=None):
        """Another node, with a fault point of its own where one is named, or all that the topology has."""
        for _ in range(1 if number is not None else self.conditions['topology.nodes']):
            if not self.nodes and self.conditions['fault.point'] != 'none':
                point = self.conditions['fault.point']
            member = Member(self, len(self.nodes), self.link() if not self.nodes else None, drain=self.conditions['client.drain'],
                            program=self.older if self.older and not self.nodes else MATINS, more=self.words_of(len(self.nodes)),
                            env={**({'MATINS_FAULTS': point} if point else {}), **(self.disk.env() if self.disk else {}),
                                 **(self.skew() if not self.nodes else {})})
            self.nodes.append(member)
            member.start()

    def words_of(self, number):
        """How many runs a node has at a time, and which label."""
        c = self.conditions
        return ['--slots', str(c['client.slots']), *(['--label', label(number)] if c['topology.labels'] == 'own' else [])]

    def skew(self):
        """The first node's own clocks, where they are to be wrong, or those of a machine that has slept."""
        c = self.conditions
        if not c['topology.skew'] and not c['topology.slept'] and c['topology.boot'] != 'its own':
            return {}
        self.nodes_clock = clock.Clock(c['topology.skew'], c['topology.slept'])
        self.addCleanup(self.nodes_clock.end)
        return self.nodes_clock.env()

    def leap_boot(self):
        """To the first node so many seconds more have passed since its machine was started."""
        self.nodes_clock.leap(self.conditions['fault.step'])

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

    def cut_replica(self):
        self.server.cut()

    def caught_up(self):
        self.until('a replica that has it all', lambda: replicas.lag(self.server)['behind'] == 0)

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

    def slow_writers(self):
        """What nobody waits for is not written any more; all that was by now is on the disk."""
        if self.server:
            self.sql('checkpoint')
            self.server.stop_writers()

    def cut_power(self):
        """Of all that there is, at one instant. Nodes stay dead; the store comes back with what was flushed."""
        if self.server:
            self.kill_machines()
            self.server.kill()
            self.server.again()
            return
        with self.store.lock:       # whoever has the file open last writes into it what the disk has forgotten
            self.kill_machines()
            self.disk.forget()

    def kill_machines(self):
        for number in range(len(self.nodes)):
            self.kill_machine(number)

    def step_clock(self):
        self.clock.step(self.conditions['fault.step'])

    def right_clock(self):
        self.clock.step(-self.clock.off)

    def frozen(self):
        self.until('the clock to be frozen', lambda: self.sql(
            f"select value from matins_meta where {self.named('clock_frozen_why')} and value <> ''"))

    def accept_clock(self):
        self.matins('clock', 'accept', '--reason', 'of the experiment')

    def began(self, n):
        self.until(f'start {n} of the body', lambda: os.path.exists(self.path(f'ran.{n}')))

    def body_ended(self, n):
        self.until(f'the end of body {n}', lambda: self.booked(f'select 1 from alive where n = {int(n)} and ended is not null'))

    def in_hand(self, n):
        """So many rows that are not due yet are in a node's hands."""
        self.until(f'{n} rows that are held', lambda: int(self.sql(
            "select count(*) from job_watermark where status = 'PLANNED' and held_by <> ''")[0][0]) >= int(n))

    def body_gone(self, n):
        """Whatever ended it; how long it lived is told."""
        (pid, began), = self.booked(f'select pid, began from alive where n = {int(n)}')
        self.until(f'the end of body {n}', lambda: state_of(pid) in (None, 'Z', 'X'))
        self.tell('a body is gone', n=int(n), lived=round(time.time() - began, 3))

    def audited(self, n):
        self.until(f'{n} audits', lambda: int(self.sql('select count(*) from job_audit where finished_at is not null')[0][0]) >= int(n))

    def ticked(self, n):
        """So many nodes have looked at the store's clock."""
        self.until(f'{n} nodes that have ticked', lambda: int(self.sql('select count(*) from job_node')[0][0]) >= int(n))

    def logged(self, number, *words):
        """A node says so."""
        text = ' '.join(words)
        self.until(f'{text!r} in its log', lambda: text in said(self.nodes[int(number)]))

    def effect(self, n=1):
        self.until(f'{n} effects', lambda: len(self.entries()) >= int(n))

    def let(self, n, status='0'):
        if n == 'all':
            open(self.path('go'), 'w').close()
            return
        with open(self.path(f'new.{n}'), 'w') as f:
            f.write(status)
        os.rename(self.path(f'new.{n}'), self.path(f'go.{n}'))

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

    def lease_over(self, n=1):
        self.until(f'the end of {n} leases', lambda: self.leases_over() >= int(n))

    def leases_over(self):
        return int(self.sql(f'select count(*) from job_watermark where lease_until < {self.store.now}')[0][0])

    def stop(self, number):
        """Node, its guards and their bodies: a machine that stands still."""
        member = self.nodes[int(number)]
        guards, bodies = guards_and_bodies(member)
        member.frozen, member.mark = [*guards, *bodies], seen([member])
        self.freeze(member.process.pid, *member.frozen)

    def stop_node(self, number):
        self.freeze(self.nodes[int(number)].process.pid)

    def stop_guards(self, number):
        """Node and guards: the bodies go on, and nobody is there to end them."""
        member = self.nodes[int(number)]
        member.frozen, member.mark = guards_and_bodies(member)[0], seen([member])
        self.freeze(member.process.pid, *member.frozen)

    def stop_guard(self, number):
        """The guards alone: their node goes on, and so do the bodies."""
        self.freeze(*guards_and_bodies(self.nodes[int(number)])[0])

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
        """Asked to, where it has not ended by itself; how it ended is told."""
        member = self.nodes[int(number)]
        if member.process in (None, member.ended) or member.process.poll() == -signal.SIGKILL:
            return
        member.ended = member.process
        by_itself = not member.alive()
        code = member.process.returncode if by_itself else member.stop()
        badly = code != 0 and not self.too_old(member)
        self.tell('a node ended', said(member)[-500:] if badly else '', node=int(number), code=code, by_itself=by_itself, badly=badly)

    # ---- another version beside this one ------------------------------------------------------------------------------------

    def too_old(self, member):
        """Whether it says that its store is of a newer program now."""
        return bool(TOO_OLD.search(said(member)))

    def schema(self):
        return int(self.sql(f"select value from matins_meta where {self.named('schema')}")[0][0])

    def migrated(self):
        """The schema is this program's own."""
        wanted = json.loads(self.matins('db', 'check', '-o', 'json', check=False).stdout)['wanted']
        self.until('the schema of this program', lambda: self.schema() == wanted)
        self.tell('schema', str(wanted))

    def newer_schema(self):
        """What a newer program's migration does at its end."""
        self.write_schema(self.schema() + 1)

    def right_schema(self):
        self.write_schema(self.schema() - 1)

    def write_schema(self, version):
        self.sql(f"update matins_meta set value = '{version}' where {self.named('schema')}")

    def named(self, word):
        """The row of matins_meta that has this word."""
        column = 'name' if self.store.kind == 'mariadb' else '"key"'
        return f"{column} = '{word}'"

    def gone(self, number):
        """Ends by itself, and says why."""
        self.until('the end of a node that is too old', lambda: not self.nodes[int(number)].alive())
        self.end_node(number)

    def renew(self, number):
        """A node of this program in the place of that one."""
        self.end_node(number)
        self.nodes[int(number)].program = MATINS
        self.nodes[int(number)].start()

    # ---- locks that are held from outside --------------------------------------------------------------------------------------

    def hold(self):
        self.held = prompt.open_prompt(self.store.url)
        return self.held

    def hold_rows(self):
        """Whoever wants to write to a row of this store waits from here on."""
        self.hold().hold_rows()

    def hold_fences(self):
        """Whoever begins a run waits from here on, when all is decided and counted."""
        self.hold().hold_fences()

    def waiting(self, n, which='all'):
        self.until(f'{n} calls that wait ({which})', lambda: self.store.waiting(which) >= int(n))

    def waits_past_lease(self, number):
        """A call that came while its lease was alive still waits now that it is over. Of SQLite's waiters nobody can tell: there the node has stopped
        itself at their door."""
        if self.store.kind == 'sqlite':
            self.stopped_itself(number)
            self.lease_over()
            return

        def past_it():
            over = self.leases_over()
            if not self.store.waiting('past_lease') and over:
                raise Anew      # it had given up waiting a moment before, and asked once more
            return over
        self.until('a call that waits for longer than its lease', past_it)

    def let_go(self):
        """What is held. Of rows it is told which change they had seen last by then, and when that was by the store's clock."""
        if self.held.has_rows:
            (ver, clock_), = self.held.ask(f'select max(ver), {self.store.seconds} from job_watermark')
            self.tell('rows are let go', ver=int(ver), clock=float(clock_))
        self.held.end()

    # ---- what nodes are heard to say --------------------------------------------------------------------------------------------

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

    def heard_no(self, number, least):
        self.heard_of(number, lambda what: what == 'resolve no', least)

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

    # ---- what a job of `commit: job` does, on a connection that outlives it -----------------------------------------------------

    def write_done(self, n):
        """All that the nth start would write with its DONE, by somebody to whom it left that; the COMMIT is still to come."""
        job, period, fence = next(row[1:4] for row in self.starts() if row[0] == int(n))
        self.written, self.is_owner = body.written(self.folder, dict(job=job, period=period, generation=1, fence=fence), self.conditions['job.steps'])

    def commit_done(self):
        self.written.ask('commit' if self.is_owner else 'rollback')
        self.written.end()
        self.tell('a late COMMIT', 'taken' if self.is_owner else 'refused')

    def delete_rows(self):
        self.sql('delete from job_watermark')

    def drop_index(self, name):
        on = ' on job_watermark' if self.store.kind == 'mariadb' else ''
        self.sql(f'drop index {name}{on}')

    def job_deleted(self):
        self.planned_before = self.planned_to()
        self.matins('job', 'delete', 'work', '--reason', 'of the experiment')

    def shut(self):
        """The gates again, after `let all`."""
        os.remove(self.path('go'))

    def backfill(self, first, last, *words):
        """What a person asks to be done once more, between two days."""
        self.matins('backfill', 'work', '--from', self.day(first), '--to', self.day(last), '--reprocess', 'all', '--reason', 'of the experiment', *words)

    def by_hand(self, day, job='work'):
        self.matins('run', job, '--date', self.day(day), '--reason', 'of the experiment')

    def rerun(self):
        """What a person does with periods that stand FAILED."""
        for job, period, status, _ in self.rows():
            if status == 'FAILED':
                self.matins('run', job, '--date', period, '--reason', 'mended')

    def flush_redis(self):
        self.servers.of('redis').ask('FLUSHALL')

    def fire(self):
        """The same fire on each of `topology.callers` hosts, so many at once as `client.at_once` says: through matins exec, or straight to the
        command."""
        c = self.conditions
        words = [sys.executable, '-S', '-B', os.path.join(HERE, 'body.py'), self.folder, c['job.guard'], c['job.gate'], str(c['job.steps']),
                 str(c['job.seconds']), c['job.marks']]
        env = {**self.env(), 'LAB_PERIOD': self.day(1)}
        if c['client.door'] == 'exec':
            words = [MATINS, 'exec', 'work', '--config', self.path('jobs.yaml'), '--', *words]
        elif c['client.door'] == 'direct':
            env = {k: v for k, v in env.items() if not k.startswith('MATINS_')}
        for n in range(c['topology.callers']):
            self.until('a place for the next call', lambda: sum(p.poll() is None for p in self.callers) < c['client.at_once'])
            with open(self.path(f'caller-{n // CALLERS_A_LOG}.log'), 'ab') as log:
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

    def audit(self):
        """Whether somebody should be alarmed, by what `matins audit` sees."""
        told = json.loads(self.matins('audit', '-o', 'json', check=False, faults=self.conditions['fault.point']).stdout)
        self.tell('audited', ', '.join(finding['kind'] for finding in told['findings']), expected=told['expected'], alarms=told['alarms'])

    def reschedule(self, *fields):
        """Another schedule of the job from now on."""
        self.rewrite(r'schedule: "[^"]*"', f'schedule: "{" ".join(fields)}"')

    def retime(self, ttl):
        """Another length of its leases."""
        self.rewrite(r'ttl: \w+', f'ttl: {ttl}')

    def rewrite(self, words, by):
        with open(self.path('jobs.yaml')) as f:
            text = f.read()
        with open(self.path('jobs.yaml'), 'w') as f:
            f.write(re.sub(words, by, text))
        self.matins('job', 'apply', self.path('jobs.yaml'))

    def told_person(self, n):
        self.until(f'message {n}', lambda: os.path.exists(self.path(f'told.{n}')))

    def taken(self):
        """The person has it; how many messages there were."""
        open(self.path('taken'), 'w').close()
        self.tell('messages', n=sum(name.startswith('told.') for name in os.listdir(self.folder)))

    def planned(self):
        """For the first time, or since the job was deleted: the plan moves the cursor up to its instant."""
        self.until('the plan', lambda: self.planned_to() > self.planned_before)

    def planned_to(self):
        name = '`cursor`' if self.store.kind == 'mariadb' else 'cursor'
        return max((row[0] for row in self.sql(f'select {name} from job where {name} is not null')), default='')


BRINGS_BACK = ('start_server', 'wake_server', 'promote', 'free_disk', 'open_link')
TAKES_AWAY = ('kill_server', 'stop_server', 'fill_disk')
FAULTS = (*BRINGS_BACK, *TAKES_AWAY, 'cut_replica', 'mute_link', 'deafen_link', 'slow_link', 'step_clock', 'right_clock', 'bump_epoch', 'accept_clock', 'stop', 'stop_node',
          'stop_guards', 'wake', 'wake_node', 'wake_body', 'kill_node', 'kill_machine', 'kill_body', 'delete_rows', 'drop_index', 'job_deleted',
          'flush_redis', 'rerun', 'drop_reply', 'hold_commit', 'drop_all', 'hold_all', 'release', 'blackhole', 'reset_link', 'newer_schema',
          'right_schema', 'renew', 'hold_rows', 'hold_fences', 'backfill', 'by_hand', 'reschedule', 'retime', 'leap_boot', 'slow_writers',
          'cut_power', 'stop_guard', 'write_done', 'commit_done')
ACTIONS = {name: getattr(Deeds, name) for name in (
    *FAULTS, 'node', 'began', 'effect', 'let', 'status', 'all_settled', 'lease_over', 'pause', 'again', 'end_node', 'heard', 'stopped_itself', 'fire',
    'callers_end', 'planned', 'until_noticed', 'answer_lost', 'frozen', 'heard_unknown', 'heard_refused', 'heard_no', 'migrated', 'gone', 'caught_up', 'waiting',
    'waits_past_lease', 'let_go', 'shut', 'audit', 'body_ended', 'logged', 'ticked', 'told_person', 'taken', 'in_hand', 'body_gone', 'audited')}
