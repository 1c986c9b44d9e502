"""Private servers of a lab run: Debian's own programs, on free ports of 127.0.0.1, in temporary folders, ended by pid."""
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile

from nodes import children, state_of, tell
from program import PATIENCE, eventually

PACKAGES = dict(initdb='postgresql', postgres='postgresql', psql='postgresql-client', mariadbd='mariadb-server',
                mariadb='mariadb-client', redis_server='redis-server')
LOWEST_PORT = 10_000


class Missing(Exception):
    """A program that is not installed; the text says how it becomes so."""


def program(name, package):
    places = os.environ.get('PATH', '') + ':/usr/sbin:/sbin:' + ':'.join(sorted(glob.glob('/usr/lib/postgresql/*/bin'), reverse=True))
    found = shutil.which(name, path=places)
    if not found:
        raise Missing(f'{name} is not installed; apt-get install {package}')
    return found


def free_port():
    """One that nobody listens on, and that the kernel gives to no client: who asks for a server that is away would now and then
    be given the very port that it comes back to."""
    with open('/proc/sys/net/ipv4/ip_local_port_range') as f:
        clients = int(f.read().split()[0])
    while True:
        with socket.socket() as s:
            try:
                s.bind(('127.0.0.1', random.SystemRandom().randrange(LOWEST_PORT, clients) if clients > 2 * LOWEST_PORT else 0))
            except OSError:      # taken
                continue
            return s.getsockname()[1]


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE * 2, stdin=subprocess.DEVNULL, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f'{os.path.basename(words[0])}: {(done.stdout + done.stderr).strip()}')
    return done.stdout


class Server:
    """One server: its processes may be killed, stopped and begun again, on the same data and the same port. `preload` is a library in
    its environment, `disk` the MiB that its folder may have: a file system of its own, which only root may make."""

    ending = signal.SIGTERM

    def __init__(self, preload=None, disk=0):
        self.folder = tempfile.mkdtemp(prefix='mtls')
        self.mounted = disk and small_disk(self.folder, disk)
        self.env = {**os.environ, **(preload or {})}
        self.log = os.path.join(self.folder, 'log') if not disk else self.folder + '.log'
        self.port = free_port()
        self.process = self.launched = None

    def start(self, words, alive, **more):
        self.launched = words, alive, more
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, **more)

        def answers():
            if self.process.poll() is not None:
                with open(self.log, errors='replace') as f:
                    raise RuntimeError(f'{words[0]} ended: {f.read()[-1000:]}')
            return alive()
        eventually(os.path.basename(words[0]), answers)

    def again(self):
        """Where it did not come back by itself."""
        if self.process.poll() is not None:
            words, alive, more = self.launched
            self.start(words, alive, **more)
        else:
            eventually('the server', self.launched[1])

    def processes(self):
        family, found = children(), [self.process.pid] if self.process and self.process.poll() is None else []
        for pid in found:
            found += family.get(pid, [])
        return found

    def kill(self):
        """All its processes at one instant."""
        pids = self.processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                tell(pid, number)
        self.process.wait(PATIENCE)
        eventually('the end of all its processes', lambda: all(state_of(pid) in (None, 'Z', 'X') for pid in pids))

    def stop_writers(self):
        """Those that write what no caller waits for."""
        for pid in self.processes():
            try:
                with open(f'/proc/{pid}/cmdline', 'rb') as f:
                    title = f.read()
            except OSError:     # it has gone by itself
                continue
            if any(name in title for name in self.WRITERS):
                tell(pid, signal.SIGSTOP)

    def tell_all(self, number):
        for pid in self.processes():
            tell(pid, number)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.tell_all(signal.SIGCONT)
            self.process.send_signal(self.ending)
            try:
                self.process.wait(PATIENCE / 2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)
        if self.mounted:
            subprocess.run(['umount', '-l', self.folder], capture_output=True, check=False)
            os.remove(self.log)
        shutil.rmtree(self.folder, ignore_errors=True)


def small_disk(folder, mebibytes):
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={mebibytes}m,mode=700', 'tmpfs', folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing(f'a small disk needs root, to mount one: {done.stderr.strip()}')
    return True


