"""`matins preflight` on each store: what is wrong is told with its figure, and nothing unmeasured passes."""
import datetime
import json
import os
import signal
import time

from support import MATINS, Redis, StoreCase, eventually, for_each_store, main


def day(ago):
    return (datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=ago)).isoformat()


class Preflight(StoreCase):
    def jobs(self, more=''):
        return f'''
jobs:
  - name: recon
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    done_by: "09:00"
    backfill: {{ start: {day(5)}, max_periods: 10, source_window: 90d }}
    dir: {self.folder}
    env: {{ PROGRAM: {MATINS} }}
    run: {{ shell: "$PROGRAM result '{{\\"rows\\": 3}}'" }}
    check: {{ command: [/bin/sh, -c, "echo differences=3"] }}
    {more}
'''

    def preflight(self, code, *args):
        done = self.run_matins('preflight', '-o', 'json', *args)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        answers = {(check['job'], check['question']): check for check in report['checks']}
        self.assertEqual(len(report['checks']), report['passed'] + report['warned'] + report['failed'])
        for check in report['checks']:
            self.assertEqual(check['mend'] == '', check['answer'] == 'pass', check)
        return {question: check['answer'] for question, check in answers.items()}, answers

    def test_an_empty_store_fails(self):
        answers, _ = self.preflight(1)
        self.assertEqual(answers['', 'jobs'], 'fail')
        self.assertEqual(answers['', 'nodes'], 'fail')
        self.assertEqual(answers['', 'clocks'], 'warn')
        self.assertEqual(answers['', 'audit of all jobs'], 'fail')
        self.assertEqual(answers['', 'lock (store)'], 'pass')

    def test_what_was_measured_passes_and_what_was_not_does_not(self):
        self.apply(self.jobs())
        answers, checks = self.preflight(1, 'recon')
        self.assertEqual(answers['recon', 'back-fill drilled'], 'fail')
        self.assertEqual(answers['recon', 'time-out'], 'warn')
        self.assertIn('never measured', checks['recon', 'time-out']['measured'])
        self.assertIn('fences', checks['', 'lock (store)']['measured'])
        self.refused(3, 'preflight', 'nobody', says=['nobody'])

        node, other = self.node(), self.node()
        eventually('all days', lambda: [r['status'] for r in self.rows('recon').values()] == ['DONE'] * 5)
        self.ok('drill', 'recon')
        eventually('both audits', lambda: {row[0] for row in self.sql(
            'SELECT beat FROM job_audit WHERE finished_at IS NOT NULL')} >= {'store', 'jobs 0 9 * * * UTC'})
        answers, checks = self.preflight(0)
        settings = answers.pop(('', 'store'))
        self.assertIn(settings, ('pass', 'warn'), 'a test server may trade safety for speed')
        self.assertEqual(set(answers.values()), {'pass'}, checks)
        self.assertNotIn(('matins-lock', 'misfire'), answers, 'the lock that was tried is no job of theirs')
        self.assertIn('preflight', self.ok('preflight', '--help'))
        self.assertIn('0 failed', self.ok('preflight'))
        self.assertEqual(self.run_matins('preflight', '--strict').returncode, 1 if settings == 'warn' else 0)
        for one in (node, other):
            self.assertEqual(one.stop(), 0)

    def test_a_node_that_stood_still_is_told_against_the_lease(self):
        gate = os.path.join(self.folder, 'gate')
        self.apply(self.jobs('lock: { ttl: 4s }').replace('$PROGRAM result', f'while [ ! -e {gate} ]; do sleep 0.05; done; $PROGRAM result'))
        node = self.node()
        eventually('a run', lambda: 'RUNNING' in [r['status'] for r in self.rows('recon').values()])
        node.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 6
        eventually('six seconds to pass', lambda: time.monotonic() > until)
        node.process.send_signal(signal.SIGCONT)
        eventually('it to be kept', lambda: self.sql("SELECT detail FROM job_event WHERE kind = 'stood_still'"))
        open(gate, 'w').close()
        eventually('all days', lambda: [r['status'] for r in self.rows('recon').values()] == ['DONE'] * 5)
        _, checks = self.preflight(1, 'recon')
        self.assertEqual(checks['recon', 'lease']['answer'], 'warn')
        self.assertIn('stood still for ', checks['recon', 'lease']['measured'])
        self.assertIn('a lock.ttl of ', checks['recon', 'lease']['mend'])
        self.assertEqual(node.stop(), 0)

    def test_redis_is_tried_where_it_is_asked_for(self):
        self.apply(self.jobs('lock: { provider: redis }'))
        answers, checks = self.preflight(1)
        self.assertEqual(answers['', 'lock (redis)'], 'fail')
        self.assertIn('not measured', checks['', 'lock (redis)']['measured'])
        redis = Redis(self)
        answers, checks = self.preflight(1, '--redis', redis.url)
        self.assertEqual(answers['', 'lock (redis)'], 'pass', checks['', 'lock (redis)'])
        # What does not answer was not measured.
        redis.kill()
        answers, checks = self.preflight(1, '--redis', redis.url)
        self.assertEqual(answers['', 'lock (redis)'], 'fail')
        self.assertIn('not measured', checks['', 'lock (redis)']['measured'])


for_each_store(Preflight, kinds=('sqlite', 'postgresql', 'mariadb'))

if __name__ == '__main__':
    main()
