"""The other schedulers: how each is fetched into build/, started, and asked what is left to do."""
import os
import platform
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = f'{ROOT}/bench/versus'
BUILD = f'{ROOT}/build/bench/versus'


class NotReached(Exception):
    """Why a peer is not measured here."""


def run(argv, folder, log):
    with open(f'{BUILD}/{log}.log', 'w') as out:
        if subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode != 0:
            raise NotReached(f'{" ".join(argv[:2])} failed: see build/bench/versus/{log}.log')


def copy(language):
    """Its sources beside what they need, below build/."""
    folder = f'{BUILD}/{language}'
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(f'{SOURCES}/{language}'):
        shutil.copy(f'{SOURCES}/{language}/{name}', folder)
    return folder


def built(folder, *pinned):
    """Whether what `pinned` names is there as it is pinned now; told by `keep`."""
    stamp = f'{folder}/.built'
    return os.path.exists(stamp) and open(stamp).read() == ''.join(open(f'{folder}/{p}').read() for p in pinned)


def keep(folder, *pinned):
    with open(f'{folder}/.built', 'w') as f:
        f.write(''.join(open(f'{folder}/{p}').read() for p in pinned))


def psql(url, sql):
    done = subprocess.run(['psql', '-X', '-q', '-At', '-d', url, '-v', 'ON_ERROR_STOP=1', '-c', sql], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f'{sql}: {done.stderr}')
    return done.stdout.strip()


class OnPostgresql:
    store = 'postgresql'
    query = ''  # what is not done yet

    def left(self, url):
        return int(psql(url, self.query))

    def settle(self, url):
        psql(url, 'vacuum analyze')
        psql(url, 'checkpoint')


class Node:
    """From the npm registry, with a Node.js of its own from there where the system's is older than 22."""

    def prepare(self):
        if not shutil.which('npm'):
            raise NotReached('no npm here')
        folder = copy('node')
        if not built(folder, 'package-lock.json'):
            run(['npm', 'ci', '--no-audit', '--no-fund'], folder, 'npm')
            keep(folder, 'package-lock.json')
        subprocess.run([*self.command()[:1], '--version'], check=True, stdout=subprocess.DEVNULL)

    def command(self):
        machine = {'x86_64': 'x64', 'aarch64': 'arm64'}.get(platform.machine(), '')
        own = f'{BUILD}/node/node_modules/node-linux-{machine}/bin/node'
        return [own if os.path.exists(own) else 'node', f'{BUILD}/node/{self.program}.mjs']

    def version(self):
        package = open(f'{BUILD}/node/node_modules/{self.package}/package.json').read()
        return re.search(r'"version": "([^"]+)"', package)[1]


class GraphileWorker(Node, OnPostgresql):
    program, package, title = 'graphile_worker', 'graphile-worker', 'graphile-worker'
    query = 'select count(*) from graphile_worker._private_jobs'


class PgBoss(Node, OnPostgresql):
    program, package, title = 'pg_boss', 'pg-boss', 'pg-boss'
    query = "select count(*) from pgboss.job where name = 'noop' and state < 'completed'"


class BullMq(Node):
    program, package, title, store = 'bullmq', 'bullmq', 'BullMQ', 'redis'

    def settle(self, url):
        pass

    def left(self, url):
        from servers import ask_redis
        port = int(url.rsplit(':', 1)[1])
        return int(ask_redis(port, 'LLEN', 'bull:noop:wait')) + int(ask_redis(port, 'LLEN', 'bull:noop:active'))


class Java(OnPostgresql):
    """From Maven Central's artefacts, versions in java/pom.xml."""

    def prepare(self):
        if not shutil.which('mvn') or not shutil.which('javac'):
            raise NotReached('no Maven or no JDK here')
        folder = copy('java')
        if not built(folder, 'pom.xml'):
            run(['mvn', '-q', '-B', 'dependency:copy-dependencies', f'-DoutputDirectory={folder}/jars'], folder, 'maven')
            keep(folder, 'pom.xml')
        run(['javac', '-nowarn', '-d', f'{folder}/classes', '-cp', f'{folder}/jars/*', 'Tally.java', 'DbScheduler.java', 'Quartz.java'],
            folder, 'javac')

    def command(self):
        return ['java', '-cp', f'{BUILD}/java/classes:{BUILD}/java/jars/*', self.program]

    def version(self):
        return next(m[1] for name in os.listdir(f'{BUILD}/java/jars') if (m := re.fullmatch(rf'{self.package}-([\d.]+)\.jar', name)))


class DbScheduler(Java):
    program, package, title = 'DbScheduler', 'db-scheduler', 'db-scheduler'
    query = 'select count(*) from scheduled_tasks'


class Quartz(Java):
    program, package, title = 'Quartz', 'quartz', 'Quartz'
    query = 'select count(*) from qrtz_triggers'


class River(OnPostgresql):
    """From the Go module proxy, versions in river/go.mod and go.sum."""
    title = 'River'
    query = "select count(*) from river_job where state <> 'completed'"

    def prepare(self):
        if not shutil.which('go'):
            raise NotReached('no Go here')
        wanted = re.search(r'^go (\d+)\.(\d+)', open(f'{SOURCES}/river/go.mod').read(), re.M)
        said = subprocess.run(['go', 'version'], capture_output=True, text=True).stdout
        have = re.search(r'go(\d+)\.(\d+)', said)
        if not have or tuple(map(int, have.groups())) < tuple(map(int, wanted.groups())):
            raise NotReached(f'needs Go {wanted[1]}.{wanted[2]}, here is {have[0] if have else "none"}')
        run(['env', 'GOTOOLCHAIN=local', 'go', 'build', '-o', 'river', '.'], copy('river'), 'go')

    def command(self):
        return [f'{BUILD}/river/river']

    def version(self):
        return re.search(r'riverqueue/river v(\S+)', open(f'{SOURCES}/river/go.mod').read())[1]


PEERS = {'graphile_worker': GraphileWorker(), 'pg_boss': PgBoss(), 'bullmq': BullMq(), 'river': River(),
         'db_scheduler': DbScheduler(), 'quartz': Quartz()}


def prepare(names):
    """Fetches and builds them; answers why some are not measured: name -> reason."""
    os.makedirs(BUILD, exist_ok=True)
    missing = {}
    for name in names:
        try:
            PEERS[name].prepare()
        except (NotReached, OSError, subprocess.SubprocessError) as error:
            missing[name] = str(error)
    return missing
