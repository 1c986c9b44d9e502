"""A soak: the workload of workload.py under the faults of nemesis.py for as long as one likes, in two shapes, as neither finds what the
other does; then peace, then the checker."""
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack

import judge  # noqa: F401 (finds the checker)
import checker
import history
import deviation
import keep
import nodes
import stores
import watch
from batch import say
from nemesis import Nemesis
from nodes import Member, tell
from program import PATIENCE, eventually
from servers import Missing, Servers
from proxy import Proxy
from stores import writable
from workload import TTL, Evidence, Work
from experiment import Bad

BETWEEN_KILLS = 30      # seconds from one death of the server to the next
PEACE = 180     # seconds in which all that is due has to be done after the last fault (I20)


class Soak:
    """One shape on one store. It is a `case` for members and nemesis."""

    def __init__(self, shape, count, store, seed, servers):
        self.shape, self.seed, self.exits = shape, seed, ExitStack()
        self.folder = tempfile.mkdtemp(prefix='mts')
        self.exits.callback(shutil.rmtree, self.folder, True)
        name = 'soak_' + os.path.basename(self.folder).lower()
        self.server = None if store == 'sqlite' else servers.of(store)
        self.store = f'sqlite:{self.folder}/matins.db' if store == 'sqlite' else self.server.fresh(name)
        self.database = stores.open_store(self.store)
        self.usage, self.violations = [], []
        subprocess.run([nodes.MATINS, 'db', 'migrate'], env=self.env(), check=True, capture_output=True)
        self.work = Work(self.folder)
        with open(os.path.join(self.folder, 'jobs.yaml'), 'w') as f:
            f.write(self.work.jobs())
        self.links = [Proxy(self.server.port, store) for _ in range(count)] if self.server else []
        for link in self.links:
            self.exits.callback(link.end)
        self.members = [Member(self, number, self.links and self.store.replace(f':{self.server.port}/', f':{self.links[number].port}/'))
                        for number in range(count)]
        self.restarted = time.monotonic()
        self.nemesis = Measured(self, self.members, random.Random(seed), self.cuts(store))

    def addCleanup(self, function, *args):  # noqa: N802 (unittest's word)
        self.exits.callback(function, *args)

    def env(self):
        return {**os.environ, 'MATINS_STORE': self.store}

    def sql(self, statement):
        return self.database.sql(statement)

    def cuts(self, store):
        if store == 'sqlite':
            return []
        kill = {'postgresql': ('kill_backend', self.kill_backend), 'mariadb': ('kill_connection', self.kill_connection)}[store]
        return [kill, ('lose_answer', self.lose_answer), ('cut_link', self.cut_link), ('reset_link', self.reset_link), ('kill_server', self.kill_server)]

    def a_link(self):
        number = self.nemesis.rng.randrange(len(self.links))
        return number, self.links[number]

    def lose_answer(self):
        number, link = self.a_link()
        link.drop_reply()
        return f'of node {number}'

    def cut_link(self):
        number, link = self.a_link()
        which, seconds = self.nemesis.rng.choice((link.blackhole, link.mute, link.deafen)), self.nemesis.rng.uniform(0.5, 2 * TTL)
        which()
        self.nemesis.at(seconds, link.open)
        return f'of node {number}: {which.__name__} for {seconds:.1f} s'

    def reset_link(self):
        number, link = self.a_link()
        link.reset()
        return f'of node {number}'

    def kill_server(self):
        """With all its processes, and begun again."""
        if time.monotonic() - self.restarted < BETWEEN_KILLS:
            return False
        self.server.kill()
        self.server.again()
        self.restarted = time.monotonic()
        return 'and started again'

    def kill_backend(self):
        return self.sql('select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and '
                        "backend_type = 'client backend' order by random() limit 1")

    def kill_connection(self):
        ids = [row[0] for row in self.sql('select id from information_schema.processlist where db = database() and id <> connection_id()')]
        if ids:
            try:
                self.sql(f'kill {self.nemesis.rng.choice(sorted(ids))}')
            except RuntimeError:      # it went by itself meanwhile
                pass
        return len(ids)

    # ---- the run ------------------------------------------------------------------------------------------------------------

    def run(self, seconds):
        begun = time.monotonic()
        for member in self.members:
            member.start()
        eventually('the first rows', lambda: self.sql('select job_name from job_watermark'))
        self.work.begun = time.time() + 1
        self.nemesis.rage(seconds, self.enough)
        if self.nemesis.done['ended_by_itself']:
            self.violations.append('a node ended by itself: ' + '; '.join(t for t in self.nemesis.told if 'ended_by_itself' in t))
        self.peace()
        self.seconds = time.monotonic() - begun

    def enough(self):
        """Whether the faults have led to what the verdict shall be about."""
        lost, = self.sql("select count(*) from job_journal where op = 'reclaim'")[0]
        return int(lost) > 1 and nodes.refusals(nodes.seen(self.members)) > 0

    def measure(self):
        for number, member in enumerate(self.members):
            if member.alive():
                self.usage.append(dict(at=time.time(), node=number, life=member.lives, **watch.usage(member.process.pid)))

    def peace(self):
        for link in self.links:
            link.open()
            link.release()
        for member in self.members:
            if not member.alive():
                member.start()
        lame = self.lame()

        def settled():
            due = self.work.due(time.time() - 10)      # what fell due meanwhile too: it is judged as well
            rows = {(job, period): status for job, period, status in self.sql('select job_name, period, status from job_watermark')}
            # More than a hundred that are passed over in a row stand in one row.
            for job, first, last in self.sql("select job, first_period, last_period from job_span where kind = 'skipped'"):
                rows |= {(job, period): 'SKIPPED' for period in due.get(job, ()) if first <= period <= last}
            return not [1 for job, periods in due.items() for period in periods
                        if rows.get((job, period)) not in (('DONE', 'SKIPPED') if job == 'cache' else ('DONE',))]
        try:
            eventually('all that is due', settled, PEACE)
        except AssertionError:
            self.violations.append(f'I20: not all that is due was done {PEACE} s after the last fault')
        if lame:
            lame()
        for member in self.members:
            if member.stop() != 0:
                self.violations.append(f'a node did not end well: {member.log}')

    def lame(self):
        """Of three nodes or more one stays out of it for good, and all has to be done without it (I20): with a server it hears no answer, on SQLite
        it stands still, outside of a transaction. -> what makes it well again, for the end"""
        if len(self.members) < 3:
            return None
        last = self.members[-1]
        if self.links:
            self.links[-1].deafen()
            self.nemesis.did('deaf_for_good', last.log)
            return self.links[-1].open

        def stopped():
            tell(last.process.pid, signal.SIGSTOP)
            if writable(self.database.path):
                return True
            tell(last.process.pid, signal.SIGCONT)
            return False
        eventually('a stop outside of a transaction', stopped)
        self.nemesis.did('stopped_for_good', last.log)
        return lambda: tell(last.process.pid, signal.SIGCONT)

    def told(self):
        """What nothing in the folder says otherwise."""
        return dict(shape=self.shape, nodes=len(self.members), store=self.database.version(), seed=self.seed, seconds=round(self.seconds),
                    faults_by_kind=dict(self.nemesis.done), other=self.violations)

    def end(self):
        for member in self.members:
            if member.process and member.alive():
                member.process.send_signal(signal.SIGCONT)
        self.exits.close()


