"""What the tests of whole commands share: a store of their own, `matins` on it, and nodes.

MATINS_BINARY names the program; MATINS_TEST_POSTGRES and MATINS_TEST_MARIADB the files with the ports of ctest's servers.
"""
import concurrent.futures
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'lab'))
from program import stay_clear_of_midnight  # noqa: E402
from servers import free_port  # noqa: E402

# Who runs tests in a background has it ignored, and with it all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
MATINS = os.environ['MATINS_BINARY']
stay_clear_of_midnight(300)  # longer than nearly every suite takes
# Of a file: each attempt of each of its jobs is kept, for tests that count them. By default a node keeps three, from its tenth second on.
KEEP_ALL = 'defaults: { history: { succeeded: 1000, failed: 1000 } }\n'
STORE_AWAY = 5  # exit code: nothing was done
TOO_SLOW = "within the call's deadline", 'it may be sent again'
PATIENCE = 120  # seconds that anything may take on a busy machine before a test gives up
# Valkey speaks the same; which of the two is there depends on the distribution.
REDIS_SERVER = os.environ.get('MATINS_TEST_REDIS_SERVER') or ('valkey-server' if shutil.which('valkey-server') and not shutil.which('redis-server')
                                                            else 'redis-server')


def server_port(variable):
    path = os.environ.get(variable)
    if not path:
        raise RuntimeError(f'{variable} is not set: run by ctest')
    with open(path) as f:
        return int(f.read().split()[0])


def postgres_port():
    return server_port('MATINS_TEST_POSTGRES')


def mariadb_port():
    return server_port('MATINS_TEST_MARIADB')


def eventually(what, probe, patience=PATIENCE):
    """Asks `probe` until it answers something true; that is the answer."""
    until = time.monotonic() + patience
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > until:
            raise AssertionError(f'waited {patience} s for {what}')
        time.sleep(0.02)


def removed(folder):
    """Tries until it is gone: the guard of a node that was killed may still give its lease back to a store in there."""
    eventually('the folder to be empty', lambda: shutil.rmtree(folder, True) or not os.path.exists(folder))


