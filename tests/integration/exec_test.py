"""`matins exec` as a crontab line, a timer or a CronJob calls it, on each store."""
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from datetime import datetime, timedelta, timezone

from support import MATINS, PATIENCE, REDIS_SERVER, Calls, Redis, StoreCase, eventually, for_each_store, main

STORES = ('sqlite', 'postgresql', 'mariadb')
NIGHTLY = '{{ name: {name}, schedule: "{schedule}", period: {period}, misfire: each, run: {{ exec: true }}, {more} }}'


def today():
    return datetime.now(timezone.utc).date()


def instant(text):
    return datetime.fromisoformat(text.replace('Z', '+00:00'))


def in_seconds(seconds):
    """A schedule that is due once a day, so many seconds from now."""
    at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return f'{at.second} {at.minute} {at.hour} * * *'


class ExecCase(Calls, StoreCase):
    def config(self, name='recon', schedule='0 0 * * *', period='day', **more):
        """A job file; without another word it owes today's period and that of two days before."""
        more.setdefault('backfill', f'{{ start: {today() - timedelta(days=2)} }}')
        text = ', '.join(f'{key}: {value}' for key, value in more.items() if value)
        path = os.path.join(self.folder, f'{name}.yaml')
        with open(path, 'w') as f:
            f.write(f'jobs:\n  - {NIGHTLY.format(name=name, schedule=schedule, period=period, more=text)}\n')
        return '--config', path

    def exec(self, *args, run=('true',), env=None, **more):
        return subprocess.run([MATINS, 'exec', *args, '--', *run], env={**self.env(), **(env or {})}, text=True,
                              capture_output=True, timeout=PATIENCE * 2, cwd=self.folder,
                              stdin=None if 'input' in more else subprocess.DEVNULL, **more)

    def expect(self, code, *args, says=(), **more):
        done = self.exec(*args, **more)
        self.assertEqual(done.returncode, code, f'{args}: {done.stdout}{done.stderr}')
        for word in says:
            self.assertIn(word, done.stderr)
        return done

    def start(self, *args, run, env=None):
        """A call that goes on; what it runs tells that it is there by a line in the file `here`."""
        return self.begin([MATINS, 'exec', *args, '--', *run], {**self.env(), **(env or {})})

    def lines(self, name):
        try:
            with open(os.path.join(self.folder, name)) as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def here(self, count=1):
        eventually(f'{count} commands at work', lambda: len(self.lines('here')) >= count)

    def days(self, *ago):
        return [str(today() - timedelta(days=n)) for n in ago]


