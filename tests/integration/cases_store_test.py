"""Faults that users of other schedulers met, each with the right answer of ours: a store that is away, slow, full, or asked
by many at once."""
import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from datetime import datetime, timedelta, timezone

from fault_run import Proxy
from support import KEEP_ALL, MATINS, PATIENCE, StoreCase, eventually, for_each_store, main, mariadb_port, postgres_port

TODAY = datetime.now(timezone.utc).date()


def day(back):
    return str(TODAY - timedelta(days=back))


EVERY_SECOND = """
  - name: tick
    schedule: "* * * * * *"
    misfire: each
    backfill: { max_periods: 1000 }
    run: { shell: 'true' }
"""


def gated(gate):
    """Due at midnight UTC for the day before; ends when the file `gate` is there."""
    return f"""
  - name: gated
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    run: {{ shell: 'echo up; while [ ! -e {gate} ]; do sleep 0.05; done; seq 200' }}
"""


class Cases(StoreCase):

    def finished(self, job):
        return [run['period'] for run in self.json('runs', job, '-n', '1000') if run['status'] == 'DONE']


class AwayStore(Cases):
    """PostgreSQL behind a proxy; commands speak to it directly."""
    kind = 'postgresql'

    def setUp(self):
        super().setUp()
        self.proxy = Proxy(self, postgres_port())
        self.behind = self.store.replace(f':{postgres_port()}/', f':{self.proxy.port}/')

    def test_a_node_that_starts_while_the_store_is_away_waits_for_it(self):
        self.apply(KEEP_ALL + 'jobs:' + EVERY_SECOND)
        self.proxy.ask('refuse')
        log_path = os.path.join(self.folder, 'early.log')
        with open(log_path, 'wb') as log:
            node = subprocess.Popen([MATINS, 'serve', '--runtime-dir', self.folder, '--store', self.behind],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(node.wait)
        self.addCleanup(node.kill)

        def log():
            with open(log_path) as f:
                return f.read()

        eventually('the node to say what it waits for', lambda: 'store_away' in log())
        node.send_signal(signal.SIGHUP)
        self.assertIsNone(node.poll())
        self.proxy.ask('pass')
        eventually('scheduling', lambda: self.finished('tick'))
        self.proxy.ask('refuse')
        self.proxy.ask('reset')
        seen = log().count('store_away')
        eventually('the outage to be told', lambda: log().count('store_away') > seen)
        away = datetime.now(timezone.utc)
        self.proxy.ask('pass')
        eventually('the seconds after it',
                   lambda: max(self.finished('tick')) > (away + timedelta(seconds=2)).strftime('%Y-%m-%dT%H:%M:%SZ'))
        # Each second once, those of the outage too.
        eventually('the seconds of the outage', lambda: self.json('job', 'list')[0]['gaps'] <= 1)
        done = self.finished('tick')
        self.assertEqual(len(done), len(set(done)))
        node.send_signal(signal.SIGTERM)
        self.assertEqual(node.wait(PATIENCE), 0)

    def test_a_node_whose_start_is_cut_anywhere_starts_again_and_serves(self):
        path = os.path.join(self.folder, 'jobs.yaml')
        # The store's making, then the writing of a changed definition; asked and not answered, or never asked.
        for number, cut in enumerate(('drop_reply create table', 'drop_request create table', 'drop_reply job_version (job, version',
                                      'drop_request job_version (job, version')):
            with self.subTest(cut=cut):
                with open(path, 'w') as f:
                    f.write(KEEP_ALL + 'jobs:' + EVERY_SECOND + f'    timeout: {number + 20}s\n')
                if 'create' in cut:
                    self.sql(f"drop schema {self.store.split('schema=')[1]} cascade")
                hits = int(self.proxy.ask('hits'))
                self.proxy.ask(cut)
                node = self.node(path, '--store', self.behind)
                eventually('scheduling', lambda node=node: 'run_started' in node.text())
                self.assertGreater(int(self.proxy.ask('hits')), hits, 'nothing was cut')
                node.told('store_away waits for it')
                self.assertEqual(node.stop(), 0)

    def test_a_node_that_waits_for_its_store_ends_when_asked(self):
        self.proxy.ask('refuse')
        node = subprocess.Popen([MATINS, 'serve', '--runtime-dir', self.folder, '--store', self.behind],
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn('store_away', node.stderr.readline())
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=PATIENCE)
        self.assertEqual(node.returncode, 0)


    def test_a_run_that_ends_while_the_store_is_away_is_done_once_it_is_back(self):
        gate = os.path.join(self.folder, 'gate')
        self.apply(KEEP_ALL + 'jobs:' + gated(gate))
        node = self.node('--store', self.behind)
        self.ok('run', 'gated', '--date', day(1))
        eventually('the run', lambda: 'run_started' in node.text())
        self.proxy.ask('refuse')
        self.proxy.ask('reset')
        open(gate, 'w').close()
        eventually('its end to wait', lambda: 'store_away finish' in node.text())
        self.proxy.ask('pass')
        self.ok('wait', 'gated', day(1), '--timeout', '60s')
        runs = self.json('runs', 'gated')
        self.assertEqual([(run['status'], run['exit_code']) for run in runs], [('DONE', 0)])
        self.assertTrue(self.ok('logs', runs[0]['run']).endswith('199\n200\n'))

    def test_listeners_that_the_server_ends_are_made_again(self):
        self.apply(KEEP_ALL + 'jobs:' + EVERY_SECOND)
        node = self.node()
        eventually('scheduling', lambda: self.finished('tick'))
        schema = self.store.split('schema=')[1]
        for _ in range(2):
            # This store's backends: those of other tests on the same server are left alone.
            end = ("select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and "
                   f"query like '%{schema}%'")
            eventually('connections to end', lambda: int(self.sql(end)[-1][0]) > 0)
            newest = max(self.finished('tick'))
            eventually('scheduling to go on', lambda: max(self.finished('tick')) > newest)
        self.assertEqual(node.stop(), 0)


class VanishedClient:
    """A client that took row locks and was never heard of again: its process is stopped, its connection stays."""
    SHELL = {'postgresql': lambda store: ['psql', '-XqAt', store.split('?schema=')[0]],
             'mariadb': lambda store: ['mariadb', '--no-defaults', '-NBn', '-h', '127.0.0.1', '-P', str(mariadb_port()), '-u', 'root',
                                       store.rsplit('/', 1)[1]]}

    def __init__(self, case, statements):
        self.process = None
        case.addCleanup(self.end)
        # It takes table after table, and so may be the victim of a deadlock with a node.
        eventually('its locks', lambda: self.locks(case, statements))
        self.process.send_signal(signal.SIGSTOP)

    def locks(self, case, statements):
        self.end()
        self.process = subprocess.Popen(self.SHELL[case.kind](case.store), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        over = ['\\echo over'] if case.kind == 'postgresql' else []  # the other's shell ends at an error
        self.process.stdin.write('\n'.join([*statements, "select 'all locked';", *over, '']))
        self.process.stdin.flush()
        patience = threading.Timer(PATIENCE, self.process.kill)
        patience.start()
        said = next((line for line in iter(self.process.stdout.readline, '') if line in ('all locked\n', 'over\n')), '')
        patience.cancel()
        return said == 'all locked\n'

    def end(self):
        if self.process:
            self.process.kill()
            self.process.communicate()


class LockedRows(Cases):

    def test_a_client_that_vanished_with_row_locks_stalls_nothing_without_a_word(self):
        """C122: the node says so within a minute, and makes good what was missed once the server has ended that session."""
        self.apply(KEEP_ALL + 'jobs:' + EVERY_SECOND)
        node = self.node()
        eventually('scheduling', lambda: self.finished('tick'))
        schema = self.store.split('schema=')[1] if self.kind == 'postgresql' else self.store.rsplit('/', 1)[1]
        tables = [table for table, in self.sql("select table_name from information_schema.tables where table_type = 'BASE TABLE' "
                                               f"and table_schema = '{schema}' order by table_name")]
        began = time.monotonic()
        client = VanishedClient(self, ['begin;', *(f'select count(*) from (select 1 from {schema}.{table} for update) locked;'
                                                   for table in tables)])
        eventually('the node to say so', lambda: 'store_away' in node.text())
        self.assertLess(time.monotonic() - began, 60)
        client.end()
        away = datetime.now(timezone.utc)
        eventually('scheduling to go on',
                   lambda: max(self.finished('tick')) > (away + timedelta(seconds=2)).strftime('%Y-%m-%dT%H:%M:%SZ'))
        eventually('what was missed', lambda: self.json('job', 'list')[0]['gaps'] <= 1)
        node.told('store_back')
        done = self.finished('tick')
        self.assertEqual(len(done), len(set(done)))
        self.assertEqual(node.stop(), 0)


class BulkDeletes(Cases):
    kind = 'mariadb'

    def test_deadlocks_with_a_persons_bulk_deletes_fail_no_run_and_double_none(self):
        """C123: three nodes claim and end twenty runs a second while old runs are deleted by hundreds, by another key than theirs."""
        self.apply(KEEP_ALL + 'jobs:' + ''.join(EVERY_SECOND.replace('tick', f'tick{n}') for n in range(20)))
        nodes = [self.node() for _ in range(3)]
        eventually('scheduling', lambda: len(self.finished('tick0')) > 2)
        deleted = 0

        def delete():
            nonlocal deleted
            runs = ', '.join(run for run, in self.sql("select fence from job_run where status = 'DONE' order by finished_at desc limit 500"))
            try:
                self.sql(f'delete from job_run where fence in ({runs or 0})')
            except AssertionError as e:      # the server may end a person's transaction as well as ours
                self.assertIn('Deadlock', str(e))
            else:
                deleted += runs.count(',') + 1
            return deleted > 500 or deleted > 50 and time.monotonic() > late

        late = time.monotonic() + 60  # for a machine that does not run so many in a minute
        eventually('many deletions', delete, 3 * PATIENCE)
        for node in nodes:
            self.assertEqual(node.stop(), 0)
            self.assertNotIn('Deadlock', node.text())
        rows = self.sql('select status, attempts, count(*) from job_watermark group by status, attempts')
        self.assertEqual([row for row in rows if row[:2] != ['DONE', '1'] and row[0] != 'PLANNED'], [], rows)


class BusyFile(Cases):
    kind = 'sqlite'

    def test_three_writers_and_a_long_reader_disturb_nobody(self):
        self.apply(KEEP_ALL + 'jobs:' + EVERY_SECOND)
        path = self.store[len('sqlite:'):]
        reader = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(reader.close)
        reader.execute('create table if not exists mine (n integer)')
        reader.execute('begin')
        reader.execute('select count(*) from job_watermark').fetchall()
        nodes = [self.node(), self.node()]
        stop = threading.Event()
        writes = []

        def write():
            with sqlite3.connect(path, timeout=PATIENCE, isolation_level=None) as mine:
                while not stop.wait(0.1):  # thirty a second, the three of them
                    mine.execute('insert into mine values (1)')
                    writes.append(1)
            mine.close()

        writers = [threading.Thread(target=write) for _ in range(3)]
        for writer in writers:
            writer.start()
        try:
            eventually('many writes and five seconds of work', lambda: len(writes) > 100 and len(self.finished('tick')) >= 5)
            for n in range(3):
                self.ok('job', 'suspend', 'tick', '--reason', str(n))
                self.ok('job', 'resume', 'tick', '--missed', 'run')
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        reader.execute('commit')
        done = self.finished('tick')
        self.assertEqual(len(done), len(set(done)))
        for node in nodes:
            self.assertNotIn('store_away', node.text())

    def test_a_disk_that_is_full_and_freed_again_stops_nothing_for_good(self):
        """Full for the node alone: whatever it writes to a file is refused until the limit goes."""
        self.apply(KEEP_ALL + 'jobs:' + EVERY_SECOND)
        told = []
        # As Python ignores SIGXFSZ, so does the node: a write is refused, and does not kill it.
        node = subprocess.Popen([MATINS, 'serve', '--runtime-dir', self.folder], env=self.env(), restore_signals=False,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        reader = threading.Thread(target=lambda: told.extend(node.stderr))
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(node.wait)
        self.addCleanup(node.kill)
        eventually('scheduling', lambda: self.finished('tick'))
        free = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (0, free[1]))
        eventually('the node to say so', lambda: any('store_away' in line for line in list(told)))
        self.assertEqual(self.json('db', 'check')['problems'], [])
        full = max(self.finished('tick'))
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, free)
        eventually('scheduling to go on', lambda: max(self.finished('tick')) > full)
        eventually('what was missed', lambda: self.json('job', 'list')[0]['gaps'] <= 1)
        self.assertIsNone(node.poll())
        eventually('the node to say that it is over', lambda: any('store_back' in line for line in list(told)))
        self.assertEqual(self.json('db', 'check')['problems'], [])

    def test_a_run_that_ends_while_the_file_is_locked_is_done_once_it_is_free(self):
        gate = os.path.join(self.folder, 'gate')
        self.apply(KEEP_ALL + 'jobs:' + gated(gate))
        node = self.node()
        self.ok('run', 'gated', '--date', day(1))
        eventually('the run', lambda: 'run_started' in node.text())
        other = sqlite3.connect(self.store[len('sqlite:'):], timeout=PATIENCE, isolation_level=None)
        self.addCleanup(other.close)
        other.execute('begin immediate')
        open(gate, 'w').close()
        eventually('its end to wait', lambda: 'store_away finish' in node.text())
        other.execute('rollback')
        self.ok('wait', 'gated', day(1), '--timeout', '60s')
        self.assertEqual([(run['status'], run['exit_code']) for run in self.json('runs', 'gated')], [('DONE', 0)])


for_each_store(LockedRows, ('postgresql', 'mariadb'))

if __name__ == '__main__':
    main()