class Postgres(Server):
    kind = 'postgresql'
    WRITERS = b'walwriter', b'checkpointer', b'background writer'
    options = ()                # of the server, besides: a standby has none
    ending = signal.SIGINT      # waits for nobody

    def __init__(self, options=(), **more):
        initdb, self.postgres, self.psql = program('initdb', 'postgresql'), program('postgres', 'postgresql'), program('psql', 'postgresql-client')
        super().__init__(**more)
        self.user = {}
        if os.getuid() == 0:                     # it refuses to run as root
            name = next(n for n in ('postgres', 'nobody') if n in {p.pw_name for p in pwd.getpwall()})
            self.user = dict(user=name)
            shutil.chown(self.folder, name)
            os.chmod(self.folder, 0o755)
            open(self.log, 'a').close()
        self.options, self.data = options, os.path.join(self.folder, 'data')
        run([initdb, '-D', self.data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], cwd=self.folder, **self.user)
        self.begin()

    def begin(self):
        self.start([self.postgres, '-D', self.data, '-c', 'listen_addresses=127.0.0.1', '-p', str(self.port), '-c', 'unix_socket_directories=',
                    '-c', 'max_connections=200', '-c', 'log_lock_waits=on', '-c', 'log_min_duration_statement=1000',
                    '-c', 'deadlock_timeout=500ms', '-c', 'hot_standby=on',
                    *(word for option in self.options for word in ('-c', option))], self.answers, cwd=self.folder, **self.user)

    def url(self):
        return f'postgresql://postgres@127.0.0.1:{self.port}/postgres'

    def ask(self, *statements):
        words = [word for text in statements for word in ('-c', text)]
        return run([self.psql, '-XAtq', '-v', 'ON_ERROR_STOP=1', f'postgresql://postgres@127.0.0.1:{self.port}/postgres', *words]).strip()

    def answers(self):
        return subprocess.run([self.psql, '-XAtq', f'postgresql://postgres@127.0.0.1:{self.port}/postgres', '-c', 'select 1'], capture_output=True,
                              check=False).returncode == 0

    def fresh(self, name):
        return f'{self.url()}?schema={name}'


class Mariadb(Server):
    kind = 'mariadb'

    def __init__(self, options=(), **more):
        install, server, self.client = (program('mariadb-install-db', 'mariadb-server'), program('mariadbd', 'mariadb-server'),
                                        program('mariadb', 'mariadb-client'))
        super().__init__(**more)
        data = os.path.join(self.folder, 'data')
        user = [f'--user={pwd.getpwuid(os.getuid()).pw_name}']
        run([install, '--no-defaults', f'--datadir={data}', '--auth-root-authentication-method=normal', '--skip-test-db',
             '--skip-name-resolve', *user], env={**os.environ, 'TMPDIR': self.folder})       # those of several must not meet
        self.start([server, '--no-defaults', f'--datadir={data}', f'--socket={self.folder}/s', f'--pid-file={self.folder}/pid',
                    f'--tmpdir={self.folder}', f'--port={self.port}', '--bind-address=127.0.0.1', '--skip-name-resolve',
                    '--max-connections=200', '--innodb-buffer-pool-size=64M', '--innodb-flush-log-at-trx-commit=1',
                    '--innodb-print-all-deadlocks=1', '--slow-query-log=1', f'--slow-query-log-file={self.log}',
                    '--long-query-time=1', *options, *user], self.answers)

    def words(self):
        return [self.client, '--no-defaults', '-NBr', '-h', '127.0.0.1', '-P', str(self.port), '-u', 'root']

    def ask(self, *statements, vertical=False):
        return run([*self.words(), *(['-E', '--column-names'] if vertical else []), '-e', '; '.join(statements)]).strip()

    def answers(self):
        return subprocess.run([*self.words(), '-e', 'select 1'], capture_output=True, check=False).returncode == 0

    def fresh(self, name):
        return f'mariadb://root@127.0.0.1:{self.port}/{name}'


class Redis(Server):
    kind = 'redis'

    def __init__(self):
        server, self.client = program('redis-server', 'redis-server'), program('redis-cli', 'redis-tools')
        super().__init__()
        self.start([server, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', self.folder],
                   lambda: self.ask('PING') == 'PONG')

    def ask(self, *words):
        done = subprocess.run([self.client, '-p', str(self.port), *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.stdout.strip()

    def url(self):
        return f'redis://127.0.0.1:{self.port}'


class Servers:
    """Each kind is started when it is first asked for, and once."""
    KINDS = dict(postgresql=Postgres, mariadb=Mariadb, redis=Redis)

    @classmethod
    def own(cls, kind, **more):
        """One for its caller alone, who stops it."""
        return cls.KINDS[kind](**more)

    def __init__(self):
        self.started = {}

    def of(self, kind):
        if kind not in self.started:
            self.started[kind] = self.KINDS[kind]()
        return self.started[kind]

    def stop(self):
        for server in self.started.values():
            server.stop()
        self.started = {}
