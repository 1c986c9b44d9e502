"""Faults that users of other schedulers met, each with the right answer of ours: what is due, what was missed, and what a
change or a pause does to it."""
import json
import os
import signal
from datetime import datetime, timedelta, timezone

from support import KEEP_ALL, StoreCase, eventually, for_each_store, main

TODAY = datetime.now(timezone.utc).date()


def day(back):
    return str(TODAY - timedelta(days=back))


def at(text):
    return datetime.fromisoformat(text.replace('Z', '+00:00'))


def job(name, schedule, shell='true', misfire='skip', *more):
    lines = [f'  - name: "{name}"', f'    schedule: "{schedule}"', f'    misfire: {misfire}', *('    ' + line for line in more),
             f"    run: {{ shell: '{shell}' }}"]
    return '\n'.join(lines) + '\n'


def jobs(*texts):
    return KEEP_ALL + 'jobs:\n' + ''.join(texts)


class Schedules(StoreCase):
    kind = 'sqlite'

    def done(self, name):
        return [run['period'] for run in self.json('runs', name, '-n', '1000') if run['status'] == 'DONE']

    def skipped(self, name, reason):
        """How many periods were skipped for that reason, in rows and in spans."""
        shown = self.json('watermark', name)
        rows = [row for row in shown['periods'] if row['status'] == 'SKIPPED' and row['reason'] == reason]
        return len(rows) + sum(span['count'] for span in shown['skipped_spans'] if span['reason'] == reason)

    def listed(self, name):
        return {entry['name']: entry for entry in self.json('job', 'list')}[name]

    def test_the_list_shows_the_next_fire_of_the_calendar_and_a_run_by_hand_takes_its_last(self):
        def off(first, last):
            return f'{TODAY + timedelta(days=first)}..{TODAY + timedelta(days=last)} off\n'

        for name, until, days in (('open', 400, off(-3, 5) + ''.join(
                f'{TODAY + timedelta(days=d)} on\n' for d in (-4, 6))), ('short', 5, off(-3, 5))):
            with open(os.path.join(self.folder, name), 'w') as f:
                f.write(days)
        calendars = ', '.join(f'{name}: {{ file: {name}, until: {TODAY + timedelta(days=until)} }}'
                              for name, until in (('open', 400), ('short', 5)))
        self.apply(f'calendars: {{ {calendars} }}\n' + jobs(
            job('known', '0 6 * * *', 'true', 'each', 'calendar: open', 'period: day'),
            job('unknown', '0 6 * * *', 'true', 'each', 'calendar: short', 'period: day')))
        self.assertEqual(self.listed('known')['next_fire'][:10], str(TODAY + timedelta(days=6)))
        self.assertIsNone(self.listed('unknown')['next_fire'])
        self.assertIn('extend short', self.listed('unknown')['state'])
        self.assertEqual(json.loads(self.ok('run', 'known', '-o', 'json'))['period'], day(4))

    def test_a_schedule_without_a_future_is_told_once_and_not_looked_at_again(self):
        self.apply(jobs(job('gone', '0 0 0 1 1 ? 2020'), job('alive', '* * * * * *')))
        self.assertEqual(self.listed('gone')['state'], 'no further fires')
        self.assertEqual(self.listed('alive')['state'], 'waiting')
        node = self.node()
        eventually('three seconds', lambda: len(self.done('alive')) >= 3)
        self.assertLessEqual(node.text().count('job=gone'), 1)
        self.refused(2, 'next', '0 0 30 2 *', says=['never fires'])

    def test_a_node_without_zone_data_says_so_and_runs_nothing_in_another_zone(self):
        self.apply(jobs(job('there', '* * * * * *', 'true', 'skip', 'timezone: Asia/Singapore'), job('here', '* * * * * *')))
        empty = os.path.join(self.folder, 'empty')
        os.mkdir(empty)
        told = {**self.env(), 'TZDIR': empty}
        self.env = lambda: told
        node = self.node()
        eventually('the node to say so', lambda: f"timezone 'Asia/Singapore': there is no zone data in {empty}" in node.text())
        eventually('jobs of UTC to run', lambda: len(self.done('here')) >= 2)
        self.assertEqual(self.json('runs', 'there'), [])

    def test_a_one_off_runs_once_at_its_instant_or_at_once_within_its_deadline_and_is_refused_beyond(self):
        now = datetime.now(timezone.utc).replace(microsecond=0)

        def one_off(name, instant):
            return f'  - {{name: {name}, at: {instant.isoformat()}, misfire: skip, run: {{shell: "true"}}}}\n'

        self.node()
        self.apply(jobs(one_off('ahead', now + timedelta(seconds=3)), one_off('now', now), one_off('late', now - timedelta(seconds=10))))
        for name in ('ahead', 'now', 'late'):
            eventually(name, lambda: self.done(name))
        run = self.json('runs', 'ahead')[0]
        self.assertGreaterEqual(at(run['claimed_at']), now + timedelta(seconds=3))
        path = os.path.join(self.folder, 'past.yaml')
        with open(path, 'w') as f:
            f.write(jobs(one_off('past', now - timedelta(hours=1)), one_off('other', now + timedelta(hours=1))))
        self.refused(4, 'job', 'apply', path, says=['past', 'start_deadline'])
        self.assertEqual({entry['name'] for entry in self.json('job', 'list')}, {'ahead', 'now', 'late'})
        # One that has run may stay in its file.
        self.assertIn('has passed', self.ok('job', 'apply', path, '--force'))
        self.assertIn('unchanged: past', self.ok('job', 'apply', path))

    def test_starts_missed_while_no_node_lived_run_as_the_misfire_policy_says(self):
        late = ['start_deadline: 1s']
        self.apply(jobs(job('latest', '* * * * * *', 'true', 'latest', *late), job('skip', '* * * * * *', 'true', 'skip', *late)))
        node = self.node()
        eventually('a first second', lambda: self.done('latest') and self.done('skip'))
        node.kill()
        last = max(self.done('latest'))
        gap = at(last) + timedelta(seconds=5)
        eventually('an outage of five seconds', lambda: datetime.now(timezone.utc) > gap)
        self.node()
        eventually('the time after it', lambda: at(max(self.done('latest'))) > gap)
        self.assertGreaterEqual(self.skipped('latest', 'superseded'), 2)
        self.assertGreaterEqual(self.skipped('skip', 'missed'), 2)
        # None without a trace: each second from the first to the last is DONE or SKIPPED with its reason.
        for name, why in (('latest', 'superseded'), ('skip', 'missed')):
            periods = self.json('watermark', name)['periods']
            self.assertEqual({row['reason'] for row in periods if row['status'] == 'SKIPPED'} - {why}, set(), name)
            due = [at(row['due']) for row in periods]
            self.assertEqual({b - a for a, b in zip(due, due[1:])}, {timedelta(seconds=1)}, name)

    def test_a_pause_owes_nothing_that_was_skipped_and_shows_no_next_fire(self):
        self.apply(jobs(job('j', '* * * * * *', 'true', 'each')))
        self.node()
        eventually('a first second', lambda: self.done('j'))
        self.ok('job', 'suspend', 'j', '--reason', 'maintenance')
        self.assertIsNone(self.listed('j')['next_fire'])
        until = datetime.now(timezone.utc) + timedelta(seconds=3)
        eventually('a pause of three seconds', lambda: datetime.now(timezone.utc) > until)
        self.ok('job', 'resume', 'j', '--missed', 'skip')
        self.assertIsNotNone(self.listed('j')['next_fire'])
        eventually('the next second', lambda: at(max(self.done('j'))) > until)
        self.assertGreaterEqual(self.skipped('j', 'suspended'), 2)
        self.assertEqual(self.skipped('j', 'missed'), 0)

    def test_a_reload_does_not_wait_for_a_long_run_and_stops_no_other_job(self):
        gate = os.path.join(self.folder, 'gate')
        wait = f'while [ ! -e {gate} ]; do sleep 0.05; done'
        path = os.path.join(self.folder, 'jobs.yaml')

        def write(*texts):
            with open(path, 'w') as f:
                f.write(jobs(*texts))

        long = job('long', '0 0 * * *', wait, 'each', 'period: day')
        write(long, job('tick', '* * * * * *', 'true', 'each'))
        node = self.node(path)
        self.ok('run', 'long', '--date', day(1))
        eventually('the long run', lambda: self.status_of('long', day(1)) == 'RUNNING')
        write(long, job('tick', '* * * * * *', 'true', 'each'), job('new', '* * * * * *'))
        node.signal(signal.SIGHUP)
        eventually('the new job to run', lambda: 'new' in self.ok('job', 'list') and self.done('new'))
        self.assertEqual(self.status_of('long', day(1)), 'RUNNING')
        # What is wrong with a file changes nothing.
        with open(path, 'w') as f:
            f.write('jobs:\n  - name: star\n    misfire: skip\n    schedule: */5 * * * *\n')
        node.signal(signal.SIGHUP)
        eventually('the refusal', lambda: 'not reloaded' in node.text())
        self.assertIn('in quotes: schedule: "*/5 * * * *"', node.text())
        self.assertEqual({entry['name'] for entry in self.json('job', 'list')}, {'long', 'tick', 'new'})
        seen = len(self.done('tick'))
        eventually('more seconds', lambda: len(self.done('tick')) >= seen + 2)
        due = sorted(map(at, self.done('tick')))
        self.assertEqual({b - a for a, b in zip(due, due[1:])}, {timedelta(seconds=1)})
        open(gate, 'w').close()
        eventually('the long run to end', lambda: self.status_of('long', day(1)) == 'DONE')

    def test_a_backfill_runs_its_dates_alone_and_moves_no_next_fire(self):
        self.apply(jobs(job('j', '0 0 * * *', 'true', 'each', 'period: day', 'biz_date: -1d')))
        self.node()
        self.ok('run', 'j', '--date', day(1), '--wait')
        before = self.listed('j')['next_fire']
        self.ok('backfill', 'j', '--from', day(14), '--to', day(10))
        eventually('five dates', lambda: len(self.done('j')) == 6)
        self.assertEqual(sorted(self.done('j')), [day(14), day(13), day(12), day(11), day(10), day(1)])
        self.assertEqual(self.listed('j')['next_fire'], before)
        self.assertEqual(self.listed('j')['gaps'], 0)

    def test_a_backfill_waits_behind_a_run_and_is_not_dropped(self):
        gate = os.path.join(self.folder, 'gate')
        shell = f'echo $MATINS_BIZ_DATE; test $MATINS_BIZ_DATE = {day(1)} || exit 0; while [ ! -e {gate} ]; do sleep 0.05; done'
        self.apply(jobs(job('j', '0 0 * * *', shell, 'each', 'period: day', 'biz_date: -1d', 'overlap: forbid')))
        node = self.node()
        self.ok('run', 'j', '--date', day(1))
        eventually('the run', lambda: self.status_of('j', day(1)) == 'RUNNING')
        self.ok('backfill', 'j', '--from', day(6), '--to', day(2))
        eventually('a refused start', lambda: 'start_refused' in node.text())
        self.assertEqual({self.status_of('j', day(n)) for n in range(2, 7)}, {'PLANNED'})
        open(gate, 'w').close()
        eventually('all of it', lambda: len(self.done('j')) == 6)


