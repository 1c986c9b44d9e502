"""`why` of the past, `why --twice` and `timeline`, as a person asks them."""
import functools
import time

from cases_run_test import Cases, day, job, jobs
from support import eventually, for_each_store, main

each_store = functools.partial(for_each_store, kinds=('sqlite', 'postgresql', 'mariadb'))
PARALLEL = ('overlap: allow', 'backfill: { order: none }')


@each_store
class Why(Cases):

    def why(self, name, period, *more):
        return self.json('why', name, period, *more)

    def truths(self, name, period):
        return '\n'.join(self.why(name, period)['truths'])

    def test_the_past_is_told_of_a_failed_period_in_the_way(self):
        self.apply(jobs(job('j', f'test $MATINS_BIZ_DATE != {day(2)} || exit 3', f'backfill: {{ start: {day(2)} }}')))
        self.node()
        eventually('the failure', lambda: self.status_of('j', day(2)) == 'FAILED')
        begun = time.monotonic()
        self.assertIn(f'blocked by {day(2)}, which is FAILED', self.truths('j', day(1)))
        eventually('a wait to speak of', lambda: time.monotonic() - begun > 3)
        self.ok('skip', 'j', day(2), '--reason', 'no data')
        eventually('the later one', lambda: self.status_of('j', day(1)) == 'DONE')
        truths = self.truths('j', day(1))
        self.assertIn('it waited', truths)
        self.assertIn(f'then: blocked in strict order by {day(2)}, which had FAILED(exit) at', truths)
        self.assertIn('until it was SKIPPED at', truths)

    def test_limits_of_tenants_are_told_now_and_then_with_the_runs_that_filled_them(self):
        key = 'limits: { key: "bank-{{tenant}}" }'
        self.apply(jobs(job('a', self.until('gate'), 'tenant: shop', key, *PARALLEL), job('b', 'true', 'tenant: shop', key, *PARALLEL)))
        self.ok('limits', 'set', 'tenant/shop', '1')
        self.ok('limits', 'set', 'key/bank-shop', '1')
        self.node()
        self.ok('run', 'a', '--date', day(1))
        run = self.started('a', day(1))['run']
        self.ok('run', 'b', '--date', day(1))
        begun = time.monotonic()
        eventually('the refusal', lambda: 'limits.tenant shop 1 is full' in self.truths('b', day(1)))
        eventually('a wait to speak of', lambda: time.monotonic() - begun > 3)
        self.open('gate')
        eventually('both', lambda: self.status_of('b', day(1)) == 'DONE')
        truths = self.truths('b', day(1))
        self.assertIn('then: limits.tenant shop 1 was full at', truths)
        self.assertIn('then: limits.key bank-shop 1 was full at', truths)
        self.assertIn(f'a {day(1)} (run {run})', truths)

    def test_the_past_is_told_of_who_held_the_lock_and_of_no_node(self):
        self.apply(jobs(job('j', f'test $MATINS_BIZ_DATE != {day(2)} || {self.until("gate")}', 'backfill: { order: none, max_parallel: unlimited }')))
        self.ok('run', 'j', '--date', day(2))
        eventually('a wait to speak of', lambda begun=time.monotonic(): time.monotonic() - begun > 3)
        self.node()
        run = self.started('j', day(2))['run']
        self.ok('run', 'j', '--date', day(1))
        begun = time.monotonic()
        eventually('a wait to speak of', lambda: time.monotonic() - begun > 3)
        self.open('gate')
        eventually('both', lambda: self.status_of('j', day(1)) == 'DONE')
        self.assertIn(f"then: the job's lock was held by {day(2)}, run {run} on", self.truths('j', day(1)))
        self.assertIn('then: no node was alive from', self.truths('j', day(2)))

    def test_a_paused_backfill_is_what_stands_in_the_way(self):
        self.apply(jobs(job('j', 'true', *PARALLEL)))
        number = str(self.json('backfill', 'j', '--from', day(2), '--to', day(1))['backfill'])
        self.ok('backfills', 'pause', number, '--reason', 'month end')
        self.assertIn(f'back-fill {number} was paused by', self.truths('j', day(1)))

    def test_twice_tells_one_attempt_two_generations_and_a_lost_run_apart(self):
        self.apply('journal: full\n' + jobs(job('j', f'echo $MATINS_FENCE >> {self.path("log")}; test $MATINS_BIZ_DATE != {day(2)} || {self.until("gate")}',
                                                'lock: { ttl: 10s }', *PARALLEL)))
        node = self.node()
        self.ok('run', 'j', '--date', day(1), '--wait')
        single = self.why('j', day(1), '--twice')
        self.assertEqual((single['verdict'], single['missing']), ('single', ''))
        self.assertEqual({guard['state'] for guard in single['guards']}, {'held'})
        self.assertIn('not doubled: 1 attempt(s), one accepted result', self.ok('why', 'j', day(1), '--twice'))
        self.assertEqual(single['attempts'][0]['key'], f'j/{day(1)}')
        self.assertIsNone(single['attempts'][0]['lease_until'])  # it has ended
        self.ok('run', 'j', '--date', day(1), '--again', '--reason', 'a wrong rate', '--wait')
        again = self.why('j', day(1), '--twice')
        self.assertEqual((again['verdict'], again['missing'], [one['generation'] for one in again['attempts']]), ('again', 'key', [1, 2]))
        self.assertIn('a wrong rate', again['says'])
        # A run that wrote, and whose node died before its end: nobody can take that back.
        self.ok('run', 'j', '--date', day(2))
        first = self.started('j', day(2))['run']
        eventually('its effect', lambda: first in self.lines('log'))
        node.kill()
        self.node()
        eventually('the second owner', lambda: len(self.lines('log')) == 4)
        self.open('gate')
        eventually('the end', lambda: self.status_of('j', day(2)) == 'DONE')
        lost = self.why('j', day(2), '--twice')
        self.assertEqual((lost['verdict'], lost['missing']), ('possible', 'commit'))
        self.assertEqual([one['status'] for one in lost['attempts']], ['LOST', 'DONE'])
        state = {guard['guard']: guard['state'] for guard in lost['guards']}
        self.assertEqual(state, {'key': 'not known', 'lease': 'held', 'fence': 'held', 'commit': 'missing'})
        self.assertIn(f'run {first} LOST', self.ok('why', 'j', day(2), '--twice'))

    def test_two_results_of_one_generation_are_an_error(self):
        self.apply(jobs(job('j', 'true', *PARALLEL)))
        self.node()
        self.ok('run', 'j', '--date', day(1), '--wait')
        run = self.row('j', day(1))['run']
        # As no store of ours would write it.
        columns = 'job_name, period, biz_date, generation, attempt, attempts_total, node, status, claimed_at, finished_at'
        self.sql(f'INSERT INTO job_run (fence, {columns}) SELECT fence + 1, {columns} FROM job_run WHERE fence = {run}')
        told = self.run_matins('why', 'j', day(1), '--twice')
        self.assertEqual(told.returncode, 1, told.stdout)
        self.assertIn('DOUBLED: generation 1 has 2 accepted results', told.stdout)

    def test_a_timeline_draws_each_attempt_within_eighty_columns(self):
        self.apply(jobs(job('j', f'test -e {self.path("mended")}', 'retry: { attempts: 2, backoff: 1s..1s }', *PARALLEL)))
        self.node()
        self.ok('run', 'j', '--date', day(1))
        eventually('the first attempt', lambda: self.runs('j'))
        self.open('mended')
        eventually('the end', lambda: self.status_of('j', day(1)) == 'DONE')
        drawn = self.ok('timeline', 'j', '--date', day(1))
        self.assertLessEqual(max(map(len, drawn.splitlines())), 80, drawn)
        self.assertIn(f'j {day(1)}  DONE', drawn)
        bars = [line for line in drawn.splitlines() if line.startswith(' |')]
        told = self.json('timeline', 'j', '--date', day(1))[0]['attempts']
        self.assertEqual(len(bars), len(told))
        for bar, attempt in zip(bars, told):
            letters = {'planned': 'P', 'dispatched': 'D', 'claimed': 'C', 'started': 'S', 'checkpointed': 'K', 'finished': 'F'}
            self.assertEqual({mark for mark in bar if mark.isalpha()}, {letters[name] for name, at in attempt['phases'].items() if at})
        self.assertEqual(told[-1]['status'], 'DONE')
        self.assertIn('0 attempts', self.ok('timeline', 'j', '--date', day(9)))
        self.refused(2, 'timeline', 'j')
        self.refused(3, 'timeline', 'nobody', '--date', day(1))


if __name__ == '__main__':
    main()
