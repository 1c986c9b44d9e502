"""Controlled recovery as a person does it: back-fills with their terms, paused and cancelled; new attempts; held periods."""
import functools
import json
import os
import signal
from datetime import datetime, timedelta, timezone

from cases_run_test import Cases, day, job, jobs
from support import MATINS, Calls, eventually, for_each_store, main

each_store = functools.partial(for_each_store, kinds=('sqlite', 'postgresql', 'mariadb'))
PARALLEL = ('overlap: allow', 'backfill: { order: none }')


def minutes(ahead):
    return (datetime.now(timezone.utc) + timedelta(minutes=ahead)).strftime('%H:%M')


class Recovery(Calls, Cases):

    def done(self, name):
        return [run['period'] for run in reversed(self.runs(name)) if run['status'] == 'DONE']

    def backfill(self, name, first, last, *more):
        return self.json('backfill', name, '--from', day(first), '--to', day(last), *more)

    def shown(self, number):
        return self.json('backfills', 'show', str(number))

    def events(self, kind):
        return self.sql(f"SELECT who, why FROM job_event WHERE kind = '{kind}' ORDER BY id")


@each_store
class Backfills(Recovery):

    def test_two_nodes_run_as_many_at_a_time_as_were_asked_for(self):
        shell = f'echo + >> {self.path("log")}; sleep 0.2; echo - >> {self.path("log")}'
        self.apply(jobs(job('j', shell, *PARALLEL)))
        opened = self.backfill('j', 9, 1, '--max-parallel', '3', '--reason', 'the feed was late')
        self.assertEqual((opened['at_a_time'], opened['why_at_a_time']), (3, '--max-parallel'))
        self.node()
        self.node()
        eventually('its end', lambda: self.shown(opened['backfill'])['state'] == 'ended')
        alive = most = 0
        for line in self.lines('log'):
            alive += 1 if line == '+' else -1
            most = max(most, alive)
        self.assertEqual((alive, most <= 3, most > 1), (0, True, True), self.lines('log'))
        self.assertEqual(sorted(self.done('j')), [day(n) for n in range(9, 0, -1)])
        shown = self.shown(opened['backfill'])
        self.assertEqual((shown['done'], shown['why']), (9, 'the feed was late'))
        self.assertEqual(self.json('backfills'), [])
        self.assertEqual([one['backfill'] for one in self.json('backfills', '--all')], [opened['backfill']])

    def test_its_window_holds_for_nodes_and_for_calls(self):
        self.apply(jobs(job('j', 'true', *PARALLEL)))
        opens = minutes(60)
        shut = f'{opens}-{minutes(90)}'
        dry = self.backfill('j', 3, 1, '--window', shut, '--dry-run')
        self.assertEqual((dry['run'], dry['backfill']), ([day(3), day(2), day(1)], None))
        self.assertIn(opens, dry['opens'])
        self.assertEqual(self.rows('j'), {})
        opened = self.backfill('j', 3, 2, '--window', shut)
        node = self.node()
        eventually('a refused start', lambda: 'start_refused' in node.text() and shut in node.text())
        self.ok('run', 'j', '--date', day(1), '--wait')  # which is not of it
        self.assertEqual({self.status_of('j', day(n)) for n in (2, 3)}, {'PLANNED'})
        self.ok('backfills', 'cancel', str(opened['backfill']), '--reason', 'asked for in the wrong window')
        row = self.row('j', day(3))
        self.assertEqual(row['status'], 'SKIPPED')
        self.assertIn('asked for in the wrong window', row['reason'])
        again = self.backfill('j', 3, 2, '--window', f'{minutes(-60)}-{minutes(60)}', '--reprocess', 'missing')
        self.assertEqual(again['reopen'], [day(3), day(2)])
        eventually('both', lambda: self.done('j')[1:] and len(self.done('j')) == 3)

    def test_calls_of_exec_keep_to_it_and_run_what_is_owed_besides(self):
        path = self.path('exec.yaml')
        with open(path, 'w') as f:
            f.write(f'jobs:\n  - {{ name: e, schedule: "0 0 * * *", period: day, biz_date: -1d, misfire: each, overlap: allow,\n'
                    f'      backfill: {{ start: {day(1)}, order: none }}, run: {{ exec: true }} }}\n')
        self.ok('job', 'apply', path)
        shut = self.backfill('e', 4, 2, '--window', f'{minutes(60)}-{minutes(90)}')['backfill']

        def call():
            done = self.run_matins('exec', 'e', '--', 'sh', '-c', f'echo $MATINS_BIZ_DATE >> {self.path("log")}')
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr
        self.assertIn(f'e {day(4)} waits: back-fill {shut}', call())
        self.assertEqual(self.lines('log'), [day(1)])
        self.ok('backfills', 'cancel', str(shut), '--reason', 'r')
        paused = str(self.backfill('e', 4, 2)['backfill'])
        self.ok('backfills', 'pause', paused, '--reason', 'not now')
        self.assertIn('paused by', call())
        self.assertEqual(self.lines('log'), [day(1)])
        self.ok('backfills', 'resume', paused, '--reason', 'now')
        call()
        self.assertEqual(self.lines('log'), [day(n) for n in (1, 4, 3, 2)])

    def test_it_is_paused_resumed_and_stops_at_its_first_failure(self):
        # Without an order any of the three may come first after the first: the third to run fails.
        shell = (f'echo $MATINS_BIZ_DATE >> {self.path("log")}; test $(wc -l < {self.path("log")}) != 3 || exit 3; '
                 f'test $MATINS_BIZ_DATE != {day(5)} || {self.until("gate")}')
        self.apply(jobs(job('j', shell, 'overlap: allow', 'backfill: { order: none, max_parallel: 1 }')))
        number = str(self.backfill('j', 5, 2, '--max-parallel', '1')['backfill'])
        self.node()
        self.started('j', day(5))
        self.refused(4, 'backfills', 'resume', number, '--reason', 'r', says=['is active already'])
        self.ok('backfills', 'pause', number, '--reason', 'month end')
        self.open('gate')
        eventually('what ran', lambda: self.status_of('j', day(5)) == 'DONE')
        self.assertEqual(self.json('backfills')[0]['state'], 'paused')
        self.assertEqual({self.status_of('j', day(n)) for n in (4, 3, 2)}, {'PLANNED'})
        self.ok('backfills', 'resume', number, '--reason', 'over')
        eventually('the stop', lambda: self.shown(number)['state'] == 'stopped')
        first, second, failed = self.lines('log')
        other, = {day(n) for n in (4, 3, 2)} - {second, failed}
        self.assertEqual([self.status_of('j', each) for each in (first, second, failed, other)],
                         ['DONE', 'DONE', 'FAILED', 'PLANNED'])
        self.ok('skip', 'j', failed, '--reason', 'no data that day')
        eventually('the rest', lambda: self.shown(number)['state'] == 'ended')
        self.assertEqual(self.lines('log'), [first, second, failed, other])
        self.assertEqual([why for who, why in self.events('backfill_pause') + self.events('backfill_resume')], ['month end', 'over'])
        self.refused(4, 'backfills', 'pause', number, '--reason', 'r', says=['has ended'])
        self.refused(3, 'backfills', 'show', '77')

    def test_reprocess_takes_what_it_says(self):
        self.apply(jobs(job('j', f'test $MATINS_BIZ_DATE != {day(2)}', *PARALLEL)))
        self.node()
        self.backfill('j', 3, 2)
        eventually('both ends', lambda: (self.status_of('j', day(3)), self.status_of('j', day(2))) == ('DONE', 'FAILED'))
        taken = {word: self.backfill('j', 4, 2, '--reprocess', word, '--dry-run', '--reason', 'r')['run']
                 for word in ('missing', 'failed', 'all')}
        self.assertEqual(taken, {'missing': [day(4)], 'failed': [day(4), day(2)], 'all': [day(4), day(3), day(2)]})
        self.refused(2, 'backfill', 'j', '--from', day(4), '--to', day(2), '--reprocess', 'all', says=['--reason'])
        self.assertEqual(self.backfill('j', 4, 2, '--dry-run', '--again', '--reason', 'r')['run'], taken['all'])

    def test_a_cascade_computes_again_what_comes_after_in_order(self):
        ledger = self.path('ledger')
        self.apply(jobs(job('settle', f'echo settle $MATINS_BIZ_DATE >> {ledger}', *PARALLEL),
                        job('recon', f'echo recon $MATINS_BIZ_DATE >> {ledger}', *PARALLEL, 'after: [{ job: settle }]')))
        self.node()
        for name in ('settle', 'recon'):
            self.backfill(name, 4, 1, '--max-parallel', '4')
        eventually('all', lambda: len(self.done('settle')) == len(self.done('recon')) == 4)
        os.unlink(ledger)
        self.refused(2, 'backfill', 'settle', '--from', day(3), '--to', day(3), '--cascade', '--reprocess', 'all', says=['--reason'])
        words = ('--cascade', '--reprocess', 'all', '--reason', 'a wrong rate', '--max-parallel', '4')
        dry = self.backfill('settle', 3, 3, *words, '--dry-run')
        self.assertEqual((dry['run'], dry['later']), ([day(3), day(2), day(1)], [day(2), day(1)]))
        self.assertEqual([(one['job'], one['period']) for one in dry['cascade']], [('recon', day(n)) for n in (3, 2, 1)])
        number = self.backfill('settle', 3, 3, *words)['backfill']
        eventually('its end', lambda: self.shown(number)['state'] == 'ended')
        lines = self.lines('ledger')
        for name in ('settle', 'recon'):
            self.assertEqual([line for line in lines if line.startswith(name)], [f'{name} {day(n)}' for n in (3, 2, 1)])
        for n in (3, 2, 1):
            self.assertLess(lines.index(f'settle {day(n)}'), lines.index(f'recon {day(n)}'))
        self.assertEqual({row['generation'] for row in self.shown(number)['rows']}, {2})
        self.assertEqual(len(self.done('settle')), 7)
        self.assertEqual(self.row('settle', day(4))['generation'], 1)

    def test_a_cascade_waits_for_nobody_who_reads_what_it_changes(self):
        self.apply(jobs(job('j', f'test $MATINS_BIZ_DATE != {day(1)} || {self.until("gate")}', *PARALLEL)))
        self.node()
        self.backfill('j', 2, 1, '--max-parallel', '2')
        run = self.started('j', day(1))['run']
        eventually('the other', lambda: self.status_of('j', day(2)) == 'DONE')
        self.refused(4, 'backfill', 'j', '--from', day(2), '--to', day(2), '--reprocess', 'all', '--cascade', '--reason', 'r',
                     says=[run, 'matins cancel'])
        self.assertEqual(self.row('j', day(2))['generation'], 1)
        self.open('gate')

    def test_a_cascade_takes_what_overtook_it(self):
        """Between its look and its opening others start what comes after: one period is DONE by then, one still runs. A node is
        alive all the time: one that comes to none would make the jobs look anew, and the opening too."""
        self.apply(jobs(job('settle', 'true', *PARALLEL),
                        job('recon', f'test $MATINS_BIZ_DATE != {day(3)} || {self.until("gate")}', *PARALLEL, 'after: [{ job: settle }]',
                            'nodes: [later]')))
        self.node()
        self.backfill('settle', 3, 2)
        eventually('what they come after', lambda: len(self.done('settle')) == 2)
        self.backfill('recon', 3, 2, '--max-parallel', '2')
        words = ('backfill', 'settle', '--from', day(3), '--to', day(3), '--reprocess', 'all', '--cascade', '--reason', 'r', '-o', 'json')
        call = self.begin([MATINS, *words], {**self.env(), 'MATINS_FAULTS': 'backfill.before_open=stop@1'})
        eventually('it to be stopped', lambda: open(f'/proc/{call.pid}/stat').read().rsplit(')', 1)[1].split()[0] == 'T')
        self.node('--label', 'later')
        run = self.started('recon', day(3))['run']
        eventually('the other', lambda: self.status_of('recon', day(2)) == 'DONE')
        call.send_signal(signal.SIGCONT)
        answer = json.loads(self.ended(call, 0))
        self.assertEqual((answer['run'], answer['later']), ([day(3), day(2)], [day(2)]))
        self.assertEqual(answer['cascade'], [{'job': 'recon', 'period': day(2)}])
        self.assertEqual(answer['stale'], [{'job': 'recon', 'period': day(3), 'run': run}])
        eventually('what was overtaken', lambda: self.row('recon', day(2))['generation'] == 2 and self.status_of('recon', day(2)) == 'DONE')
        self.open('gate')