def figures_of(folder):
    """From the folder of one shape alone: `matins lab verify` does it again."""
    told, events = keep.read_json(os.path.join(folder, 'told.json')), history.read(os.path.join(folder, 'evidence.jsonl'))
    steps = {row['job']: row['steps'] for row in keep.read_lines(os.path.join(folder, 'demands.jsonl'))}
    verdict, of = checker.check(events), history.by_type(events)
    stats = Counter(verdict['stats'])
    seen = Counter()
    for name in sorted(os.listdir(folder)):
        if name.startswith('history-'):
            seen.update(f"{e['type']} {e['res']}" for e in history.read(os.path.join(folder, name)))
    times = Counter((e['job'], e['period'], e['step']) for e in of['effect'])
    lost = [e for e in of['final'] if e['state'] == 'DONE' and any((e['job'], e['period'], step) not in times for step in range(steps.get(e['job'], 0)))]
    n = stats['claims']
    if verdict['violations']:
        told['first_deviation'] = deviation.first(events, verdict['violations'])
    return dict(told, faults=sum(told['faults_by_kind'].values()), periods=stats['periods'], fires=n, commits=stats['commits'], takeovers=stats['lost'],
                re_executions=stats['re_executions'], refusals=nodes.refusals(seen), unknowns=nodes.unknowns(seen),
                unknowns_resolved_yes=seen['resolve yes'], unknowns_resolved_no=seen['resolve no'], effects=sum(times.values()),
                lost=len(lost), doubled=sum(c > 1 for c in times.values()), reopened=stats['reopened'], violations=verdict['violations'],
                at_most_at_95_percent=f'{3 / n:.5f} a fire' if n else '', **slopes(keep.read_lines(os.path.join(folder, 'usage.jsonl'))))


