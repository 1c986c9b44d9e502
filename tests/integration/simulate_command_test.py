"""`matins simulate` and `matins diff`: files in, and what would have been out; no store but for `--from-history`."""
import json
import os
import subprocess
import tempfile
import unittest

from support import MATINS, PATIENCE, StoreCase, eventually

JOBS = '''
jobs:
  - name: recon
    schedule: "0 1 * * *"
    period: day
    biz_date: -1d
    misfire: each
    run: { command: [/bin/true] }
  - name: report
    schedule: "0 6 * * *"
    period: day
    biz_date: -1d
    misfire: latest
    run: { command: [/bin/true] }
'''


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='mt')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.jobs = self.file('jobs.yaml', JOBS)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def matins(self, *args, code=0):
        env = {name: value for name, value in os.environ.items() if name != 'MATINS_STORE'}
        done = subprocess.run([MATINS, *args], capture_output=True, text=True, timeout=PATIENCE * 2, env=env, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code in (0, 1) else done.stderr

    def simulate(self, *args):
        return json.loads(self.matins('simulate', self.jobs, '--from', '2026-03-01', '--to', '2026-03-15', *args, '-o', 'json'))


class Simulate(Files):
    def of(self, report):
        return {job['job']: job for job in report['jobs']}

    def test_a_fortnight_with_an_outage(self):
        quiet = self.simulate()
        self.assertEqual([(job['job'], job['due'], job['done']) for job in quiet['jobs']], [('recon', 14, 14), ('report', 14, 14)])
        self.assertEqual(quiet['piles'], [])
        report = self.simulate('--outage', '2026-03-05/2026-03-07T12:00:00Z', '--otherwise', '10m')
        self.assertEqual(self.of(report)['recon']['backfilled'], 3)
        self.assertEqual(self.of(report)['report']['skipped'], {'superseded': 2})
        self.assertEqual([pile['waiting'] for pile in report['piles'] if pile['job'] == 'recon'], [3])
        same = self.simulate('--outage', '2026-03-05/60h', '--otherwise', '10m')
        self.assertEqual(report, same)
        told = self.matins('simulate', self.jobs, '--from', '2026-03-01', '--to', '2026-03-15', '--outage', '2026-03-05/60h')
        self.assertIn('DONE, back-filled, late', told)
        self.assertIn('SKIPPED(superseded)', told)
        self.assertIn('PILES UP', told)
        self.assertEqual(told.count('recon'), 3 + 1 + 1, 'what is on time is listed with --all alone')

    def test_durations(self):
        durations = self.file('durations', '# measured\nrecon: 10m, 3h\n')
        periods = [p for p in self.simulate('--durations', durations)['periods'] if p['job'] == 'recon']
        self.assertEqual((periods[0]['status'], periods[0]['finished']), ('DONE', '2026-03-01T01:10:00Z'))
        second = periods[1]
        self.assertEqual((second['status'], second['attempts'], second['late']), ('DONE', 2, True), 'timed out, then tried again')
        self.assertEqual(second['finished'], '2026-03-03T01:10:00Z', 'at the next fire')
        bad = self.file('bad', 'recon 10m\n')
        said = self.matins('simulate', self.jobs, '--from', '2026-03-01', '--to', '2026-03-02', '--durations', bad, code=2)
        self.assertIn('line 1', said)
        other = self.file('other', 'nobody: 10m\n')
        said = self.matins('simulate', self.jobs, '--from', '2026-03-01', '--to', '2026-03-02', '--durations', other, code=2)
        self.assertIn("no job 'nobody'", said)

    def test_what_makes_no_sense_is_refused(self):
        for args, says in ((('--from', '2026-03-02', '--to', '2026-03-01'), 'not after --from'),
                           (('--from', 'soon', '--to', '2026-03-01'), 'neither date nor instant'),
                           (('--from', '2026-03-01', '--to', '2026-03-05', '--outage', '2026-03-02'), 'START/END'),
                           (('--from', '2026-03-01', '--to', '2026-03-05', '--outage', '2026-03-03/2026-03-02'), 'not after its start')):
            self.assertIn(says, self.matins('simulate', self.jobs, *args, code=2))


class History(StoreCase):
    kind = 'sqlite'

    def test_durations_of_the_store(self):
        self.apply('''
jobs:
  - name: recon
    schedule: "@every 1s"
    misfire: skip
    run: { command: [sleep, "0.3"] }
''')
        node = self.node()
        eventually('a run', lambda: any(run['status'] == 'DONE' for run in self.json('runs', 'recon')))
        self.assertEqual(node.stop(), 0)
        path = os.path.join(self.folder, 'nightly.yaml')
        with open(path, 'w') as f:
            f.write(JOBS)
        report = self.json('simulate', path, '--from', '2026-03-01', '--to', '2026-03-03', '--from-history')
        took = {p['job']: p['finished'] for p in report['periods'] if p['biz_date'] == '2026-02-28'}
        self.assertRegex(took['recon'], r'2026-03-01T01:00:0\d\.\d+Z')
        self.assertEqual(took['report'], '2026-03-01T06:00:01Z')


class Diff(Files):
    def diff(self, text, *args, code=1):
        new = self.file('new.yaml', text)
        return json.loads(self.matins('diff', self.jobs, new, '--from', '2026-03-01', '-o', 'json', *args, code=code))

    def test_fires_that_differ(self):
        self.assertEqual(self.diff(JOBS, code=0), [])
        moved = self.diff(JOBS.replace('0 1 * * *', '30 1 * * *'), '--to', '2026-03-03')
        self.assertEqual([(job['job'], job['what']) for job in moved], [('recon', 'changed')])
        self.assertEqual([(f['at'], f['added']) for f in moved[0]['fires']], [
            ('2026-03-01T01:00:00Z', False), ('2026-03-01T01:30:00Z', True), ('2026-03-02T01:00:00Z', False), ('2026-03-02T01:30:00Z', True)])
        weekdays = self.diff(JOBS.replace('0 1 * * *', '0 1 * * 1-5'), '--to', '2026-03-09')
        self.assertEqual([f['at'][:10] for f in weekdays[0]['fires']], ['2026-03-01', '2026-03-07', '2026-03-08'])
        self.assertFalse(any(f['added'] for f in weekdays[0]['fires']))
        dates = self.diff(JOBS.replace('biz_date: -1d', 'biz_date: -2d', 1), '--to', '2026-03-02')
        self.assertEqual([(f['added'], f['period']) for f in dates[0]['fires']], [(False, '2026-02-28'), (True, '2026-02-27')])

    def test_jobs_that_came_went_or_fire_as_before(self):
        gone = self.diff(JOBS.replace('name: report', 'name: summary'), '--to', '2026-03-02')
        self.assertEqual([(job['job'], job['what'], len(job['fires'])) for job in gone], [('report', 'removed', 1), ('summary', 'added', 1)])
        other = self.diff(JOBS.replace('/bin/true', '/bin/false', 1), '--to', '2026-04-01', '-n', '50', code=0)
        self.assertEqual([(job['job'], job['fires']) for job in other], [('recon', [])])
        self.assertIn('run', ' '.join(other[0]['differences']))
        told = self.matins('diff', self.jobs, self.file('n.yaml', JOBS.replace('0 1 * * *', '0 2 * * *')), '-n', '2', code=1)
        self.assertIn('recon: changed', told)
        self.assertIn('and so on', told)


if __name__ == '__main__':
    unittest.main()
