"""Faults that users of other schedulers met, each with the right answer of ours: nodes whose clocks are wrong, a node that is
process 1 of a container, a long history, and a back-fill beside other runs."""
import os
import shutil
import signal
import subprocess
import unittest
from datetime import datetime, timedelta, timezone

from cases_run_test import Cases, day, job, jobs
from support import MATINS, PATIENCE, Node, eventually, for_each_store, main


def at(text):
    return datetime.fromisoformat(text.replace('Z', '+00:00'))


class SkewedNode(Node):
    """A node whose wall clock is off by so many seconds."""

    def __init__(self, case, skew, *args):
        env = case.env
        case.env = lambda: {**env(), 'LD_PRELOAD': os.environ['MATINS_SKEWED_CLOCK'], 'MATINS_TEST_SKEW_S': str(skew)}
        try:
            super().__init__(case, *args)
        finally:
            case.env = env


@unittest.skipUnless(os.environ.get('MATINS_SKEWED_CLOCK'), 'nothing can be preloaded under a sanitizer')
class SkewedClocks(Cases):
    kind = 'postgresql'  # SQLite's clock is the machine's

    def test_what_nodes_believe_the_time_to_be_decides_nothing_and_is_told(self):
        # A short run on one, then the same second's by another clock.
        self.apply(jobs(job('tick', 'true', schedule='* * * * * *')))
        for skew in (0, 5, -40, 90):
            SkewedNode(self, skew)
        eventually('fifteen seconds', lambda: sum(run['status'] == 'DONE' for run in self.runs('tick')) >= 15)
        runs = self.runs('tick')
        for run in runs:
            self.assertGreaterEqual(at(run['claimed_at']), at(run['due']), run)
        due = sorted(run['due'] for run in runs)
        self.assertEqual(len(due), len(set(due)), 'a second was run twice')
        self.assertEqual({at(b) - at(a) for a, b in zip(due, due[1:])}, {timedelta(seconds=1)})
        now = datetime.now(timezone.utc)
        self.assertLess(abs(at(max(due)) - now), timedelta(seconds=PATIENCE))
        status = eventually('all four measured well', self.measured)
        told = [warning for warning in status['warnings'] if 'the clock of node' in warning]
        self.assertEqual((sum("behind the store's" in warning for warning in told),
                          sum("ahead of the store's" in warning for warning in told)), (1, 2), told)
        eventually('people to be told', lambda: "behind the store's" in self.ok('status'))

    def measured(self):
        """The status, once each clock is read within two seconds: each second anew, after a round trip on a busy machine."""
        status = self.json('status')
        offsets = sorted(node['clock_offset_seconds'] for node in status['nodes'])
        return len(offsets) == 4 and all(abs(offset - skew) < 2 for offset, skew in zip(offsets, (-40, 0, 5, 90))) and status


def unshare():
    """The command under which a program is process 1 of a space of its own; None where that is not allowed."""
    command = ['unshare', *([] if os.geteuid() == 0 else ['--map-root-user']), '--pid', '--fork', '--kill-child', '--mount-proc']
    if shutil.which('unshare') is None or subprocess.run([*command, 'true'], capture_output=True).returncode != 0:
        return None
    return command