def word_of(found):
    """-> (the verdict of all shapes, exit code)"""
    if any(f['violations'] or f['other'] or f['lost'] or f['doubled'] for f in found):
        return 'INVALID', 1
    thin = any(not f['takeovers'] or not f['refusals'] for f in found)
    return ('inconclusive: no takeover or no refusal was seen', 1) if thin else ('valid', 0)


def verify(folder):
    """-> (verdicts by shape, first deviations, what is not as the folder says)"""
    told, verdicts, deviations, wrong = keep.read_json(os.path.join(folder, 'soak.json')), {}, {}, []
    for figures in told['figures']:
        again = json.loads(json.dumps(figures_of(os.path.join(folder, figures['shape'])), default=str))
        wrong += [f'{figures["shape"]}: {key} is {again.get(key)!r} by the evidence, and {figures.get(key)!r} in soak.json'
                  for key in sorted(again.keys() | figures.keys()) if again.get(key) != figures.get(key)]
        verdicts[figures['shape']] = word_of([again])[0].lower().partition(':')[0]
        deviations[figures['shape']] = again.get('first_deviation')
    return verdicts, deviations, wrong


def slopes(usage):
    """Growth of a node's life in KiB and descriptors a minute: the median of the lives that were at least half as long as the longest, and longer
    than a minute, as a younger one is still filling its caches; and how many seconds the longest was."""
    lives = {}
    for row in usage:
        if 'rss' in row:
            lives.setdefault((row['node'], row['life']), []).append(row)
    length = {key: rows[-1]['at'] - rows[0]['at'] for key, rows in lives.items()}
    longest = max(length.values(), default=0)
    old = [rows for key, rows in lives.items() if length[key] >= max(60, longest / 2)]
    found = dict(longest_life=round(longest))
    for what in ('rss', 'descriptors'):
        each = sorted(slope([(r['at'], r[what]) for r in rows[len(rows) // 4:]]) for rows in old)
        found[f'{what}_slope_per_minute'] = round(60 * each[len(each) // 2], 3) if each else ''
    return found


def slope(points):
    n, x, y = len(points), sum(p[0] for p in points) / len(points), sum(p[1] for p in points) / len(points)
    below = sum((p[0] - x) ** 2 for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / below if n > 1 and below else 0.0


class Measured(Nemesis):
    """Looks at memory and descriptors between two acts."""

    def act(self):
        self.case.measure()
        super().act()


def run(options):
    if options.minutes <= 0 or not 1 <= options.nodes <= 6:
        raise Bad('--minutes has to be more than 0, and --nodes one to six')
    shapes = ('busy', 'lonely') if options.shape == 'both' else (options.shape,)
    folder, servers, found = keep.new_run(options.keep), Servers(), []
    try:
        for shape in shapes:
            seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
            say(f'{shape} on {options.store}: seed {seed}, {options.minutes:g} minutes')
            found.append(one(shape, options, seed, servers, os.path.join(folder, shape)))
    except Missing as e:
        raise Bad(str(e)) from None
    finally:
        servers.stop()
    keep.write_json(os.path.join(folder, 'soak.json'), dict(by=options.by, minutes=options.minutes, figures=found))
    seal = keep.seal(folder)
    for figures in found:
        for name in ('shape', 'seed', 'seconds', 'faults', 'faults_by_kind', 'fires', 'commits', 'takeovers', 'refusals', 'unknowns',
                     'unknowns_resolved_yes', 'unknowns_resolved_no', 'lost', 'doubled', 'at_most_at_95_percent', 'longest_life', 'rss_slope_per_minute',
                     'descriptors_slope_per_minute', 'violations', 'other'):
            say(f'{name:30} {figures[name]}')
        if 'first_deviation' in figures:
            say(f'{"first_deviation":30} {figures["first_deviation"]}')
    word, code = word_of(found)
    say(f'{word}; evidence in {folder}\nseal {seal}')
    return code


def one(shape, options, seed, servers, folder):
    soak = Soak(shape, options.nodes if shape == 'busy' else 1, options.store, seed, servers)
    try:
        soak.run(options.minutes * 60)
        evidence = Evidence(soak, soak.work, soak.members)
        keep.write_json(os.path.join(folder, 'told.json'), soak.told())
        keep.write_lines(os.path.join(folder, 'usage.jsonl'), soak.usage)
        keep.write(os.path.join(folder, 'nemesis.log'), '\n'.join(soak.nemesis.told) + '\n')
        for name in sorted(os.listdir(soak.folder)):
            if name.endswith(('.jsonl', '.log', '.yaml')):
                with open(os.path.join(soak.folder, name), encoding='utf-8', errors='replace') as f:
                    keep.write(os.path.join(folder, name), f.read())
        keep.write_json(os.path.join(folder, 'verdict.json'), evidence.verdict)
        return figures_of(folder)
    finally:
        soak.end()