@each_store
class ByHand(Recovery):

    def test_retry_gives_new_attempts_now_and_keeps_the_generation(self):
        self.apply(jobs(job('j', f'test -e {self.path("mended")}', *PARALLEL)))
        self.node()
        self.ok('run', 'j', '--date', day(1))
        eventually('the failure', lambda: self.status_of('j', day(1)) == 'FAILED')
        self.refused(2, 'retry', 'j', day(1))
        self.refused(3, 'retry', 'j', day(9), '--reason', 'r')
        self.open('mended')
        self.ok('retry', 'j', day(1), '--reason', 'the disk was full')
        eventually('it', lambda: self.status_of('j', day(1)) == 'DONE')
        self.assertEqual(self.row('j', day(1))['generation'], 1)
        self.assertEqual([why for who, why in self.events('retry')], ['the disk was full'])
        self.refused(4, 'retry', 'j', day(1), '--reason', 'r', says=['has not failed', '--again'])

    def test_a_held_period_is_listed_and_released_with_a_reason(self):
        self.apply(jobs(job('pay', self.until('gate'), 'recovery: hold', 'lock: { ttl: 10s }', *PARALLEL)))
        node = self.node()
        self.ok('run', 'pay', '--date', day(1))
        self.started('pay', day(1))
        self.assertEqual(self.json('hold'), [])
        node.kill()
        self.node()
        held = eventually('the hold', lambda: self.json('hold'))
        self.assertEqual([(one['job'], one['period']) for one in held], [('pay', day(1))])
        self.refused(4, 'retry', 'pay', day(1), '--reason', 'r', says=['matins hold release pay'])
        self.ok('hold', 'release', 'pay', day(1), '--reason', 'the bank says it was not paid')
        self.open('gate')
        eventually('it', lambda: self.status_of('pay', day(1)) == 'DONE')
        self.assertEqual(self.row('pay', day(1))['generation'], 2)
        self.assertIn('the bank says it was not paid', [why for who, why in self.events('reopened')])
        self.refused(4, 'hold', 'release', 'pay', day(1), '--reason', 'r', says=['not held'])


if __name__ == '__main__':
    main()