class Exec(ExecCase):
    def test_what_is_owed_is_run_once_in_order_with_its_dates(self):
        config = self.config()
        run = ('sh', '-c', 'echo $MATINS_BIZ_DATE $1 >> ran', 'sh', '{{period}}')
        self.expect(0, 'recon', *config, run=run, says=('owes 3 periods', 'is made good'))
        self.assertEqual(self.lines('ran'), [day for day in self.days(2, 1, 0) for _ in range(2)])
        self.expect(0, 'recon', *config, run=run, says=('is DONE', 'nothing is owed; the next fire is'))
        self.expect(0, 'recon', run=run)  # the store knows what it is
        self.assertEqual(self.expect(0, 'recon', '-q', *config, run=run).stderr, '')
        self.assertEqual(len(self.lines('ran')), 6)
        self.assertEqual({row['status'] for row in self.rows('recon').values()}, {'DONE'})

    def test_it_stops_at_the_first_failure_and_ends_with_the_commands_code(self):
        run = ('sh', '-c', 'echo $MATINS_BIZ_DATE >> ran; test "$MATINS_BIZ_DATE" != "$BAD" || exit 7')
        config = self.config()
        self.expect(7, 'recon', *config, run=run, env={'BAD': self.days(1)[0]}, says=('exit 7', 'FAILED(exit)'))
        self.assertEqual(self.lines('ran'), self.days(2, 1))
        # The same fire again is no new trigger; a person's word is.
        self.expect(101, 'recon', *config, run=run, says=('is FAILED(exit)', '--retry'))
        self.expect(0, 'recon', *config, '--retry', run=run)
        self.assertEqual(self.lines('ran'), self.days(2, 1, 1, 0))

    def test_a_planner_whose_commit_is_slow_is_waited_for(self):
        if self.kind == 'sqlite':
            self.skipTest('a writer there waits for the file itself')
        config = self.config()
        self.ok('job', 'apply', config[1])
        shell, begin = self.shell()
        other = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(other.communicate)
        other.stdin.write(begin + "begin; select name from job where name = 'recon' for update;\n")
        other.stdin.flush()
        self.assertEqual(other.stdout.readline(), 'recon\n')
        owed = self.begin([MATINS, 'exec', 'recon', *config, '--', 'true'], self.env())
        asked = self.begin([MATINS, 'run', 'recon', '--date', str(today() - timedelta(days=9))], self.env())
        time.sleep(1)  # as long as a disk may stand still
        self.assertEqual((owed.poll(), asked.poll()), (None, None))
        other.stdin.write('commit;\n')
        other.stdin.flush()
        self.ended(asked, 0)
        self.ended(owed, 0)

    def test_retries_are_made_by_the_same_call(self):
        config = self.config(backfill=f'{{ start: {today()} }}', retry='{ attempts: 3, backoff: 200ms..300ms }')
        run = ('sh', '-c', 'echo $MATINS_ATTEMPT >> ran; test $MATINS_ATTEMPT = 3')
        self.expect(0, 'recon', *config, run=run, says=('tried again in',))
        self.assertEqual(self.lines('ran'), ['1', '2', '3'])

    def test_codes_of_what_cannot_be_run_or_dies_are_a_shells(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        self.expect(127, 'recon', *config, run=('./not-there',), says=('not-there',))
        self.expect(137, 'recon', '--retry', run=('sh', '-c', 'kill -9 $$'), says=('signal 9',))
        self.expect(0, 'recon', '--retry')

    def test_its_own_codes_are_told_apart(self):
        self.expect(103, 'recon', says=('--schedule',))
        self.expect(102, 'recon', '--schedule', '* * *', '--misfire', 'each')
        self.expect(102, 'recon', '--schedule', '@daily', says=('misfire is not given',))
        self.expect(102, 'recon', '--no-such-option')
        self.expect(102, 'recon', run=(), says=('after --',))
        self.expect(0, '--help')
        self.expect(105, 'recon', '--store-wait', '0s', '--store', 'postgresql://postgres@127.0.0.1:1/x?connect_timeout=2',
                    '--schedule', '@daily', '--misfire', 'each')
        self.apply('jobs: [{ name: served, schedule: "@daily", misfire: each, run: { command: ["true"] } }]\n')
        self.expect(104, 'served', says=('is run by nodes',))

    def test_streams_and_environment_are_the_callers_and_the_output_is_kept(self):
        config = self.config(backfill=f'{{ start: {today()} }}', env='{ MINE: of-the-job }')
        run = ('sh', '-c', 'cat; echo "$HERS $MINE $MATINS_JOB ${MATINS_STORE-none}"; pwd; umask; echo wrong >&2')
        done = self.expect(0, 'recon', '-q', *config, run=run, env={'HERS': 'of-the-caller'}, input='given\n')
        self.assertEqual(done.stdout.split('\n')[:3],
                         ['given', 'of-the-caller of-the-job recon none', os.path.realpath(self.folder)])
        self.assertEqual(done.stderr, 'wrong\n')
        kept = self.ok('logs', self.rows('recon')[self.days(0)[0]]['run'])
        self.assertEqual(sorted(kept.split('\n')), sorted((done.stdout + done.stderr).split('\n')[:-1] + ['']))

    def test_much_output_comes_through_whole_and_one_that_nobody_reads_stops_nothing(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        with tempfile.TemporaryFile() as file:
            done = subprocess.run([MATINS, 'exec', 'recon', *config, '--', 'seq', '300000'], env=self.env(), stdout=file)
            self.assertEqual(done.returncode, 0)
            file.seek(0)
            self.assertEqual(file.read(), b''.join(b'%d\n' % n for n in range(1, 300001)))
        config = self.config('piped', backfill=f'{{ start: {today()} }}')
        piped = f'({MATINS} exec piped -q --config {config[1]} -- seq 300000; echo code $? >&2) | head -c 10'
        done = subprocess.run(['sh', '-c', piped], env=self.env(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.stdout, done.stderr), ('1\n2\n3\n4\n5\n', 'code 0\n'))

    def test_of_two_at_once_one_runs_and_the_other_says_who(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        first = self.start('recon', *config, run=('sh', '-c', 'echo $$ >> here; while test ! -e go; do sleep 0.05; done'))
        self.here()
        run = ('sh', '-c', 'echo twice >> here')
        self.expect(0, 'recon', *config, run=run, says=('is run by', '(run '))
        self.expect(104, 'recon', *config, '--if-held', 'fail', run=run, says=('is run by',))
        waits = self.start('recon', *config, '--if-held', 'wait', run=run)
        self.assertIn('waiting', waits.stderr.readline())
        open(os.path.join(self.folder, 'go'), 'w').close()
        self.ended(first, 0)
        self.ended(waits, 0, says=('nothing is owed',))
        self.assertEqual(len(self.lines('here')), 1)

    def test_a_definition_that_differs_is_refused_with_the_difference(self):
        says = '--schedule', '0 1 * * *', '--misfire', 'each', '--timeout', '1h'
        self.expect(0, 'recon', *says)
        self.expect(0, 'recon', *says)
        self.expect(104, 'recon', '--schedule', '0 2 * * *', '--misfire', 'each', says=(
            'schedule: "0 1 * * *" in the store, "0 2 * * *" here', 'timeout: "1h" in the store, the default here', '--apply'))
        self.assertIn('0 1 * * *', self.ok('job', 'show', 'recon'))
        self.expect(0, 'recon', '--schedule', '0 2 * * *', '--misfire', 'each', '--apply', says=('is changed',))
        # A line that was left behind on another host does not change it back.
        self.expect(104, 'recon', *says, '--apply', says=('superseded',))
        self.expect(0, 'recon', *says, '--apply', '--force')

    def test_a_fire_soon_to_come_is_waited_for(self):
        """C189: a host whose clock is ahead calls early; the run counts for the fire that was meant, not for the one before."""
        schedule = in_seconds(4)
        self.expect(0, 'recon', '--schedule', schedule, '--misfire', 'skip', run=('sh', '-c', 'echo ran >> ran'))
        self.assertEqual(self.lines('ran'), ['ran'])
        (run,) = self.json('runs', 'recon')
        self.assertGreaterEqual(instant(run['claimed_at']), instant(run['due']))
        self.assertEqual('{0.second} {0.minute} {0.hour} * * *'.format(instant(run['due'])), schedule)
        self.assertEqual(self.json('audit')['alarms'], 0)
        self.expect(0, 'later', '--schedule', in_seconds(90), '--misfire', 'skip', says=('beyond --early 1m',))

    def test_the_fire_that_comes_with_the_first_call_is_run(self):
        schedule = in_seconds(-2)
        self.expect(0, 'recon', '--schedule', schedule, '--misfire', 'skip', run=('sh', '-c', 'echo ran >> ran'))
        self.expect(0, 'recon', '--schedule', schedule, '--misfire', 'skip', run=('sh', '-c', 'echo ran >> ran'))
        self.assertEqual(self.lines('ran'), ['ran'])

    def test_what_falls_due_meanwhile_is_run_too(self):
        # Who came for it found this call at work.
        config = self.config(schedule='*/3 * * * * *', period='fire', backfill='{ max_periods: 1 }')
        self.expect(0, 'recon', *config, run=('sh', '-c', 'echo $MATINS_PERIOD >> ran; test $(wc -l < ran) != 1 || sleep 4'))
        ran = self.lines('ran')
        self.assertGreaterEqual(len(ran), 2, ran)
        self.assertEqual(ran, sorted(set(ran)))

    def test_suspended_jobs_run_nothing(self):
        config = self.config()
        self.expect(7, 'recon', *config, run=('sh', '-c', 'exit 7'))
        self.ok('job', 'suspend', 'recon', '--reason', 'release')
        self.expect(0, 'recon', *config, run=('sh', '-c', 'exit 8'), says=('is suspended',))


class Ends(ExecCase):
    TRAP = ('sh', '-c', 'trap "echo asked >> asked; exit 9" TERM INT; echo $$ >> here; while :; do sleep 0.05; done')

    def test_a_signal_reaches_the_command_and_the_run_is_given_back(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        for number in (signal.SIGTERM, signal.SIGINT):
            call = self.start('recon', *config, run=self.TRAP)
            self.here(number == signal.SIGINT and 2 or 1)
            call.send_signal(number)
            self.ended(call, 9)
            self.assertEqual(self.status_of('recon', self.days(0)[0]), 'PLANNED')
        self.assertEqual(self.lines('asked'), ['asked', 'asked'])
        self.assertEqual([run['status'] for run in self.json('runs', 'recon')], ['RETURNED', 'RETURNED'])
        # One that makes light of it and ends well has not done its work for all that anybody knows.
        call = self.start('recon', run=('sh', '-c', 'trap "exit 0" TERM; echo $$ >> here; while :; do sleep 0.05; done'))
        self.here(3)
        call.send_signal(signal.SIGTERM)
        self.ended(call, 143)
        self.expect(0, 'recon')

    def test_other_signals_are_passed_and_change_nothing(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        call = self.start('recon', *config, run=(
            'sh', '-c', 'trap "echo got >> got; exit 0" USR1; echo $$ >> here; while :; do sleep 0.05; done'))
        self.here()
        call.send_signal(signal.SIGUSR1)
        self.ended(call, 0)
        self.assertEqual(self.lines('got'), ['got'])
        self.assertEqual(self.status_of('recon', self.days(0)[0]), 'DONE')

    def test_one_that_is_killed_leaves_nothing_alive_and_its_period_to_the_next(self):
        config = self.config(backfill=f'{{ start: {today()} }}')
        call = self.start('recon', *config, run=('sh', '-c', 'sleep 1000 & echo $$ $! >> here; wait'))
        self.here(2)
        call.kill()
        eventually('the tree to be dead', lambda: not any(os.path.exists(f'/proc/{pid}') for pid in self.lines('here')))
        # Long before the lease of 30 s ends.
        eventually('the period to be free', lambda: self.status_of('recon', self.days(0)[0]) == 'PLANNED')
        self.expect(0, 'recon', *config)
        self.assertEqual([run['status'] for run in self.json('runs', 'recon')], ['DONE', 'LOST'])

    def test_a_timeout_is_no_success(self):
        config = self.config(backfill=f'{{ start: {today()} }}', timeout='1s', grace='10s')
        self.expect(107, 'recon', *config, run=('sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.05; done'), says=('FAILED(timeout)',))

    def test_a_person_cancels(self):
        config = self.config(backfill=f'{{ start: {today()} }}', lock='{ ttl: 10s }', grace='1s')
        call = self.start('recon', *config, run=('sh', '-c', 'echo $$ >> here; exec sleep 1000'))
        self.here()
        self.ok('cancel', self.rows('recon')[self.days(0)[0]]['run'], '--reason', 'wrong data')
        self.ended(call, 108, says=('cancelled',))


class Stopped(ExecCase):
    """Stopped past its lease, at each of its steps; another call takes the period, and what the old one then says does not count."""
    POINTS = ('start.after_answer', 'start.after_launch', 'finish.before_send')

    def stopped(self, env, run, stop):
        config = self.config(backfill=f'{{ start: {today()} }}', lock='{ ttl: 6s }', grace='1s')
        call = self.start('recon', *config, run=run, env=env)
        stop(call)
        eventually('it to be stopped', lambda: open(f'/proc/{call.pid}/stat').read().rsplit(')', 1)[1].split()[0] == 'T')
        return call, config

    def overtaken(self, env, run, stop):
        call, config = self.stopped(env, run, stop)
        winner = self.start('recon', *config, '--if-held', 'wait', run=(
            'sh', '-c', 'for p in $(cat here); do kill -0 $p && echo $p >> alive; done; echo $MATINS_FENCE >> won; '
            'while test ! -e go; do sleep 0.05; done'))
        (fence,) = eventually('the other to have it', lambda: self.lines('won'))
        call.send_signal(signal.SIGCONT)
        self.ended(call, 108, says=('does not count',))
        self.assertEqual((self.status_of('recon', self.days(0)[0]), self.rows('recon')[self.days(0)[0]]['run']), ('RUNNING', fence))
        open(os.path.join(self.folder, 'go'), 'w').close()
        self.ended(winner, 0)
        self.assertEqual((self.status_of('recon', self.days(0)[0]), self.rows('recon')[self.days(0)[0]]['run']), ('DONE', fence))
        self.assertEqual(self.lines('alive'), [], 'the old one was not dead when the new one began')

    def test_while_the_command_runs(self):
        def stop(call):
            self.here()
            call.send_signal(signal.SIGSTOP)
        self.overtaken({}, ('sh', '-c', 'echo $$ >> here; exec sleep 1000'), stop)

    def test_at_each_step(self):
        for point in self.POINTS:
            with self.subTest(point):
                self.store = self.fresh_store()
                self.ok('db', 'migrate')
                for name in {'won', 'go'} & set(os.listdir(self.folder)):
                    os.unlink(os.path.join(self.folder, name))
                self.overtaken({'MATINS_FAULTS': f'{point}=stop@1'}, ('true',), lambda call: None)

    def test_a_lease_that_has_ended_is_no_longer_its_own_though_nobody_took_it(self):
        call, _ = self.stopped({'MATINS_FAULTS': 'finish.before_send=stop@1'}, ('true',), lambda call: None)
        # Nobody extends it: it ends within a ttl of now.
        until = time.monotonic() + 6.1
        eventually('the lease to end', lambda: time.monotonic() > until)
        call.send_signal(signal.SIGCONT)
        self.ended(call, 108, says=('does not count',))
        self.assertNotEqual(self.status_of('recon', self.days(0)[0]), 'DONE')
        self.expect(0, 'recon')


class Race(ExecCase):
    """Calls that come at the same instant: each period is run once, counted by what the command wrote. MATINS_EXEC_RACES
    chooses how many; thousands are for a machine that has nothing else to do."""

    def race(self, calls, races):
        for number in range(races):
            name = f'race{number}'
            config = self.config(name, backfill=f'{{ start: {today()} }}')
            started = [subprocess.Popen([MATINS, 'exec', name, *config, '--', 'sh', '-c', 'echo $MATINS_JOB >> ran'], env=self.env(),
                                        cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True) for _ in range(calls)]
            outs = [process.communicate(timeout=PATIENCE)[0] for process in started]
            self.assertEqual({process.returncode for process in started}, {0}, outs)
        ran = [line for line in self.lines('ran') if line.startswith('race')]
        self.assertEqual(sorted(ran), sorted(f'race{number}' for number in range(races)))

    def races(self, usual):
        return int(os.environ.get('MATINS_EXEC_RACES', usual))

    def test_two(self):
        self.race(2, self.races(12))

    def test_five(self):
        self.race(5, self.races(6))


@unittest.skipUnless(os.environ.get('MATINS_SKEWED_CLOCK'), 'nothing can be preloaded under a sanitizer')
class Clocks(ExecCase):
    kind = 'postgresql'  # SQLite's clock is the machine's

    def test_hosts_whose_clocks_are_minutes_apart_run_each_fire_once_at_its_time(self):
        schedule = in_seconds(5)
        calls = [self.start('recon', '--schedule', schedule, '--misfire', 'skip', run=('sh', '-c', 'echo ran >> ran'), env={
            'LD_PRELOAD': os.environ['MATINS_SKEWED_CLOCK'], 'MATINS_TEST_SKEW_S': str(skew)}) for skew in (-200, 0, 200)]
        for call in calls:
            self.ended(call, 0)
        self.assertEqual(self.lines('ran'), ['ran'])
        (run,) = self.json('runs', 'recon')
        self.assertGreaterEqual(instant(run['claimed_at']), instant(run['due']))


@unittest.skipUnless(shutil.which(REDIS_SERVER), 'there is no redis-server here')
class Door(ExecCase):
    """Redis before the store's lock: asked first, believed never."""
    kind = 'sqlite'

    def at_work(self, redis, config):
        """A call whose lock is in Redis, and the lock's key there: an answer that takes longer than the door's tenth of a second
        counts as none, so it may take more than one."""
        for count in range(1, 20):
            call = self.start('recon', *config, '--lock', redis.url, run=('sh', '-c', 'echo $$ >> here; while test ! -e go; do sleep 0.05; done'))
            self.here(count)
            keys = [key for key in redis.ask('keys', '*').split() if 'lock:' in key]
            if keys:
                return call, keys[0]
            self.leaves(call, redis)
            os.unlink(os.path.join(self.folder, 'go'))
            self.sql('delete from job_watermark')
        self.fail('no call of 19 has its lock there')

    def leaves(self, call, redis):
        open(os.path.join(self.folder, 'go'), 'w').close()
        self.ended(call, 0)
        eventually('the lock to go', lambda: 'lock:' not in redis.ask('keys', '*'))

    def test_one_runs_and_the_other_is_told_at_the_door(self):
        redis = Redis(self)
        config = self.config(backfill=f'{{ start: {today()} }}', lock='{ provider: redis }')
        first, _ = self.at_work(redis, config)
        self.expect(0, 'recon', *config, '--lock', redis.url, says=('is run by',))
        self.leaves(first, redis)

    def test_a_door_that_lies_costs_a_lease_and_one_that_is_away_nothing(self):
        redis = Redis(self)
        config = self.config(backfill=f'{{ start: {today()} }}', lock='{ provider: redis, ttl: 7s }')
        call, key = self.at_work(redis, config)
        self.leaves(call, redis)
        self.sql('delete from job_watermark')
        # For longer than what was planned before it stands.
        redis.ask('set', key, 'somebody/else')
        self.expect(0, 'recon', *config, '--lock', redis.url, run=('sh', '-c', 'echo ran >> ran'))
        self.assertEqual(self.lines('ran'), ['ran'])
        self.sql('delete from job_watermark')
        self.expect(0, 'recon', *config, '--lock', 'redis://127.0.0.1:1', run=('sh', '-c', 'echo ran >> ran'))
        self.assertEqual(self.lines('ran'), ['ran', 'ran'])

    def test_a_job_that_asks_no_redis_is_told(self):
        self.expect(0, 'recon', '--schedule', '@daily', '--misfire', 'each')
        self.expect(104, 'recon', '--lock', 'redis://127.0.0.1:1', says=('does not ask Redis',))
        self.expect(102, 'recon', '--lock', 'memcached://x')
        self.expect(0, 'recon', '--schedule', '@daily', '--misfire', 'each', '--lock', 'store')
        self.expect(104, 'recon', '--schedule', '@daily', '--misfire', 'each', '--lock', 'redis://127.0.0.1:1', says=('lock: ',))


for case in (Exec, Ends, Stopped, Race):
    for_each_store(case, STORES)
del Exec, Ends, Stopped, Race, case

if __name__ == '__main__':
    main()
