"""Faults that users of other schedulers met, each with the right answer of ours: how runs end, overlap, outlive and are
handed over."""
import os
import signal
import subprocess
from datetime import datetime, timedelta, timezone

from support import KEEP_ALL, MATINS, PATIENCE, StoreCase, eventually, for_each_store, main

TODAY = datetime.now(timezone.utc).date()


def day(back):
    return str(TODAY - timedelta(days=back))


def job(name, shell, *more, schedule='0 0 * * *', misfire='each'):
    """By default due at midnight UTC for the day before; the shell text goes into a block, so that it may hold quotes."""
    period = ['period: day', 'biz_date: -1d'] if schedule == '0 0 * * *' else []
    lines = [f'  - name: "{name}"', f'    schedule: "{schedule}"', f'    misfire: {misfire}',
             *('    ' + line for line in [*period, *more]), '    run:', '      shell: |', f'        {shell}']
    return '\n'.join(lines) + '\n'


def jobs(*texts):
    return KEEP_ALL + 'jobs:\n' + ''.join(texts)


class Cases(StoreCase):

    def path(self, name):
        return os.path.join(self.folder, name)

    def lines(self, name):
        if not os.path.exists(self.path(name)):
            return []
        with open(self.path(name)) as f:
            return f.read().splitlines()

    def until(self, name):
        """Shell text that ends when the file of that name is there."""
        return f'while [ ! -e {self.path(name)} ]; do sleep 0.05; done'

    def open(self, name):
        open(self.path(name), 'w').close()

    def runs(self, name):
        return self.json('runs', name, '-n', '1000')

    def row(self, name, period):
        return self.rows(name).get(period, {})

    def started(self, name, period):
        """The row, once the period runs and its child is there."""
        return eventually(f'{name} {period} to run', lambda: self.row(name, period).get('status') == 'RUNNING'
                          and self.row(name, period))


def alive(pid):
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):     # the second where it goes between the two
        return False


@for_each_store
class StoppedGuard(Cases):

    # What it started does not say whose it is: nobody but its guard can find it.
    def test_whose_node_is_killed_ends_its_tree_at_the_next_node_and_the_period_is_run_again(self):
        first = f'if [ ! -e {self.path("tree")} ]; then env -i sleep 600 & echo $! $$ > {self.path("new")}; ' \
                f'mv {self.path("new")} {self.path("tree")}; wait; fi'
        self.apply(jobs(job('j', first)))
        node = self.node()
        self.ok('run', 'j', '--date', day(1))
        tree = [int(pid) for pid in eventually('the tree', lambda: self.lines('tree'))[0].split()]
        with open(f'/proc/{tree[1]}/stat') as f:
            guard = int(f.read().rsplit(')', 1)[1].split()[1])
        os.kill(guard, signal.SIGSTOP)
        node.kill()
        self.assertTrue(all(alive(pid) for pid in tree))
        self.node()
        eventually('the tree to be dead', lambda: not any(alive(pid) for pid in [*tree, guard]))
        eventually('the period to be run again', lambda: self.status_of('j', day(1)) == 'DONE')