@unittest.skipUnless(unshare(), 'no space of processes can be made here')
class ProcessOne(Cases):
    kind = 'sqlite'

    def test_it_reaps_what_runs_leave_behind_and_keeps_their_codes_and_drains(self):
        # Each leaves a grandchild whose parent is gone, and ends with a code of its day's.
        shell = '(setsid sleep 0.05 & setsid sh -c "exit 9" &) ; d=${MATINS_BIZ_DATE##*-}; exit $((${d#0} % 4))'
        self.apply(jobs(job('j', shell, 'overlap: allow',
                            f'backfill: {{ start: {day(40)}, max_periods: 60, max_parallel: 8, order: none }}')))
        log_path = self.path('one.log')
        with open(log_path, 'wb') as log:
            outer = subprocess.Popen([*unshare(), MATINS, 'serve', '--runtime-dir', self.folder], env=self.env(),
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(outer.wait)
        self.addCleanup(outer.kill)

        def ended():
            return [run for run in self.runs('j') if run['status'] != 'RUNNING']

        eventually('forty runs', lambda: len(ended()) >= 40)
        self.assertEqual({run['period']: run['exit_code'] for run in ended()},
                         {day(n): int(day(n)[-2:]) % 4 for n in range(1, 41)})
        with open(f'/proc/{outer.pid}/task/{outer.pid}/children') as f:
            one = int(f.read().split()[0])

        def children(state):
            found = []
            for name in filter(str.isdigit, os.listdir('/proc')):
                try:
                    with open(f'/proc/{name}/stat') as f:
                        fields = f.read().rsplit(')', 1)[1].split()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(fields[1]) == one and fields[0] == state:
                    found.append(name)
            return found

        eventually('no zombie to be left', lambda: not children('Z'))
        os.kill(one, signal.SIGTERM)
        self.assertEqual(outer.wait(PATIENCE), 0)
        with open(log_path) as f:
            self.assertIn('left in order', f.read())


@for_each_store
class LongHistory(Cases):

    def test_it_goes_in_small_steps_while_runs_start_and_end_and_what_is_open_keeps_its_own(self):
        self.apply(jobs(job('tick', 'true', 'history: { succeeded: 3, failed: 5 }', schedule='* * * * * *'),
                        job('bad', 'exit 1', 'history: { succeeded: 3, failed: 1 }')))
        first = self.node()
        self.ok('run', 'bad', '--date', day(1))
        eventually('an end of each', lambda: self.status_of('bad', day(1)) == 'FAILED' and any(
            run['status'] == 'DONE' for run in self.runs('tick')))
        first.stop()
        for name, period, rows in (('tick', "r.period || '#' || n.i", 1500), ('bad', 'r.period', 600)):
            begin = 0 if name == 'tick' else 10000
            self.sql(f"""insert into job_run (fence, job_name, period, biz_date, generation, attempt, attempts_total, node, status,
                         reason, message, result, due_at, claimed_at, finished_at, backfill, manual, version)
                         with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
                         select {begin} + n.i, r.job_name, {period}, r.biz_date, 1, 1, 1, r.node, r.status, '', '', '', r.due_at,
                         r.claimed_at, r.finished_at, r.backfill, r.manual, r.version
                         from n cross join (select * from job_run where job_name = '{name}' and status <> 'RUNNING' limit 1) r""")

        def left(name):
            return int(self.sql(f"select count(*) from job_run where job_name = '{name}' and fence < 100000")[-1][0])

        self.assertEqual((left('tick'), left('bad')), (1500, 600))
        newest = max(run['period'] for run in self.runs('tick') if run['status'] == 'DONE')
        self.node()
        seen = set()

        def gone():
            seen.add(left('tick'))
            return 0 in seen

        eventually('the history to go', gone)
        self.assertTrue(any(0 < count < 1500 for count in seen), f'it went at once: {seen}')
        done = sorted(run['period'] for run in self.runs('tick') if run['status'] == 'DONE')
        self.assertGreater(done[-1], newest)
        self.assertEqual(left('bad'), 600)  # its period is not settled: each attempt of it stays


@for_each_store
class BackfillBesideOthers(Cases):

    def test_as_many_together_as_the_job_says_beside_the_run_that_is_there(self):
        shell = 'echo "+$MATINS_BACKFILL" >> "$LIST"; while [ ! -e "$GATE" ]; do sleep 0.05; done; echo "-$MATINS_BACKFILL" >> "$LIST"'
        self.apply(jobs(job('j', shell, 'overlap: allow', 'backfill: { order: none, max_parallel: 3 }',
                            f'env: {{ LIST: {self.path("list")}, GATE: {self.path("gate")} }}')))
        self.node()
        self.ok('run', 'j', '--date', day(1))
        self.started('j', day(1))
        self.ok('backfill', 'j', '--from', day(6), '--to', day(2))
        eventually('three beside it', lambda: len(self.lines('list')) >= 4)
        waiting = [period for period, row in self.rows('j').items() if row['status'] == 'PLANNED']
        self.assertEqual(len(waiting), 2)
        self.open('gate')
        eventually('all of it', lambda: sum(row['status'] == 'DONE' for row in self.rows('j').values()) == 6)
        together = most = 0
        for line in self.lines('list'):
            together += {'+': 1, '-': -1}[line[0]] if line[1:] == '1' else 0
            most = max(most, together)
        self.assertEqual(most, 3)


if __name__ == '__main__':
    main()
