"""The store of a run as the lab sees it: plain SQL with the database's own client, versions, query plans, lock waits."""
import os
import re
import sqlite3
import subprocess
import threading
from urllib.parse import urlsplit

from program import PATIENCE

# What a node asks again and again, in the lab's own words: which index serves it is what a lost index changes.
QUESTIONS = dict(
    due="select job_name, period from job_watermark where status = 'PLANNED' and look_at <= 1 order by look_at limit 10",
    stale="select job_name, period from job_watermark where status = 'RUNNING' and lease_until < 1 order by lease_until limit 10",
    settled="select job_name, due_at from job_watermark where job_name = 'work' and status in ('DONE', 'SKIPPED') and due_at > 1")


class Sqlite:
    kind = 'sqlite'

    def __init__(self, url):
        self.url, self.path, self.lock = url, url[len('sqlite:'):].split('?')[0], threading.Lock()

    def sql(self, statement):
        with self.lock:
            db = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            try:
                return [[str(v) if v is not None else '' for v in row] for row in db.execute(statement).fetchall()]
            finally:
                db.close()

    def version(self):
        return f'SQLite {sqlite3.sqlite_version} (as Python has it)'

    def plan(self, question):
        return [row[3] for row in self.sql('explain query plan ' + question)]

    def indexes(self):
        return sorted(row[0] for row in self.sql("select name from sqlite_master where type = 'index' and name not like 'sqlite_%'"))

    def locks(self):
        return dict(waiting=0, deadlocks=0)

    def columns(self, table):
        return [row[0] for row in self.sql(f"select name from pragma_table_info('{table}')")]

    def settings(self):
        names = ('journal_mode', 'synchronous', 'page_size', 'wal_autocheckpoint', 'foreign_keys', 'auto_vacuum', 'encoding', 'user_version')
        return {name: self.sql(f'pragma {name}')[0][0] for name in names}

    def activity(self):
        return None         # there is no server that knows

    def waiting(self, which):
        raise RuntimeError('who waits for a lock of SQLite, nobody can tell')

    now = "(select cast(unixepoch('subsec') * 1000000 as integer))" if sqlite3.sqlite_version_info >= (3, 42) else \
        "cast((julianday('now') - 2440587.5) * 86400000000.0 as integer)"
    seconds = f'{now} / 1000000.0'

    def size(self):
        return sum(os.path.getsize(self.path + tail) for tail in ('', '-wal') if os.path.exists(self.path + tail))


