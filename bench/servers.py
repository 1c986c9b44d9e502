"""The servers beside which is measured: private ones from Debian's packages, in a folder of their own, on a free port of
127.0.0.1, stopped by pid. Durability and everything else stands as the packages' programs have it by default."""
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time


PATIENCE = 60  # seconds that a server may take to start or stop


class NoServer(Exception):
    """It cannot be had, or does not answer; the message says why."""


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def await_ready(process, what, ready):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if process.poll() is not None:
            raise NoServer(f'{what} ended while starting')
        if ready():
            return
        time.sleep(0.02)
    process.kill()
    raise NoServer(f'{what} takes no connections after {PATIENCE} s')


def takes_connections(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


def ask_redis(port, *words):
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w.encode()) for w in words))
        f = s.makefile('rb')
        line = f.readline()
        return f.read(int(line[1:])).decode() if line[:1] == b'$' else line[1:].strip().decode()


class Server:
    """A process with a folder; `stop` ends it by its pid."""

    def __init__(self, process, port):
        self.process, self.port, self.pid = process, port, process.pid

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(PATIENCE)


class SqlServer(Server):
    """One that has databases. Subclasses say with which words its client asks."""
    count = 0

    def asked(self, words, statement):
        done = subprocess.run([*words, statement], capture_output=True, text=True)
        if done.returncode != 0:
            raise NoServer(f'{statement}: {done.stderr}')
        return done.stdout.strip()

    def fresh(self):
        """A new, empty database's name."""
        self.count += 1
        name = f'bench_{self.count}'
        self.sql(f'create database {name}')
        return name


def installed(words, log, **more):
    """Runs a program that makes a server's data."""
    with open(log, 'w') as out:
        made = subprocess.run(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, **more)
    if made.returncode != 0:
        with open(log) as told:
            raise NoServer(f'{os.path.basename(words[0])} failed: {told.read()[-300:]}')


def server_user(name, folder):
    """For Popen: servers refuse to be root, so that there they are the user of Debian's package, whose is the folder."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam(name)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {'user': user.pw_uid, 'group': user.pw_gid, 'extra_groups': []}


class Postgresql(SqlServer):
    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        programs = sorted(glob.glob('/usr/lib/postgresql/*/bin'), key=lambda p: int(p.split('/')[4]))
        if not programs:
            raise NoServer('no PostgreSQL in /usr/lib/postgresql: run ./dev setup')
        self.bin, data = programs[-1], f'{folder}/data'
        self.user = server_user('postgres', folder)
        installed([f'{self.bin}/initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8'],
                  f'{folder}/initdb.log', cwd=folder, **self.user)
        port = free_port()
        with open(f'{data}/postgresql.conf', 'a') as conf:
            conf.write(f"listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{folder}'\n"
                       "max_connections = 300\ntimezone = 'UTC'\n")
        log = open(f'{folder}/log', 'w')
        process = subprocess.Popen([f'{self.bin}/postgres', '-D', data], cwd=folder, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, **self.user)
        super().__init__(process, port)
        await_ready(process, 'PostgreSQL', lambda: subprocess.run(
            [f'{self.bin}/pg_isready', '-q', '-h', '127.0.0.1', '-p', str(port)]).returncode == 0)

    def sql(self, statement, database='postgres'):
        return self.asked([f'{self.bin}/psql', '-X', '-q', '-At', '-h', '127.0.0.1', '-p', str(self.port), '-U', 'postgres', '-d', database,
                           '-v', 'ON_ERROR_STOP=1', '-c'], statement)

    def drop(self, name):
        self.sql(f'drop database if exists {name} with (force)')

    def url(self, name):
        return f'postgresql://postgres@127.0.0.1:{self.port}/{name}'

    def version(self):
        return 'PostgreSQL ' + self.sql('show server_version').split()[0]

    def stop(self):
        super().stop(signal.SIGINT)


class Mariadb(SqlServer):
    """As compiled: each commit is flushed, 128 MiB of buffers."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        program = shutil.which('mariadbd') or '/usr/sbin/mariadbd'
        if not os.path.exists(program):
            raise NoServer('no MariaDB: run ./dev setup')
        user = server_user('mysql', folder)
        installed(['mariadb-install-db', '--no-defaults', f'--datadir={folder}/data', '--skip-test-db',
                   '--auth-root-authentication-method=normal', '--skip-name-resolve'], f'{folder}/install.log', cwd=folder, **user)
        port, log = free_port(), open(f'{folder}/log', 'w')
        process = subprocess.Popen([program, '--no-defaults', f'--datadir={folder}/data', f'--socket={folder}/s',
                                    f'--pid-file={folder}/pid', f'--tmpdir={folder}', f'--port={port}', '--bind-address=127.0.0.1',
                                    '--skip-name-resolve', '--max-connections=300'],
                                   cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **user)
        super().__init__(process, port)
        await_ready(process, 'MariaDB', lambda: takes_connections(port))

    def sql(self, statement):
        return self.asked(['mariadb', '--no-defaults', '--protocol=tcp', '--host=127.0.0.1', f'--port={self.port}', '--user=root',
                           '--skip-column-names', '--batch', '-e'], statement)

    def drop(self, name):
        self.sql(f'drop database if exists {name}')

    def url(self, name):
        return f'mariadb://root@127.0.0.1:{self.port}/{name}'

    def version(self):
        return 'MariaDB ' + self.sql('select version()').split('-')[0]


class Redis(Server):
    """Without any durability, which is its default but for snapshots: those are off too, in its favour."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        # redis-tools has the server's program under another name, and comes without a service.
        program = shutil.which('redis-server') or shutil.which('redis-check-rdb')
        if not program:
            raise NoServer('no Redis: apt-get install redis-tools')
        port = free_port()
        log = open(f'{folder}/log', 'w')
        process = subprocess.Popen(['redis-server', '--port', str(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '',
                                    '--appendonly', 'no', '--maxmemory-policy', 'noeviction'], executable=program, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL)
        super().__init__(process, port)
        await_ready(process, 'Redis', lambda: takes_connections(port))

    def ask(self, *words):
        return ask_redis(self.port, *words)

    def fresh(self):
        self.ask('FLUSHALL')
        return ''

    def drop(self, name):
        self.ask('FLUSHALL')

    def url(self, name):
        return f'redis://127.0.0.1:{self.port}'

    def version(self):
        return 'Redis ' + re.search(r'redis_version:(\S+)', self.ask('INFO', 'server'))[1]


class Sqlite:
    """No server: a folder for each file."""
    pid = 0

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.count = folder, 0

    def fresh(self):
        self.count += 1
        os.makedirs(f'{self.folder}/{self.count}')
        return str(self.count)

    def drop(self, name):
        shutil.rmtree(f'{self.folder}/{name}', ignore_errors=True)

    def url(self, name):
        return f'sqlite:{self.folder}/{name}/matins.db'

    def version(self):
        import sqlite3
        return f'SQLite {sqlite3.sqlite_version}'

    def stop(self):
        shutil.rmtree(self.folder, ignore_errors=True)


KINDS = {'postgresql': Postgresql, 'mariadb': Mariadb, 'redis': Redis, 'sqlite': Sqlite}
