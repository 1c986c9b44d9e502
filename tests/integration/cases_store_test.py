"""Faults that users of other schedulers met, each with the right answer of ours: a store that is away, slow, full, or asked
by many at once."""
import os
import signal
import sqlite3
import subprocess
import threading
import unittest
from datetime import datetime, timedelta, timezone

from fault_run import Proxy
from support import MATINS, PATIENCE, StoreCase, eventually, postgres_port

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
# Ends when the file $GATE is there.
GATED = """
  - name: gated
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    run: { shell: 'echo up; while [ ! -e %s ]; do sleep 0.05; done; echo bye' }
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
        self.apply('jobs:' + EVERY_SECOND)
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

    def test_a_node_that_waits_for_its_store_ends_when_asked(self):
        self.proxy.ask('refuse')
        node = subprocess.Popen([MATINS, 'serve', '--runtime-dir', self.folder, '--store', self.behind],
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn('store_away', node.stderr.readline())
        node.send_signal(signal.SIGTERM)
        node.communicate(timeout=PATIENCE)
        self.assertEqual(node.returncode, 0)


if __name__ == '__main__':
    unittest.main()
