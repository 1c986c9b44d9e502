"""`matins drill` on each store: what passes, what fails, and what is put back however it ends."""
import datetime
import json
import os
import signal
import subprocess

from support import MATINS, PATIENCE, StoreCase, eventually, for_each_store, main

DAYS = 5

# Writes the day's result anew each time, and says how much it did.
GOOD = '''echo 3 > out/$MATINS_BIZ_DATE; "$PROGRAM" result '{"rows": 3}' '''
# The guard that many jobs have: what is there already is left alone. So it makes nothing good.
NOTHING_TWICE = '''[ -e out/$MATINS_BIZ_DATE ] || { echo 3 > out/$MATINS_BIZ_DATE; "$PROGRAM" result '{"rows": 3}'; }'''
# Books once more what is booked.
DOUBLES = '''echo 3 >> out/$MATINS_BIZ_DATE; "$PROGRAM" result '{"rows": 3}' '''
# As GOOD, once the file `go` is there.
WAITS = 'echo > began; while [ ! -e go ]; do sleep 0.05; done; ' + GOOD


def day(ago):
    return (datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=ago)).isoformat()


class Drills(StoreCase):
    def setUp(self):
        super().setUp()
        os.mkdir(os.path.join(self.folder, 'out'))

    def jobs(self, body, more='', run=None):
        return f'''
jobs:
  - name: recon
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    backfill: {{ start: {day(DAYS)}, max_periods: 30 }}
    dir: {self.folder}
    lock: {{ ttl: 10s }}
    env: {{ PROGRAM: {MATINS} }}
    run: {run or f'{{ shell: {json.dumps(body)} }}'}
    check: {{ command: [/bin/sh, -c, "awk '{{ n += $1 }} END {{ print \\"differences=\\" n }}' out/$MATINS_BIZ_DATE"] }}
    {more}
'''

    def days(self):
        return {row[0]: row[1] for row in self.sql('SELECT period, status FROM job_watermark ORDER BY period')}

    def served(self, body, more=''):
        """A node that has done all days."""
        self.write('go', '')
        self.apply(self.jobs(body, more))
        node = self.node()
        eventually('all days', lambda: list(self.days().values()) == ['DONE'] * DAYS)
        return node

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w') as f:
            f.write(text)

    def drill(self, *args, code):
        done = self.run_matins('drill', 'recon', '-o', 'json', *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def before(self):
        return self.sql('SELECT period, status, finished_at, fence FROM job_watermark ORDER BY period')

    def test_an_idempotent_job_passes_with_a_daemon_and_without(self):
        node = self.served(GOOD)
        report = self.drill('--days', '3', code=0)
        self.assertTrue(report['passed'])
        self.assertEqual([p['period'] for p in report['periods']], sorted(self.days())[-3:])
        for period in report['periods']:
            self.assertEqual(period['figures'], {'differences': 3.0})
            self.assertEqual(period['old_figures'], {'differences': 3.0})
            self.assertEqual(period['evidence'], 'result {"rows": 3}')
            self.assertGreater(int(period['run']), int(period['old_run']))
        self.assertEqual(set(self.days().values()), {'DONE'})
        self.assertEqual(node.stop(), 0)

        self.refused(4, 'drill', 'recon', says=['no living node', '--here'])
        self.assertEqual(set(self.days().values()), {'DONE'}, 'nothing was deleted')
        self.assertTrue(self.drill('--here', code=0)['passed'])
        drills = self.json('drill', '--list')
        self.assertEqual([d['result'] for d in drills], ['passed', 'passed'])
        self.assertTrue(drills[0]['report']['passed'])
        told = self.ok('drill', 'recon', '--here', '--days', '1')
        self.assertIn('passed', told)
        self.assertIn('differences=3', told)

    def test_a_body_that_does_nothing_fails(self):
        node = self.served(NOTHING_TWICE)
        report = self.drill(code=1)
        self.assertEqual([p['status'] for p in report['periods']], ['DONE'] * 3)
        for period in report['periods']:
            self.assertEqual(period['figures'], {'differences': 3.0}, 'the results are there, by the first run')
            self.assertIn('nothing says that it did any work', period['problem'])
        self.assertEqual(node.stop(), 0)

    def test_a_job_of_exec_is_filled_with_the_command_that_its_line_has(self):
        self.write('go', '')
        self.write('jobs.yaml', self.jobs('', run='{ exec: true }'))
        line = '--', '/bin/sh', '-c', GOOD
        self.ok('exec', 'recon', '-q', '--config', os.path.join(self.folder, 'jobs.yaml'), *line)
        self.assertEqual(list(self.days().values()), ['DONE'] * DAYS)
        self.refused(4, 'drill', 'recon', '--here', says=['-- COMMAND', 'nothing was deleted'])
        report = self.drill('--days', '3', *line, code=0)
        self.assertEqual([p['period'] for p in report['periods']], sorted(self.days())[-3:])
        for period in report['periods']:
            self.assertEqual(period['evidence'], 'result {"rows": 3}')
            self.assertGreater(int(period['run']), int(period['old_run']))
        report = self.drill('--days', '1', '--', '/bin/sh', '-c', NOTHING_TWICE, code=1)
        self.assertIn('nothing says that it did any work', report['periods'][0]['problem'])
        report = self.drill('--days', '2', '--', '/bin/sh', '-c', 'echo no; exit 3', code=1)
        self.assertEqual(report['put_back'], sorted(self.days())[-2:])
        self.assertEqual(set(self.days().values()), {'DONE'})
        self.apply(self.jobs(GOOD), '--take-over')
        self.refused(4, 'drill', 'recon', *line, says=['Leave the command out'])

    def test_a_job_that_books_twice_fails(self):
        node = self.served(DOUBLES)
        report = self.drill('--days', '2', code=1)
        for period in report['periods']:
            self.assertIn('figure differences is 6.0, it was 3.0', period['problem'])
        self.assertEqual(self.json('drill', '--list')[0]['result'], 'failed')
        self.assertEqual(node.stop(), 0)

    def test_what_fails_is_put_back(self):
        node = self.served(WAITS)
        self.assertEqual(node.stop(), 0)
        before = self.before()
        self.apply(self.jobs('exit 3'))
        report = self.drill('--here', code=1)
        newest = sorted(self.days())[-3:]
        self.assertEqual(report['put_back'], newest)
        self.assertIn('FAILED(exit)', report['periods'][0]['problem'])
        after = self.before()
        self.assertEqual([row[:3] for row in after], [row[:3] for row in before])
        node = self.node()
        eventually('the node to plan', lambda: self.json('job', 'show', 'recon')['gaps'] == 0)
        self.assertEqual(set(self.days().values()), {'DONE'})
        self.assertEqual(node.stop(), 0)

    def begin(self, *args):
        process = subprocess.Popen([MATINS, 'drill', 'recon', *args], env=self.env(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def first_runs(self):
        began = os.path.join(self.folder, 'began')
        eventually('the first to run', lambda: os.path.exists(began))
        os.remove(began)

    def let_the_lease_last(self):
        """Longer than half a minute: as long as a slow machine takes to look at it."""
        later = {'sqlite': 'until + 600000000', 'postgresql': "until + interval '10 minutes'", 'mariadb': 'until + interval 10 minute'}
        self.sql(f'UPDATE job_drill SET until = {later[self.kind]} WHERE finished_at IS NULL')

    def let_the_lease_end(self):
        self.sql("UPDATE job_drill SET until = started_at WHERE finished_at IS NULL")

    def test_killed_half_way_it_is_put_back_by_whoever_comes(self):
        node = self.served(WAITS)
        self.assertEqual(node.stop(), 0)
        before = self.before()
        for name in ('go', 'began'):
            os.remove(os.path.join(self.folder, name))
        for restores in ('--restore', 'serve', 'drill'):
            drill = self.begin('--here')
            self.first_runs()
            drill.kill()
            drill.communicate()
            self.let_the_lease_last()
            eventually('its guard to give the lease back', lambda: 'RUNNING' not in self.days().values())
            self.assertLess(list(self.days().values()).count('DONE'), DAYS)
            self.refused(4, 'drill', 'recon', '--here', says=['is not over'])
            self.run_matins('drill', '--restore')
            self.assertLess(list(self.days().values()).count('DONE'), DAYS, 'its lease still lives')
            self.let_the_lease_end()
            if restores == 'serve':
                node = self.node()
                eventually('the node to put it back', lambda: set(self.days().values()) == {'DONE'})
                node.told('drill_restored')
                self.assertEqual(node.stop(), 0)
            elif restores == 'drill':
                self.write('go', '')
                self.assertTrue(self.drill('--here', code=0)['passed'])
            else:
                self.assertIn('put back', self.ok('drill', '--restore'))
            self.assertEqual(list(self.days().values()), ['DONE'] * DAYS)
            if restores != 'drill':
                self.assertEqual([row[:3] for row in self.before()], [row[:3] for row in before])
        results = [d['result'] for d in self.json('drill', '--list')]
        self.assertEqual(results, ['passed', 'abandoned', 'abandoned', 'abandoned'])

    def test_killed_at_the_instants_around_its_commit(self):
        node = self.served(GOOD)
        self.assertEqual(node.stop(), 0)
        before = self.before()
        point = 'sqlite.begin_drill' if self.kind == 'sqlite' else 'drill'
        for window, gone in (('before_commit', 0), ('after_commit', 3)):
            done = subprocess.run([MATINS, 'drill', 'recon', '--here'], capture_output=True, text=True, timeout=PATIENCE,
                                  env={**self.env(), 'MATINS_FAULTS': f'{point}.{window}=kill@1'}, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stdout + done.stderr)
            self.assertEqual(len(self.days()), DAYS - gone)
            self.let_the_lease_end()
            self.ok('drill', 'recon', '--restore')
            self.assertEqual([row[:3] for row in self.before()], [row[:3] for row in before])
        self.assertEqual([d['result'] for d in self.json('drill', '--list')], ['abandoned'])

    def test_a_signal_ends_it_in_order(self):
        node = self.served(WAITS)
        self.assertEqual(node.stop(), 0)
        before = self.before()
        for name in ('go', 'began'):
            os.remove(os.path.join(self.folder, name))
        drill = self.begin('--here')
        self.first_runs()
        drill.send_signal(signal.SIGINT)
        out, err = drill.communicate(timeout=PATIENCE)
        self.assertEqual(drill.returncode, 1, out + err)
        self.assertIn('asked to end', out)
        self.assertEqual([row[:3] for row in self.before()], [row[:3] for row in before])

    def test_what_cannot_be_drilled_is_refused_untouched(self):
        node = self.served(GOOD)
        before = self.before()
        self.refused(4, 'drill', 'recon', '--days', '9', says=['5 DONE period(s)'])
        self.refused(3, 'drill', 'nobody', says=['nobody'])
        self.refused(2, 'drill', says=['JOB'])
        self.apply(self.jobs(GOOD).replace('misfire: each', 'misfire: latest').replace('check:', '#'))
        self.refused(4, 'drill', 'recon', says=['misfire: latest'])
        self.apply(self.jobs(GOOD).replace('check:', '#'))
        self.refused(4, 'drill', 'recon', says=['has no check'])
        self.apply(self.jobs(GOOD), '--force')
        self.ok('job', 'suspend', 'recon', '--reason', 'a pause')
        self.refused(4, 'drill', 'recon', says=['suspended'])
        self.assertEqual(self.before(), before)
        self.assertEqual(self.json('drill', '--list'), [])
        self.assertEqual(node.stop(), 0)


    def test_what_planning_would_leave_out_is_refused(self):
        self.apply(self.jobs(GOOD).replace('max_periods: 30', 'max_periods: 2'))
        node = self.node()
        eventually('the two that the cap lets in', lambda: list(self.days().values()).count('DONE') == 2)
        self.ok('backfill', 'recon', '--from', day(DAYS), '--to', day(1), '--reason', 'all of them')
        eventually('all days', lambda: list(self.days().values()) == ['DONE'] * DAYS)
        self.refused(4, 'drill', 'recon', says=['SKIPPED(cap)'])
        self.assertEqual(list(self.days().values()), ['DONE'] * DAYS)
        self.assertTrue(self.drill('--days', '2', code=0)['passed'])
        self.assertEqual(node.stop(), 0)


for_each_store(Drills, kinds=('sqlite', 'postgresql', 'mariadb'))

if __name__ == '__main__':
    main()
