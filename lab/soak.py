"""A soak: the workload of workload.py under the faults of nemesis.py for as long as one likes, in two shapes, as neither finds what the
other does; then peace, then the checker."""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack

import keep
import nodes
import stores
import watch
from batch import say
from nemesis import Nemesis
from nodes import Member
from program import PATIENCE, eventually
from servers import Missing, Servers
from workload import Evidence, Work
from experiment import Bad

PEACE = 180     # seconds in which all that is due has to be done after the last fault (I20)


class Soak:
    """One shape on one store. It is a `case` for members and nemesis."""

    def __init__(self, shape, count, store, seed, servers):
        self.shape, self.seed, self.exits = shape, seed, ExitStack()
        self.folder = tempfile.mkdtemp(prefix='mts')
        self.exits.callback(shutil.rmtree, self.folder, True)
        name = 'soak_' + os.path.basename(self.folder).lower()
        self.store = f'sqlite:{self.folder}/matins.db' if store == 'sqlite' else servers.of(store).fresh(name)
        self.database = stores.open_store(self.store)
        self.usage, self.violations = [], []
        subprocess.run([nodes.MATINS, 'db', 'migrate'], env=self.env(), check=True, capture_output=True)
        self.work = Work(self.folder)
        with open(os.path.join(self.folder, 'jobs.yaml'), 'w') as f:
            f.write(self.work.jobs())
        self.members = [Member(self, number) for number in range(count)]
        self.nemesis = Measured(self, self.members, random.Random(seed), self.cuts(store))

    def addCleanup(self, function, *args):  # noqa: N802 (unittest's word)
        self.exits.callback(function, *args)

    def env(self):
        return {**os.environ, 'MATINS_STORE': self.store}

    def sql(self, statement):
        return self.database.sql(statement)

    def cuts(self, store):
        return {'postgresql': [('kill_backend', self.kill_backend)], 'mariadb': [('kill_connection', self.kill_connection)]}.get(store, [])

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
        for member in self.members:
            if not member.alive():
                member.start()
        due = self.work.due(time.time())

        def settled():
            rows = {(job, period): status for job, period, status in self.sql('select job_name, period, status from job_watermark')}
            return not [1 for job, periods in due.items() for period in periods
                        if rows.get((job, period)) not in (('DONE', 'SKIPPED') if job == 'cache' else ('DONE',))]
        try:
            eventually('all that is due', settled, PEACE)
        except AssertionError:
            self.violations.append(f'I20: not all that is due was done {PEACE} s after the last fault')
        for member in self.members:
            if member.stop() != 0:
                self.violations.append(f'a node did not end well: {member.log}')

    def figures(self, evidence):
        stats, seen, did = evidence.stats, evidence.seen, self.nemesis.done
        times = Counter((job, period, step) for job, period, step, _ in self.work.entries())
        done = {(job, period) for job, period in self.sql("select job_name, period from job_watermark where status = 'DONE'")}
        lost = [key for key in done if any((*key, step) not in times for step in range(1, self.work.STEPS[key[0]] + 1))]
        n = stats['claims']
        return dict(shape=self.shape, nodes=len(self.members), store=self.database.version(), seed=self.seed, seconds=round(self.seconds),
                    faults=sum(did.values()), faults_by_kind=dict(did), periods=stats['periods'], fires=n, commits=stats['commits'],
                    takeovers=stats['lost'], re_executions=stats['re_executions'], refusals=nodes.refusals(seen),
                    unknowns=sum(c for what, c in seen.items() if what.endswith(' info')),
                    unknowns_resolved=seen['resolve yes'] + seen['resolve no'], effects=sum(times.values()),
                    lost=len(lost), doubled=sum(c > 1 for c in times.values()), reopened=stats['reopened'],
                    violations=evidence.verdict['violations'], other=self.violations,
                    at_most_at_95_percent=f'{3 / n:.5f} a fire' if n else '', **slopes(self.usage))

    def end(self):
        for member in self.members:
            if member.process and member.alive():
                member.process.send_signal(signal.SIGCONT)
        self.exits.close()


def slopes(usage):
    """Growth of each life of a node that was measured ten times, in KiB and descriptors a minute: the median."""
    lives = {}
    for row in usage:
        if 'rss' in row:
            lives.setdefault((row['node'], row['life']), []).append(row)
    found = {}
    for what in ('rss', 'descriptors'):
        each = sorted(slope([(r['at'], r[what]) for r in rows[len(rows) // 4:]]) for rows in lives.values() if len(rows) >= 10)
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
        for name in ('shape', 'seed', 'faults', 'fires', 'commits', 'takeovers', 'refusals', 'unknowns', 'unknowns_resolved', 'lost', 'doubled',
                     'rss_slope_per_minute', 'descriptors_slope_per_minute', 'violations', 'other'):
            say(f'{name:30} {figures[name]}')
    bad = [f for f in found if f['violations'] or f['other'] or f['lost'] or f['doubled']]
    thin = [f for f in found if not f['takeovers'] or not f['refusals']]
    say(f'{"INVALID" if bad else "inconclusive: no takeover or no refusal was seen" if thin else "valid"}; evidence in {folder}\nseal {seal}')
    return 1 if bad or thin else 0


def one(shape, options, seed, servers, folder):
    soak = Soak(shape, options.nodes if shape == 'busy' else 1, options.store, seed, servers)
    try:
        soak.run(options.minutes * 60)
        evidence = Evidence(soak, soak.work, soak.members)
        figures = soak.figures(evidence)
        keep.write_lines(os.path.join(folder, 'usage.jsonl'), soak.usage)
        keep.write(os.path.join(folder, 'nemesis.log'), '\n'.join(soak.nemesis.told) + '\n')
        for name in sorted(os.listdir(soak.folder)):
            if name.endswith(('.jsonl', '.log', '.yaml')):
                with open(os.path.join(soak.folder, name), encoding='utf-8', errors='replace') as f:
                    keep.write(os.path.join(folder, name), f.read())
        keep.write_json(os.path.join(folder, 'verdict.json'), evidence.verdict)
        return figures
    finally:
        soak.end()
