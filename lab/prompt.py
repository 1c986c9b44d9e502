"""A connection to a store that stays open, so that a transaction can be held: what a person does at the client's prompt, and what a job does
that writes its own DONE."""
import os
import sqlite3
import subprocess
from urllib.parse import urlsplit

END = 'matins-lab-end'
NO_FENCES = 'hold_fences: a SQLite store has one writer at a time; write only_on = ["postgresql", "mariadb"]'


class Prompt:
    """The database's own client, asked a statement at a time. Its end rolls back what was not committed."""
    separator, has_rows = '\t', False

    def __init__(self, words, env=None):
        self.client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)

    def ask(self, statement):
        """-> rows"""
        self.client.stdin.write(f'{statement};\n{self.say_end}\n')
        self.client.stdin.flush()
        rows = []
        for line in self.client.stdout:
            if line.rstrip('\n') == END:
                return rows
            rows.append(line.rstrip('\n').split(self.separator))
        raise RuntimeError(f'{statement}: {" ".join(word for row in rows for word in row)}')      # it ends at an error

    def hold_rows(self):
        self.ask(self.begin)
        self.ask('select 1 from job_watermark for update')
        self.has_rows = True

    def end(self):
        if self.client.poll() is None:
            self.client.stdin.close()
            self.client.wait()
            self.client.stdout.close()


class PostgresqlPrompt(Prompt):
    separator, say_end = '\x1f', f'\\echo {END}'
    begin = 'begin'

    def __init__(self, url):
        server, _, query = url.partition('?')
        schema = dict(p.partition('=')[::2] for p in query.split('&')).get('schema', 'matins')
        super().__init__(['psql', '-AtXq', '-F', self.separator, '-v', 'ON_ERROR_STOP=1', server])
        self.ask(f'set search_path = {schema}')

    def changed(self, statement):
        """-> how many rows"""
        return len(self.ask(statement + ' returning 1'))

    def hold_fences(self):
        self.ask('begin')
        self.ask('alter sequence matins_fence no cycle')


class MariadbPrompt(Prompt):
    say_end = f"select '{END}';"
    begin = 'start transaction'

    def __init__(self, url):
        parts = urlsplit(url)
        super().__init__(['mariadb', '--no-defaults', '-NBrn', '-h', parts.hostname, '-P', str(parts.port or 3306), '-u', parts.username or 'root',
                          parts.path.lstrip('/') or 'matins'], {**os.environ, **({'MYSQL_PWD': parts.password} if parts.password else {})})
        self.ask('set session transaction isolation level read committed')

    def changed(self, statement):
        return int(self.ask(f'{statement}; select row_count()')[-1][0])

    def hold_fences(self):
        """The whole table: who waits for a row gives up after a second, who waits for a table after the call's deadline."""
        self.ask('lock tables matins_fence_numbers read')


class SqlitePrompt:
    begin, has_rows = 'begin immediate', False

    def __init__(self, url):
        self.db = sqlite3.connect(url[len('sqlite:'):].split('?')[0], timeout=30, isolation_level=None, check_same_thread=False)

    def ask(self, statement):
        return [[str(v) if v is not None else '' for v in row] for row in self.db.execute(statement).fetchall()]

    def changed(self, statement):
        return self.db.execute(statement).rowcount

    def hold_rows(self):
        self.ask(self.begin)
        self.has_rows = True

    def hold_fences(self):
        raise RuntimeError(NO_FENCES)

    def end(self):
        self.db.close()


def open_prompt(url):
    kind = urlsplit(url).scheme
    return dict(sqlite=SqlitePrompt, mariadb=MariadbPrompt).get(kind, PostgresqlPrompt)(url)