@for_each_store
class Ends(Cases):

    def test_how_a_run_ends_is_told_by_code_and_signal_and_not_by_what_it_prints(self):
        with open(self.path('plain'), 'w') as f:
            f.write('not a program\n')
        shells = {'stderr': 'echo trouble >&2', 'five': 'exit 5', 'pipe': 'false | cat', 'killed': 'kill -9 $$',
                  'segv': 'kill -SEGV $$', 'missing': '/no/such/program', 'refused': self.path('plain')}
        self.apply(jobs(*(job(name, shell) for name, shell in shells.items())))
        self.node()
        for name in shells:
            self.ok('run', name, '--date', day(1))
        ends = {}
        for name in shells:
            eventually(name, lambda: self.row(name, day(1)).get('status') in ('DONE', 'FAILED'))
            run = self.runs(name)[0]
            ends[name] = (run['status'], run['exit_code'], run['signal'])
        self.assertEqual(ends, {'stderr': ('DONE', 0, None), 'five': ('FAILED', 5, None), 'pipe': ('DONE', 0, None),
                                'killed': ('FAILED', None, 9), 'segv': ('FAILED', None, 11),
                                'missing': ('FAILED', 127, None), 'refused': ('FAILED', 126, None)})

    def test_a_flood_of_output_is_cut_in_the_middle_and_costs_no_memory(self):
        self.apply(jobs(job('flood', 'echo first; head -c 5242880 /dev/zero | tr "\\0" x; echo; echo last; exit 3')))
        node = self.node()

        def resident():
            with open(f'/proc/{node.process.pid}/status') as f:
                return int(next(line for line in f if line.startswith('VmHWM')).split()[1]) // 1024

        before = resident()
        self.refused(1, 'run', 'flood', '--date', day(1), '--wait')
        run = self.runs('flood')[0]
        self.assertEqual((run['exit_code'], run['output_bytes']), (3, 5242880 + len('first\n\nlast\n')))
        text = self.ok('logs', run['run'])
        self.assertTrue(text.startswith('first\nxxx') and text.endswith('xxx\nlast\n'))
        self.assertIn(str(run['output_bytes'] - 256 * 1024), text.replace(',', ''))
        if not os.environ.get('MATINS_SANITIZE'):  # a sanitizer keeps what was freed
            self.assertLess(resident() - before, 50)

    def test_any_bytes_of_output_are_kept(self):
        self.apply(jobs(job('bytes', r"printf 'hi\n\200\377\000end\n\344'; printf '\275\240\rdone\n'")))
        self.node()
        self.ok('run', 'bytes', '--date', day(1), '--wait')
        run = self.runs('bytes')[0]['run']
        written = b'hi\n\x80\xff\x00end\n\xe4\xbd\xa0\rdone\n'
        raw = subprocess.run([MATINS, 'logs', run, '--raw'], env=self.env(), capture_output=True, timeout=PATIENCE)
        self.assertEqual(raw.stdout, written)
        shown = self.json('logs', run)
        self.assertEqual((shown['bytes'], shown['output']), (len(written), written.decode(errors='replace')))

    def test_names_are_compared_as_bytes_and_the_longest_one_runs(self):
        longest = '\U00020000' * 16  # 64 bytes
        names = ['job', 'Job', 'j\u00f3b', longest]
        self.apply(jobs(*(job(name, 'echo $MATINS_JOB') for name in names)))
        self.assertEqual({entry['name'] for entry in self.json('job', 'list')}, set(names))
        self.node()
        for name in names:
            self.ok('run', name, '--date', day(1), '--wait')
            self.assertEqual(self.ok('logs', self.runs(name)[0]['run']), name + '\n')
        for bad in (longest + 'x', 'job ', ' job', 'a/b', 'a b', 'a%2Fb', '..', 'a?b#c', '.json', ''):
            with open(self.path('bad.yaml'), 'w') as f:
                f.write(jobs(job(bad, 'true')))
            self.refused(2, 'job', 'apply', self.path('bad.yaml'), says=['name'])
        self.assertEqual(len(self.json('job', 'list')), len(names))

    def test_a_job_deleted_while_it_runs_leaves_nothing_to_the_next_of_its_name(self):
        self.apply(jobs(job('j', f'echo old; {self.until("gate")}')))
        self.node()
        self.ok('run', 'j', '--date', day(1))
        old = self.started('j', day(1))['run']
        self.refused(4, 'job', 'delete', 'j', '--reason', 'gone', says=['running', '--force'])
        self.ok('job', 'delete', 'j', '--force', '--reason', 'gone')
        self.apply(jobs(job('j', 'echo new')), '--force')
        self.refused(4, 'run', 'j', '--date', day(1), says=[old])
        self.open('gate')
        eventually('the old run to end', lambda: self.status_of('j', day(1)) == 'DONE')
        # The date was done, and is not done twice; to do it again is a new run's, whose results are its own.
        self.refused(4, 'run', 'j', '--date', day(1), says=['--again'])
        self.ok('run', 'j', '--date', day(1), '--again', '--reason', 'a new job', '--wait')
        row = self.row('j', day(1))
        self.assertEqual((row['generation'], row['run'] != old), (2, True))
        self.assertEqual(self.ok('logs', row['run']), 'new\n')
        self.assertEqual(self.ok('logs', old), 'old\n')

    def test_a_run_longer_than_its_lease_stays_single_and_its_time_out_ends_it(self):
        self.apply(jobs(job('long', f'echo $$ >> {self.path("pids")}; {self.until("gate")}', 'lock: { ttl: 10s }'),
                        job('endless', f'trap "" TERM; sleep 600 & {self.until("never")}', 'timeout: 1s', 'grace: 1s')))
        self.node()
        self.node()
        self.ok('run', 'long', '--date', day(1))
        self.started('long', day(1))
        self.refused(1, 'run', 'endless', '--date', day(1), '--wait')
        self.assertEqual(self.row('endless', day(1))['reason'], 'timeout')
        beyond = datetime.now(timezone.utc) + timedelta(seconds=12)
        eventually('more than a lease', lambda: datetime.now(timezone.utc) > beyond)
        self.open('gate')
        eventually('the end', lambda: self.status_of('long', day(1)) == 'DONE')
        self.assertEqual((len(self.lines('pids')), len(self.runs('long'))), (1, 1))


