"""Private servers of a lab run: Debian's own programs, on free ports of 127.0.0.1, in temporary folders, ended by pid."""
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile

from program import PATIENCE, eventually

PACKAGES = dict(initdb='postgresql', postgres='postgresql', psql='postgresql-client', mariadbd='mariadb-server',
                mariadb='mariadb-client', redis_server='redis-server')


class Missing(Exception):
    """A program that is not installed; the text says how it becomes so."""


def program(name, package):
    places = os.environ.get('PATH', '') + ':/usr/sbin:/sbin:' + ':'.join(sorted(glob.glob('/usr/lib/postgresql/*/bin'), reverse=True))
    found = shutil.which(name, path=places)
    if not found:
        raise Missing(f'{name} is not installed; apt-get install {package}')
    return found


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE * 2, stdin=subprocess.DEVNULL, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f'{os.path.basename(words[0])}: {(done.stdout + done.stderr).strip()}')
    return done.stdout


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='mtls')
        self.log = os.path.join(self.folder, 'log')
        self.port = free_port()
        self.process = None

    def start(self, words, alive, **more):
        with open(self.log, 'ab') as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)

        def answers():
            if self.process.poll() is not None:
                with open(self.log, errors='replace') as f:
                    raise RuntimeError(f'{words[0]} ended: {f.read()[-1000:]}')
            return alive()
        eventually(os.path.basename(words[0]), answers)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE / 2)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Postgres(Server):
    kind = 'postgresql'

    def __init__(self):
        initdb, postgres, self.psql = program('initdb', 'postgresql'), program('postgres', 'postgresql'), program('psql', 'postgresql-client')
        super().__init__()
        user = {}
        if os.getuid() == 0:                     # it refuses to run as root
            name = next(n for n in ('postgres', 'nobody') if n in {p.pw_name for p in pwd.getpwall()})
            user = dict(user=name)
            shutil.chown(self.folder, name)
            os.chmod(self.folder, 0o755)
            open(self.log, 'a').close()
        data = os.path.join(self.folder, 'data')
        run([initdb, '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], cwd=self.folder, **user)
        self.start([postgres, '-D', data, '-c', 'listen_addresses=127.0.0.1', '-p', str(self.port), '-c', 'unix_socket_directories=',
                    '-c', 'max_connections=200', '-c', 'log_lock_waits=on', '-c', 'log_min_duration_statement=1000',
                    '-c', 'deadlock_timeout=500ms'], self.answers, cwd=self.folder, **user)

    def url(self):
        return f'postgresql://postgres@127.0.0.1:{self.port}/postgres'

    def answers(self):
        return subprocess.run([self.psql, '-XAtq', self.url(), '-c', 'select 1'], capture_output=True, check=False).returncode == 0

    def fresh(self, name):
        return f'{self.url()}?schema={name}'


class Mariadb(Server):
    kind = 'mariadb'

    def __init__(self):
        install, server, self.client = (program('mariadb-install-db', 'mariadb-server'), program('mariadbd', 'mariadb-server'),
                                        program('mariadb', 'mariadb-client'))
        super().__init__()
        data = os.path.join(self.folder, 'data')
        user = [f'--user={pwd.getpwuid(os.getuid()).pw_name}']
        run([install, '--no-defaults', f'--datadir={data}', '--auth-root-authentication-method=normal', '--skip-test-db',
             '--skip-name-resolve', *user])
        self.start([server, '--no-defaults', f'--datadir={data}', f'--socket={self.folder}/s', f'--pid-file={self.folder}/pid',
                    f'--tmpdir={self.folder}', f'--port={self.port}', '--bind-address=127.0.0.1', '--skip-name-resolve',
                    '--max-connections=200', '--innodb-buffer-pool-size=64M', '--innodb-flush-log-at-trx-commit=1',
                    '--innodb-print-all-deadlocks=1', '--slow-query-log=1', f'--slow-query-log-file={self.log}',
                    '--long-query-time=1', *user], self.answers)

    def answers(self):
        return subprocess.run([self.client, '--no-defaults', '-h', '127.0.0.1', '-P', str(self.port), '-u', 'root', '-e', 'select 1'],
                              capture_output=True, check=False).returncode == 0

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
