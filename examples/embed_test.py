"""The embed example fills the last five days in order, and goes on from its checkpoint."""
import datetime
import os
import subprocess
import sys
import tempfile
import unittest

EMBED = sys.argv.pop(1)


class Embed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.store = 'sqlite:' + os.path.join(folder.name, 'matins.db')
        # Two days back: due in every zone by now.
        last = datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=2)
        self.days = [str(last - datetime.timedelta(days=n)) for n in range(4, -1, -1)]

    def embed(self, *args):
        done = subprocess.run([EMBED, self.store, self.days[0], self.days[-1], *args], text=True,
                              capture_output=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_fills_the_gap_in_order_and_resumes(self):
        lines = self.embed('--crash-at', '3')
        attempts = [line for line in lines if ' attempt ' in line and line.split()[0] in self.days]
        self.assertEqual(attempts[0], f'{self.days[0]} attempt 1 (missed), from account 1')
        self.assertEqual(attempts[1], f'{self.days[0]} attempt 2 (missed), from account 3')
        self.assertEqual(attempts[2:], [f'{day} attempt 1 (missed), from account 1' for day in self.days[1:]])
        self.assertEqual([line for line in lines if line.endswith(' done')], [f'{day} done' for day in self.days])

    def test_a_second_start_does_nothing_twice(self):
        self.embed()
        again = self.embed()
        self.assertEqual([line for line in again if ' attempt ' in line and line.split()[0] in self.days], [])


unittest.main()