class Node:
    """A `matins serve` process."""

    def __init__(self, case, *args):
        self.log_path = os.path.join(case.folder, f'node-{secrets.token_hex(4)}.log')
        self.log = open(self.log_path, 'wb')
        self.process = subprocess.Popen([MATINS, 'serve', '--runtime-dir', case.folder, *args], env=case.env(),
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        case.addCleanup(self.tell_and_kill, case)
        eventually('the node to serve', lambda: 'serves' in self.text() or self.process.poll() is not None)
        if self.process.poll() is not None:
            raise AssertionError(f'the node ended: {self.text()}')

    def text(self):
        with open(self.log_path, errors='replace') as f:
            return f.read()

    def told(self, text):
        """What is in the store is in the log a moment later."""
        eventually(f'{text!r} in the log', lambda: text in self.text())

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.signal(signal.SIGCONT)
            self.process.wait(PATIENCE)
        self.log.close()

    def tell_and_kill(self, case):
        """What it said is told with a failure of the case."""
        self.kill()
        case.said = [*getattr(case, 'said', ()), self.text()]


class Redis:
    """A private server on a free port of 127.0.0.1, nothing kept on disk."""

    def __init__(self, case):
        self.folder = tempfile.mkdtemp(prefix='mtr')
        case.addCleanup(shutil.rmtree, self.folder, True)
        self.port = free_port()
        self.process = None
        self.start()
        case.addCleanup(self.kill)

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.port}'

    def start(self):
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self.process = subprocess.Popen([REDIS_SERVER, '--port', str(self.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no',
                                             '--dir', self.folder], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually('Redis', lambda: self.ask('PING') == 'PONG')

    def ask(self, *words):
        done = subprocess.run([REDIS_SERVER.replace('-server', '-cli'), '-p', str(self.port), *words], capture_output=True, text=True, timeout=PATIENCE)
        return done.stdout.strip()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.send_signal(signal.SIGCONT)
            self.process.wait(PATIENCE)


class Calls:
    """For a case with a folder: calls that stand before a command, `matins exec` and `matins lock`, and go on meanwhile."""

    def begin(self, words, env):
        process = subprocess.Popen(words, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder)

        def end():
            if process.poll() is None:
                process.kill()
                process.send_signal(signal.SIGCONT)
            process.communicate()
        self.addCleanup(end)
        return process

    def ended(self, process, code, says=()):
        out, err = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, out + err)
        for word in says:
            self.assertIn(word, err)
        return out


class StoreCase(unittest.TestCase):
    """A test with a fresh store; subclasses say of which kind."""
    kind = None

    def setUp(self):
        # Sockets' paths are short, so the folder is directly among the temporary files.
        self.folder = tempfile.mkdtemp(prefix='mt')
        self.addCleanup(removed, self.folder)
        self.store = self.fresh_store()
        self.ok('db', 'migrate')

    def fresh_store(self):
        if self.kind == 'sqlite':
            return f'sqlite:{self.folder}/{secrets.token_hex(4)}.db'
        if self.kind == 'mariadb':
            return f'mariadb://root@127.0.0.1:{mariadb_port()}/t_{secrets.token_hex(6)}'
        return f'postgresql://postgres@127.0.0.1:{postgres_port()}/postgres?schema=t_{secrets.token_hex(6)}'

    def env(self):
        return {**os.environ, 'MATINS_STORE': self.store}

    def run_matins(self, *args, **more):
        """Again where the store had no answer, or kept a row locked, for longer than a call waits: that is said not to be in doubt."""
        def done():
            one = subprocess.run([MATINS, *args], env=self.env(), capture_output=True, text=True, timeout=PATIENCE * 2,
                                 stdin=None if 'input' in more else subprocess.DEVNULL, **more)
            return None if one.returncode == STORE_AWAY and any(words in one.stderr for words in TOO_SLOW) else one
        return eventually('an answer of the store', done)

    def ok(self, *args, **more):
        done = self.run_matins(*args, **more)
        self.assertEqual(done.returncode, 0, f'matins {" ".join(args)}: {done.stdout}{done.stderr}')
        return done.stdout

    def refused(self, code, *args, says=()):
        done = self.run_matins(*args)
        self.assertEqual(done.returncode, code, f'matins {" ".join(args)}: {done.stdout}{done.stderr}')
        for word in says:
            self.assertIn(word, done.stderr)
        return done.stderr

    def json(self, *args):
        return json.loads(self.ok(*args, '-o', 'json'))

    def apply(self, jobs, *args):
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(jobs)
        return self.ok('job', 'apply', path, *args)

    def node(self, *args):
        return Node(self, *args)

    def shell(self):
        """The database's own shell, and the input that brings it to the store's schema."""
        if self.kind == 'sqlite':
            return ['sqlite3', '-separator', '|', self.store[len('sqlite:'):]], '.timeout 5000\n'
        if self.kind == 'mariadb':
            database = self.store.rsplit('/', 1)[1]
            return ['mariadb', '--no-defaults', '-NBn', '-h', '127.0.0.1', '-P', str(mariadb_port()), '-u', 'root', database], ''
        url, schema = self.store.split('?schema=')
        return ['psql', '-qAtX', '-v', 'ON_ERROR_STOP=1', url], f'set search_path = {schema};\n'

    def sql(self, statement):
        """Plain SQL as a person types it, with the database's own shell; rows as lists of texts."""
        command, begin = self.shell()
        done = subprocess.run(command, input=begin + statement + ';\n', capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split('\t' if self.kind == 'mariadb' else '|') for line in done.stdout.splitlines()]

    def rows(self, job):
        return {row['period']: row for row in self.json('watermark', job)['periods']}

    def status_of(self, job, period):
        row = self.rows(job).get(period)
        return row and row['status']


no_tests = set()  # what for_each_store made tests of


def for_each_store(case, kinds=('sqlite', 'postgresql')):
    """A class of one for each kind: the same tests on SQLite, on PostgreSQL and where it is named on MariaDB. The class itself
    is no test."""
    module = sys.modules[case.__module__]
    no_tests.add(case)
    for kind in kinds:
        name = f'{case.__name__}_{kind}'
        made = type(name, (case,), {'kind': kind, '__module__': case.__module__})
        setattr(module, name, made)


AT_A_TIME = 4  # more would starve each other of their leases on a small machine


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def main():
    """As unittest.main(), with several tests at a time: each has a store, a folder and nodes of its own, and nearly all that it
    does is wait for seconds to pass and leases to end. What names it is given, those tests only."""
    load = unittest.defaultTestLoader
    module = sys.modules['__main__']
    found = load.loadTestsFromNames(sys.argv[1:], module) if sys.argv[1:] else load.loadTestsFromModule(module)
    tests = [test for test in each_test(found) if type(test) not in no_tests]
    if not tests:
        sys.exit('no test ran')

    def run(test):
        result, begun = unittest.TestResult(), time.monotonic()
        test.run(result)
        return result, time.monotonic() - begun

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for test, (result, took) in zip(tests, pool.map(run, tests)):
            wrong = result.errors + result.failures
            good = result.wasSuccessful() and result.testsRun == 1
            bad += not good
            print(f'{"ok" if good else "FAILED"} {took:.1f}s {test.id()}', flush=True)
            for _, trace in wrong:
                print(trace, *(f'a node said:\n{text[-4000:]}' for text in reversed(getattr(test, 'said', ()))), sep='\n', flush=True)
    print(f'{len(tests)} tests, {bad} failed')
    sys.exit(1 if bad else 0)