class Postgresql:
    kind = 'postgresql'
    now, seconds = 'clock_timestamp()', 'extract(epoch from clock_timestamp())'
    WAITING = ("select count(*) from pg_stat_activity a where a.wait_event_type = 'Lock' and position(current_schema() in a.query) > 0 and "
               'a.pid <> pg_backend_pid()')
    WHICH = dict(all='', fence=" and exists (select from pg_locks l where l.pid = a.pid and not l.granted and l.relation = 'matins_fence'::regclass)",
                 past_lease=' and exists (select from job_watermark where lease_until > a.query_start and lease_until < clock_timestamp())')

    def __init__(self, url):
        self.url = url
        self.server, _, query = url.partition('?')
        self.schema = dict(p.partition('=')[::2] for p in query.split('&')).get('schema', 'matins')

    def sql(self, statement):
        done = subprocess.run(['psql', '-AtXq', '-F', '\x1f', '-v', 'ON_ERROR_STOP=1', self.server, '-c', f'set search_path = {self.schema}', '-c',
                               statement], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [line.split('\x1f') for line in done.stdout.splitlines()]

    def version(self):
        return 'PostgreSQL ' + self.sql('show server_version')[0][0]

    def plan(self, question):
        for column in ('look_at', 'lease_until', 'due_at'):
            for sign in ('<=', '<', '>'):
                question = question.replace(f'{column} {sign} 1', f'{column} {sign} clock_timestamp()')
        return [row[0] for row in self.sql(f'set enable_seqscan = off; explain (costs off) {question}')]

    def indexes(self):
        return sorted(row[0] for row in self.sql('select indexname from pg_indexes where schemaname = current_schema()'))

    def locks(self):
        waiting, dead = self.sql('select (select count(*) from pg_locks where not granted), '
                                 '(select deadlocks from pg_stat_database where datname = current_database())')[0]
        return dict(waiting=int(waiting), deadlocks=int(dead))

    def columns(self, table):
        return [row[0] for row in self.sql('select column_name from information_schema.columns where table_schema = current_schema() and '
                                           f"table_name = '{table}' order by ordinal_position")]

    def settings(self):
        return dict(self.sql('select name, setting from pg_settings order by name'))

    def activity(self):
        """Who is at work, or waits, and for what; at most 50."""
        rows = self.sql("select pid, state, coalesce(wait_event_type || ' ' || wait_event, ''), round(extract(epoch from clock_timestamp() - "
                        "coalesce(xact_start, query_start)), 3), regexp_replace(left(query, 120), '\\s+', ' ', 'g') from pg_stat_activity where "
                        "backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid() limit 50")
        return [dict(zip(('pid', 'state', 'waits_for', 'seconds', 'query'), row)) for row in rows]

    def waiting(self, which):
        """How many calls of this store's wait for a lock: all; those that ask for a `fence`; those that came while a lease lived (`past_lease`) that
        is over."""
        return int(self.sql(self.WAITING + self.WHICH[which])[0][0])


class Mariadb:
    kind = 'mariadb'
    TABLE_WAIT = "state = 'Waiting for table metadata lock'"
    WAITING = f'select count(*) from information_schema.processlist where db = database() and ({TABLE_WAIT} or id in (0{{}}))'
    WHICH = dict(all='', fence=f" and {TABLE_WAIT} and info like 'insert into matins_fence_numbers%'",
                 past_lease=' and exists (select 1 from job_watermark where lease_until > utc_timestamp(6) - interval time_ms * 1000 microsecond '
                            'and lease_until < utc_timestamp(6))')
    now, seconds = 'utc_timestamp(6)', "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) / 1000000"

    def __init__(self, url):
        self.url, parts = url, urlsplit(url)
        self.command = ['mariadb', '--no-defaults', '-NBr', '-h', parts.hostname, '-P', str(parts.port or 3306), '-u', parts.username or 'root']
        self.database = parts.path.lstrip('/') or 'matins'
        self.env = {**os.environ, **({'MYSQL_PWD': parts.password} if parts.password else {})}

    def sql(self, statement):
        done = subprocess.run([*self.command, self.database, '-e', statement], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env=self.env)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [line.split('\t') for line in done.stdout.splitlines()]

    def version(self):
        return 'MariaDB ' + self.sql('select version()')[0][0]

    def plan(self, question):
        for column in ('look_at', 'lease_until', 'due_at'):
            for sign in ('<=', '<', '>'):
                question = question.replace(f'{column} {sign} 1', f'{column} {sign} utc_timestamp(6)')
        return [f'{row[2]}: {row[5]}' for row in self.sql('explain ' + question)]

    def indexes(self):
        return sorted(row[0] for row in self.sql("select distinct concat(table_name, '.', index_name) from information_schema.statistics "
                                                 'where table_schema = database()'))

    def locks(self):
        dead = self.sql("show global status like 'Innodb_deadlocks'")
        return dict(waiting=len(self.waiters()), deadlocks=int(dead[0][1]) if dead else 0)

    def columns(self, table):
        return [row[0] for row in self.sql('select column_name from information_schema.columns where table_schema = database() and '
                                           f"table_name = '{table}' order by ordinal_position")]

    def settings(self):
        return dict((row + [''])[:2] for row in self.sql('show global variables'))

    def activity(self):
        rows = self.sql("select id, command, coalesce(state, ''), time_ms / 1000, regexp_replace(left(info, 120), '[[:space:]]+', ' ') from "
                        "information_schema.processlist where command <> 'Sleep' and info is not null and id <> connection_id() limit 50")
        return [dict(zip(('pid', 'state', 'waits_for', 'seconds', 'query'), row)) for row in rows]

    def waiting(self, which):
        """As of PostgreSQL."""
        return int(self.sql(self.WAITING.format(''.join(f', {thread}' for thread in self.waiters())) + self.WHICH[which])[0][0])

    def waiters(self):
        """Connections that wait for a row. Of information_schema.innodb_trx there is a copy, and no new one as long as it is asked for more often than
        ten times a second."""
        told = '\n'.join(row[-1] for row in self.sql('show engine innodb status')).partition('\nTRANSACTIONS\n')[2]
        return re.findall(r'^LOCK WAIT [^\n]*\n(?:MariaDB|MySQL) thread id (\d+)', told, re.M)


def open_store(url):
    for beginning, kind in (('sqlite:', Sqlite), ('postgresql://', Postgresql), ('postgres://', Postgresql), ('mariadb://', Mariadb)):
        if url.startswith(beginning):
            return kind(url)
    raise ValueError(f'{url!r} is no store; write sqlite:PATH, postgresql://...?schema=NAME or mariadb://...')


def writable(path):
    """Whether nobody is in a transaction of that SQLite file."""
    db = sqlite3.connect(path, timeout=0.5, isolation_level=None)
    try:
        db.execute('begin immediate')
        db.execute('rollback')
        return True
    except sqlite3.OperationalError:
        return False
    finally:
        db.close()
