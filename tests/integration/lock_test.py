"""`matins lock` and `matins locks` as a person types them: in a Redis of the test's own that is killed, emptied, paused and lied
to, and in each store; and a node that asks Redis before its store."""
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from support import MATINS, PATIENCE, Calls, Redis, StoreCase, eventually, for_each_store, main, removed

STORES = ('sqlite', 'postgresql', 'mariadb')
OWN = 100  # the codes of `matins lock` itself begin here


class LockCase(Calls, unittest.TestCase):
    """What both kinds of server have in common; subclasses say where the lock is."""
    where = ()

    def environment(self):
        return {name: value for name, value in os.environ.items() if name not in ('MATINS_STORE', 'MATINS_REDIS')}

    def lock(self, *args, run=('true',), **more):
        return subprocess.run([MATINS, 'lock', *args, *self.where, '--', *run], env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE * 2, cwd=self.folder, stdin=None if 'input' in more else subprocess.DEVNULL, **more)

    def expect(self, code, *args, says=(), **more):
        done = self.lock(*args, **more)
        self.assertEqual(done.returncode, code, f'{args}: {done.stdout}{done.stderr}')
        for word in says:
            self.assertIn(word, done.stderr)
        return done.stdout

    def start(self, *args, run):
        """A call that goes on; returns once its command has made the file `here`."""
        process = self.begin([MATINS, 'lock', *args, *self.where, '--', 'sh', '-c', f'touch here; {run}'], self.environment())
        eventually('the command', lambda: os.path.exists(self.path('here')) or process.poll() is not None)
        if process.poll() is not None:
            self.fail(f'it ended: {process.communicate()}')
        os.remove(self.path('here'))
        return process

    def path(self, name):
        return os.path.join(self.folder, name)

    def locks(self, *args):
        done = subprocess.run([MATINS, 'locks', *args, *self.where, '-o', 'json'], env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def release(self, code, key, *args):
        done = subprocess.run([MATINS, 'locks', 'release', key, *args, *self.where], env=self.environment(), capture_output=True, text=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Everywhere:
    """What holds wherever the lock is."""

    def test_the_command_has_the_fence_and_the_call_ends_as_it_does(self):
        out = self.expect(3, 'night', run=('sh', '-c', 'echo $MATINS_LOCK $MATINS_FENCE; cat; echo wrong >&2; exit 3'), says=['wrong'], input='in\n')
        (key, first), given = out.splitlines()[0].split(), out.splitlines()[1:]
        self.assertEqual((key, given), ('night', ['in']))
        second = self.expect(0, 'night', run=('sh', '-c', 'echo $MATINS_FENCE'))
        self.assertGreater(int(second), int(first))
        self.assertEqual(self.locks(), [])
        self.expect(OWN + 2, 'night', run=(), says=['COMMAND'])
        self.expect(127, 'night', run=('/no/such/program',))
        self.expect(0, 'night', run=('test', '{{x}}', '=', '{{x}}'))  # its words are its own

    def test_another_is_told_who_has_it(self):
        holder = self.start('night', run='exec sleep 60')
        held = self.locks()
        self.assertEqual([lock['key'] for lock in held], ['night'])
        self.expect(0, 'night', run=('touch', 'twice'), says=['night: held by', held[0]['holder'], held[0]['fence']])
        self.expect(OWN + 4, 'night', '--if-held', 'fail', run=('touch', 'twice'), says=['held by'])
        self.expect(OWN + 4, 'night', '--if-held', 'wait', '--wait', '1s', run=('touch', 'twice'))
        self.expect(0, 'other', run=('touch', 'other'))
        waits = subprocess.Popen([MATINS, 'lock', 'night', '--if-held', 'wait', *self.where, '--', 'touch', 'waited'], cwd=self.folder,
                                 env=self.environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertIn('held by', waits.stderr.readline())
        self.assertEqual((os.path.exists(self.path('twice')), os.path.exists(self.path('waited'))), (False, False))
        holder.send_signal(signal.SIGTERM)
        self.ended(holder, 128 + signal.SIGTERM)
        waits.communicate(timeout=PATIENCE)
        self.assertEqual((waits.returncode, os.path.exists(self.path('waited'))), (0, True))

    def test_a_lease_is_renewed_for_as_long_as_it_takes_whatever_its_ttl(self):
        holder = self.start('night', '--ttl', '8s', run='sleep 17')
        first = self.locks()[0]
        while holder.poll() is None:
            done = self.lock('night', run=('touch', 'twice'))
            # Its lease may end before its process does: it had it all the while if it still has.
            if first['fence'] in [lock['fence'] for lock in self.locks()]:
                self.assertIn(f'fence {first["fence"]}', done.stderr)
        self.ended(holder, 0)

    def test_taken_by_hand_the_command_is_stopped_and_told_why(self):
        holder = self.start('night', '--ttl', '8s', run='trap "echo stopped; exit 9" TERM; sleep 60 & wait')
        self.assertIn('--reason', self.release(2, 'night'))
        self.assertIn('nobody holds', self.release(3, 'day', '--reason', 'why'))
        self.release(0, 'night', '--reason', 'it hangs')
        self.assertEqual(self.ended(holder, OWN + 8, says=['lock night: lost:', 'its command is stopped']), 'stopped\n')
        self.expect(0, 'night')
        self.recorded('it hangs')

    def test_steps_are_done_once_and_in_order(self):
        step = ('sh', '-c', 'echo $MATINS_STEP after $MATINS_CHECKPOINT_NUMBER $MATINS_CHECKPOINT >> done; '
                            f'{MATINS} checkpoint $MATINS_STEP at-$MATINS_STEP && exit ${{CODE:-0}}')
        self.expect(OWN + 4, 'load', '--step', '2', run=step, says=['do step 1 first'])
        self.expect(0, 'load', '--step', '1', run=step)
        self.expect(0, 'load', '--step', '1', run=step, says=['step 1 is done'])
        self.expect(5, 'load', '--step', '2', run=('sh', '-c', 'exit 5'))  # not done: its turn again
        self.expect(0, 'load', '--step', '2', run=step)
        with open(self.path('done')) as f:
            self.assertEqual(f.read().splitlines(), ['1 after 0', '2 after 1 at-1'])
        # Without --step there is nothing to keep.
        self.assertIn('--step', self.lock('load', run=(MATINS, 'checkpoint', '3')).stderr)

    def test_the_run_asks_whether_it_is_still_the_owner(self):
        out = self.expect(0, 'night', run=('sh', '-c', f'echo $MATINS_FENCE; {MATINS} fence')).split()
        self.assertEqual(out[0], out[1])

    def test_a_template_takes_its_values_from_options_or_the_run_around(self):
        key = 'job:recon:{biz_date:%Y%m%d}'
        self.expect(OWN + 2, key, says=['biz_date', '--date'])
        self.assertEqual(self.expect(0, key, '--date', '2026-10-30', run=('sh', '-c', 'echo $MATINS_LOCK')), 'job:recon:20261030\n')
        self.expect(OWN + 2, '{period}', says=['period'])
        self.expect(OWN + 2, 'x-{{bad}}', says=["unknown name 'bad'"])
        self.expect(OWN + 2, 'night', '--ttl', '100ms', says=['1s'])

    def test_a_masked_key_is_written_nowhere(self):
        done = self.lock('customer-4711', '--mask', 'hash', run=('sh', '-c', 'echo $MATINS_LOCK'))
        self.assertRegex(done.stdout, r'^hash/[0-9a-f]{32}\n$')
        holder = self.start('customer-4711', '--mask', 'hash', run='sleep 60')
        self.assertEqual([lock['key'] for lock in self.locks()], [done.stdout.strip()])
        self.assertNotIn('4711', self.lock('customer-4711', '--mask', 'hash').stderr)
        self.assertNotIn('4711', self.everything())
        holder.send_signal(signal.SIGTERM)
        self.ended(holder, 128 + signal.SIGTERM)

    def test_of_many_at_once_one_is_inside(self):
        inside = ('sh', '-c', 'mkdir inside && sleep 0.05 && rmdir inside && echo once >> count')
        calls = [subprocess.Popen([MATINS, 'lock', 'night', '--if-held', 'wait', '-q', *self.where, '--', *inside], cwd=self.folder,
                                  env=self.environment(), stdin=subprocess.DEVNULL) for _ in range(8)]
        self.assertEqual([call.wait(PATIENCE * 2) for call in calls], [0] * 8)
        with open(self.path('count')) as f:
            self.assertEqual(len(f.readlines()), 8)

    def test_the_list_for_people(self):
        self.start('night', '--ttl', '8s', run='sleep 60')
        eventually('two renewals', lambda: self.locks()[0]['renewals'] > 1)
        lock = self.locks()[0]
        self.assertEqual((lock['in'], lock['leftover']), (self.where[0].removeprefix('--'), False))
        done = subprocess.run([MATINS, 'locks', *self.where], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE)
        for word in ('KEY', 'HOLDER', 'RENEWALS', 'night', lock['holder'], lock['fence']):
            self.assertIn(word, done.stdout)


class InRedis(Everywhere, LockCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='mt')
        self.addCleanup(removed, self.folder)
        self.redis = Redis(self)
        self.where = ('--redis', self.redis.url)

    def everything(self):
        return self.redis.ask('KEYS', '*') + self.redis.ask('XRANGE', 'matins:events', '-', '+')

    def recorded(self, why):
        self.assertIn(why, self.redis.ask('XRANGE', 'matins:events', '-', '+'))

    def loses(self, what, says, ttl='8s'):
        """The command is told to stop, is dead, and the call says why."""
        holder = self.start('night', '--ttl', ttl, run='trap "echo stopped; exit 9" TERM; sleep 60 & wait')
        what()
        self.assertEqual(self.ended(holder, OWN + 8, says=['lock night: lost:', *says]), 'stopped\n')

    def test_emptied(self):
        self.loses(lambda: self.redis.ask('FLUSHALL'), ['no longer has it'])

    def test_taken_over_by_another_value(self):
        self.loses(lambda: self.redis.ask('SET', 'matins:lock:night', 'theirs/1:x'), ['held by theirs/1'])
        self.assertEqual(self.redis.ask('GET', 'matins:lock:night'), 'theirs/1:x')

    def test_another_type_at_its_key(self):
        def retype():
            self.redis.ask('DEL', 'matins:lock:night')
            self.redis.ask('RPUSH', 'matins:lock:night', 'x')
        self.loses(retype, ['WRONGTYPE'])
        self.assertEqual(self.redis.ask('LLEN', 'matins:lock:night'), '1')
        self.expect(OWN + 4, 'night', says=['prefix'])

    def test_killed(self):
        self.loses(self.redis.kill, ['cannot connect'])

    def test_restarted_empty(self):
        def restart():
            self.redis.kill()
            self.redis.start()
        self.loses(restart, ['no longer has it'])

    def test_standing_still(self):
        self.loses(lambda: self.redis.process.send_signal(signal.SIGSTOP), ['no answer in time'])

    def test_scripts_flushed_are_loaded_again(self):
        holder = self.start('night', '--ttl', '8s', run='sleep 5')
        self.redis.ask('SCRIPT', 'FLUSH')
        self.ended(holder, 0)

    def test_a_short_outage_is_survived(self):
        """C094: one failed renewal is no reason to stop renewing."""
        holder = self.start('night', '--ttl', '12s', run='sleep 18')
        self.redis.process.send_signal(signal.SIGSTOP)
        time.sleep(3)  # the outage itself: longer than a renewal's patience, shorter than the lease
        self.redis.process.send_signal(signal.SIGCONT)
        renewals = self.locks()[0]['renewals']
        eventually('renewals that go on', lambda: holder.poll() is not None or self.locks()[0]['renewals'] > renewals)
        self.ended(holder, 0)

    def test_a_stopped_holder_is_dead_before_another_begins(self):
        """I19: SIGSTOP of the call past its lease; the clock is the machine's monotonic one."""
        tick = "import time\nwhile True: print(time.monotonic_ns(), flush=True); time.sleep(0.02)"
        with open(self.path('tick.py'), 'w') as f:
            f.write(tick)
        holder = self.start('night', '--ttl', '4s', run='exec python3 tick.py > ticks')
        eventually('a tick', lambda: os.path.exists(self.path('ticks')) and os.path.getsize(self.path('ticks')))
        os.kill(holder.pid, signal.SIGSTOP)
        begun = int(self.expect(0, 'night', '--if-held', 'wait', '-q', run=('python3', '-c', 'import time; print(time.monotonic_ns())')))
        with open(self.path('ticks')) as f:
            last = int(f.read().split()[-1])
        self.assertLess(last, begun)
        os.kill(holder.pid, signal.SIGCONT)
        self.ended(holder, OWN + 8, says=['lost'])

    def test_no_server_is_told_without_its_password_and_nothing_runs(self):
        self.redis.kill()
        self.where = ('--redis', f'redis://me:tiger@127.0.0.1:{self.redis.port}', '--server-wait', '1s')
        done = self.lock('night', run=('touch', 'ran'))
        self.assertEqual(done.returncode, OWN + 5, done.stderr)
        self.assertNotIn('tiger', done.stderr)
        self.assertFalse(os.path.exists(self.path('ran')))

    def test_no_place_to_look_is_told(self):
        nowhere = subprocess.run([MATINS, 'locks'], env=self.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((nowhere.returncode, 'MATINS_REDIS' in nowhere.stderr), (2, True))


class InStore(Everywhere, LockCase, StoreCase):
    """The same in a store; made for each of them below."""

    def setUp(self):
        StoreCase.setUp(self)
        self.where = ('--store', self.store)

    def everything(self):
        tables = {'job_watermark': 'period, lock_key, reason', 'job_run': 'period, message', 'job_event': 'period, why, detail',
                  'job_checkpoint': 'period, data'}
        return json.dumps([self.sql(f'select {columns} from {table}') for table, columns in tables.items()])

    def recorded(self, why):
        self.assertIn(why, json.dumps(self.sql('select why from job_event')))

    def test_a_job_of_that_key_is_kept_out_and_a_node_leaves_locks_alone(self):
        holder = self.start('settle', run='sleep 60')
        self.apply('jobs:\n  - { name: nightly, schedule: "0 0 * * *", period: day, misfire: each, lock: { scope: settle }, '
                   'backfill: { start: 2026-01-01, max_periods: 1 }, run: { shell: "true" } }\n')
        node = self.node()
        eventually('a refused start', lambda: 'start_refused job=nightly' in node.text())
        self.assertNotIn('job=matins-lock', node.text())
        self.assertEqual([lock['key'] for lock in self.locks()], ['settle'])
        holder.send_signal(signal.SIGTERM)
        self.ended(holder, 128 + signal.SIGTERM)
        eventually('the job', lambda: 'DONE' in [row['status'] for row in self.rows('nightly').values()])

    def test_a_holder_that_died_is_followed_once_its_lease_has_ended(self):
        holder = self.start('night', '--ttl', '6s', run='sleep 60')
        first = self.locks()[0]['fence']
        holder.kill()
        holder.wait(PATIENCE)
        out = self.expect(0, 'night', '--if-held', 'wait', run=('sh', '-c', 'echo $MATINS_FENCE'))
        self.assertGreater(int(out), int(first))


for_each_store(InStore, STORES)
del InStore  # of no store itself


class QuickDoor(StoreCase):
    """A node that asks Redis before its store: whatever Redis says, what is due is done (I22). An answer that takes longer than
    the door's tenth of a second counts as none, so what a START heard is shown by one of many."""
    kind = 'sqlite'
    JOBS = ('jobs:\n  - { name: recon, schedule: "0 0 * * *", period: day, misfire: each, backfill: { start: 2026-01-01, max_periods: 1 }, '
            'lock: { provider: redis, ttl: 2s }, run: { shell: "true" } }\n')

    def done(self):
        eventually('the run', lambda: 'DONE' in [row['status'] for row in self.rows('recon').values()])

    GATED = JOBS.replace('backfill: { start: 2026-01-01, max_periods: 1 }, ', '').replace('2s', '10s').replace(
        '"true"', '"while [ ! -e $GATES/$MATINS_BIZ_DATE ]; do sleep 0.05; done"')

    def at_work(self, redis):
        """A run whose key is in Redis, and what is written there; it ends once it is let()."""
        for date in (f'2026-01-{n:02}' for n in range(1, 32)):
            self.ok('run', 'recon', '--date', date)
            eventually('it to run', lambda date=date: self.status_of('recon', date) == 'RUNNING')
            keys = redis.ask('KEYS', 'matins:lock:*')
            if keys:
                return date, keys
            self.let(date)
        self.fail('no run of 31 has its key there')

    def let(self, date):
        open(os.path.join(self.folder, date), 'w').close()
        eventually('its end', lambda: self.status_of('recon', date) == 'DONE')

    def test_a_key_that_nobody_frees_puts_it_off_for_a_lease(self):
        redis = Redis(self)
        redis.ask('SET', 'matins:lock:job/recon', 'liar/1:x')
        self.apply(self.JOBS.replace('"0 0 * * *", period: day, misfire: each, backfill: { start: 2026-01-01, max_periods: 1 }',
                                     '"* * * * * *", misfire: latest'))
        node = self.node('--redis', redis.url)
        self.done()
        node.told('start_put_off job=recon')
        node.told('liar/1')
        self.assertEqual(redis.ask('GET', 'matins:lock:job/recon'), 'liar/1:x')

    def test_a_server_that_is_away_or_stands_still(self):
        redis = Redis(self)
        redis.process.send_signal(signal.SIGSTOP)
        self.apply(self.JOBS)
        self.node('--redis', redis.url)
        self.done()

    def test_no_redis_at_all_is_told(self):
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(self.JOBS)
        node = self.node(path)
        self.assertIn("job 'recon': lock.provider: redis, and this node knows no Redis", node.text())
        self.done()

    def test_a_run_holds_its_key_there_and_leaves_it_at_its_end(self):
        redis = Redis(self)
        self.apply(self.GATED.replace('$GATES', self.folder))
        self.node('--redis', redis.url)
        date, keys = self.at_work(redis)
        self.assertEqual(keys, 'matins:lock:job/recon')
        self.let(date)
        eventually('the key to go', lambda: redis.ask('EXISTS', 'matins:lock:job/recon') == '0')

    def test_the_file_names_it_and_a_masked_key_is_written_nowhere(self):
        redis = Redis(self)
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(f'store: {self.store}\nredis: {redis.url}\njournal: full\n' + self.GATED.replace('$GATES', self.folder).replace(
                'provider: redis', 'provider: redis, scope: "customer-{{tenant}}-x"').replace('name: recon', 'name: recon, tenant: acme, mask: hash'))
        node = self.node(path)
        date, keys = self.at_work(redis)
        self.assertTrue(keys.startswith('matins:lock:hash/'), keys)
        locks = self.json('locks')
        self.assertEqual([bool(re.match(r'hash/[0-9a-f]{32}$', lock['key'])) for lock in locks], [True])
        self.let(date)
        dump = subprocess.run(['sqlite3', self.store[len('sqlite:'):], '.dump'], capture_output=True, text=True, timeout=PATIENCE).stdout
        self.assertIn('hash/', dump)
        for text in (dump, node.text(), redis.ask('KEYS', '*')):
            self.assertNotIn('customer-acme', text)


if __name__ == '__main__':
    main()
