"""The ledger example: an owner that slept is refused, and each step is booked once."""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

MATINS, SOURCE = sys.argv.pop(1), sys.argv.pop(1)


class LedgerFence(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = os.path.join(folder.name, 'ledger')
        shutil.copytree(SOURCE, self.home)
        self.ledger = os.path.join(self.home, 'ledger.db')
        subprocess.run([os.path.join(self.home, 'ledger.sh')], check=True,
                       env={**os.environ, 'LEDGER': self.ledger, 'MATINS': MATINS})

    def owner(self, fence, **more):
        env = {**os.environ, 'LEDGER': self.ledger, 'MATINS_JOB': 'settle', 'MATINS_PERIOD': '2026-10-30',
               'MATINS_GENERATION': '1', 'MATINS_FENCE': str(fence), **more}
        process = subprocess.Popen([os.path.join(self.home, 'settle.sh')], env=env, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def bookings(self):
        ledger = sqlite3.connect(self.ledger)
        self.addCleanup(ledger.close)
        return ledger.execute('SELECT step, fence FROM booking ORDER BY step, fence').fetchall()

    def read(self, process, *lines):
        self.assertEqual([process.stdout.readline().rstrip() for _ in lines], list(lines))

    def test_an_owner_that_slept_is_refused_and_nothing_is_booked_twice(self):
        old = self.owner(10, PAUSE_AFTER='2')
        self.read(old, 'begins after step 0', 'step 1 booked', 'step 2 booked')
        new = self.owner(11, PAUSE_AFTER='2')
        self.read(new, 'begins after step 2')
        # It wakes up after the new one has read and before it has written.
        _, said = old.communicate('wake up\n', timeout=60)
        self.assertEqual(old.returncode, 75)
        self.assertIn('step 3 refused', said)
        out, said = new.communicate('go on\n', timeout=60)
        self.assertEqual(new.returncode, 0, said)
        self.assertEqual(out, 'step 3 booked\nstep 4 booked\nstep 5 booked\n')
        self.assertEqual(self.bookings(), [(1, 10), (2, 10), (3, 11), (4, 11), (5, 11)])

    def test_a_step_that_was_done_is_not_done_again(self):
        self.owner(10).communicate(timeout=60)
        again = self.owner(10)
        self.read(again, 'begins after step 5')
        again.communicate(timeout=60)
        self.assertEqual(len(self.bookings()), 5)

    def test_a_new_generation_does_the_steps_again_and_books_none_twice(self):
        self.owner(10, STEPS='3').communicate(timeout=60)
        again = self.owner(11, MATINS_GENERATION='2')
        out, said = again.communicate(timeout=60)
        self.assertEqual(again.returncode, 0, said)
        self.assertEqual(out.splitlines(), ['begins after step 0', 'step 1 was booked before', 'step 2 was booked before',
                                            'step 3 was booked before', 'step 4 booked', 'step 5 booked'])
        self.assertEqual(self.bookings(), [(1, 10), (2, 10), (3, 10), (4, 11), (5, 11)])

    def test_an_owner_that_comes_too_late_does_not_begin(self):
        self.owner(11).communicate(timeout=60)
        late = self.owner(10)
        _, said = late.communicate(timeout=60)
        self.assertEqual(late.returncode, 75)
        self.assertIn('newer owner', said)
        self.assertEqual(len(self.bookings()), 5)

    def test_under_matins_each_day_is_booked_by_its_runs_fence(self):
        jobs = os.path.join(self.home, 'jobs.yaml')
        with open(jobs) as f:
            text = f.read().replace('/srv/ledger', self.home)
        with open(jobs, 'w') as f:
            f.write(text)
        env = {**os.environ, 'MATINS_STORE': f'sqlite:{self.home}/matins.db'}
        node = subprocess.Popen([MATINS, 'serve', jobs, '--runtime-dir', self.home], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(node.stdout.close)
        self.addCleanup(node.wait)
        self.addCleanup(node.terminate)
        while 'serves' not in node.stdout.readline():
            self.assertIsNone(node.poll(), 'the node ended')
        subprocess.run([MATINS, 'run', 'settle', '--date', '2026-10-30', '--wait', '--timeout', '1m'], env=env,
                       check=True, stdout=subprocess.DEVNULL)
        self.assertEqual([step for step, _ in self.bookings()], [1, 2, 3, 4, 5])
        self.assertEqual(len({fence for _, fence in self.bookings()}), 1)


unittest.main()