class Overlaps(Cases):
    kind = 'sqlite'

    def test_replace_waits_until_the_old_tree_is_dead_though_it_ignores_sigterm(self):
        pids = self.path('pids')
        shell = (f'trap "" TERM; for p in $(cat {pids}); do kill -0 $p && echo $p >> {self.path("together")}; done; '
                 f'echo $$ >> {pids}; {self.until("gate")}')
        open(pids, 'w').close()
        self.apply(jobs(job('j', shell, 'overlap: replace', 'grace: 1s', schedule='* * * * * *', misfire='latest')))
        self.node()
        eventually('three runs', lambda: len(self.lines('pids')) >= 3)
        self.assertEqual(self.lines('together'), [])
        self.assertIn('replaced', {row['reason'] for row in self.rows('j').values()})
        self.assertLessEqual(sum(alive(int(pid)) for pid in self.lines('pids')), 1)

    def test_a_start_missed_behind_a_long_run_is_made_up_once(self):
        shell = f'echo $MATINS_PERIOD >> {self.path("starts")}; {self.until("gate")}'
        self.apply(jobs(job('j', shell, 'start_deadline: 1s', schedule='* * * * * *', misfire='latest')))
        self.node()
        eventually('a run', lambda: self.lines('starts'))
        first = datetime.fromisoformat(self.lines('starts')[0].replace('Z', '+00:00'))
        eventually('several starts to pass', lambda: datetime.now(timezone.utc) > first + timedelta(seconds=5))
        self.assertEqual(len(self.lines('starts')), 1)
        self.open('gate')
        eventually('the runs after it', lambda: len(self.lines('starts')) >= 4)
        starts = self.lines('starts')
        self.assertEqual(starts, sorted(set(starts)))
        waited = [row for row in self.rows('j').values() if row['due'] > starts[0] and row['due'] < starts[1]]
        self.assertGreaterEqual(len(waited), 2)
        self.assertEqual({(row['status'], row['reason']) for row in waited}, {('SKIPPED', 'superseded')})


@for_each_store
class HandOver(Cases):

    def test_a_node_that_drains_keeps_its_lease_and_ends_its_run_itself(self):
        self.apply(jobs(job('j', f'echo $$ >> {self.path("pids")}; {self.until("gate")}', 'lock: { ttl: 10s }')))
        node = self.node('--drain', '120s')
        self.ok('run', 'j', '--date', day(1))
        eventually('the run', lambda: self.lines('pids'))
        self.node()
        node.signal(signal.SIGTERM)
        beyond = datetime.now(timezone.utc) + timedelta(seconds=12)
        eventually('more than the lease', lambda: datetime.now(timezone.utc) > beyond)
        self.open('gate')
        self.assertEqual(node.process.wait(60), 0)
        self.assertEqual((self.status_of('j', day(1)), len(self.runs('j')), len(self.lines('pids'))), ('DONE', 1, 1))

    def test_what_a_drain_stops_is_handed_over_and_what_a_person_cancelled_is_not(self):
        shell = f'echo $MATINS_JOB $MATINS_RUN_ID >> {self.path("starts")}; {self.until("gate")}'
        self.apply(jobs(job('j', shell), job('c', shell)))
        first = self.node('--drain', '100ms')
        for name in 'jc':
            self.ok('run', name, '--date', day(1))
            self.started(name, day(1))
        eventually('both', lambda: len(self.lines('starts')) == 2)
        self.ok('cancel', self.row('c', day(1))['run'], '--reason', 'not needed')
        self.assertEqual(first.stop(), 0)
        self.node()
        eventually('the run elsewhere', lambda: sum(line.startswith('j ') for line in self.lines('starts')) == 2)
        self.open('gate')
        eventually('its end', lambda: self.status_of('j', day(1)) == 'DONE')
        self.assertEqual([run['reason'] for run in self.runs('j')], ['', 'handed_over'])
        self.assertEqual((self.row('j', day(1))['losses'], self.status_of('c', day(1))), (0, 'FAILED'))
        self.assertEqual(sum(line.startswith('c ') for line in self.lines('starts')), 1)

    def test_runs_of_a_killed_node_are_dead_and_run_again_and_no_other_nodes_are_touched(self):
        shell = f'echo $MATINS_JOB $$ >> {self.path("starts")}; {self.until("gate")}'
        names = ['a', 'b', 'c', 'd']
        self.apply(jobs(*(job(name, shell, f'nodes: [{"right" if name == "d" else "left"}]') for name in names)))
        left = self.node('--label', 'left')
        self.node('--label', 'right')
        for name in names:
            self.ok('run', name, '--date', day(1))
        eventually('all', lambda: len(self.lines('starts')) == 4)
        pids = {line.split()[0]: int(line.split()[1]) for line in self.lines('starts')}
        left.kill()
        eventually('its runs to be dead', lambda: not any(alive(pids[name]) for name in 'abc'))
        self.node('--label', 'left')
        eventually('them to run again', lambda: len(self.lines('starts')) == 7)
        self.assertTrue(alive(pids['d']))
        self.open('gate')
        for name in names:
            eventually(f'{name} to end', lambda: self.status_of(name, day(1)) == 'DONE')
            self.assertEqual(self.row(name, day(1))['attempts'], 1 if name == 'd' else 2)
        self.assertEqual([line for line in self.lines('starts') if line.startswith('d')], [f'd {pids["d"]}'])


if __name__ == '__main__':
    main()