@for_each_store
class FortyDates(StoreCase):

    def test_each_runs_once_though_its_node_is_killed_five_times(self):
        ledger = os.path.join(self.folder, 'ledger')
        self.apply(jobs(job('j', '0 0 * * *', f'echo $MATINS_BIZ_DATE >> {ledger}', 'each', 'period: day', 'biz_date: -1d',
                            f'backfill: {{ start: {day(40)}, max_periods: 60 }}', 'lock: { ttl: 3s }')))

        def finished():
            return [row['period'] for row in self.rows('j').values() if row['status'] == 'DONE']

        for kills in range(5):
            node = self.node()
            eventually('some dates', lambda: len(finished()) >= 7 * kills + 1)
            node.kill()
        self.node()
        eventually('all dates', lambda: len(finished()) >= 40)
        self.assertEqual(sorted(finished()), [day(n) for n in range(40, 0, -1)])
        self.assertEqual(self.json('watermark', 'j')['high_water_mark'], day(1))
        succeeded = [run['period'] for run in self.json('runs', 'j', '-n', '1000') if run['status'] == 'DONE']
        self.assertEqual(len(succeeded), len(set(succeeded)))
        with open(ledger) as f:
            order = list(dict.fromkeys(f.read().split()))
        self.assertEqual(order, sorted(order))


if __name__ == '__main__':
    main()
