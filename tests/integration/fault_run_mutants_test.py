"""Each protection of the PostgreSQL store taken out once, in real processes: the checker finds what is then let through, and
finds nothing in the same scene with the protection in place.

A program built with the lab honours MATINS_MUTANT and MATINS_FAULTS (src/base/fault.h).
"""
import os
import signal
import unittest
from datetime import datetime, timedelta, timezone

import fault_run
from support import MATINS, StoreCase, eventually, postgres_port

# The nth start of the body waits for go.N, whose text is its exit status, or for `go`, which lets all of them end well.
BODY = """cd "$1"
n=1
while ! mkdir ran.$n 2>/dev/null; do n=$((n + 1)); done
while [ ! -e go.$n ] && [ ! -e go ]; do sleep 0.02; done
[ -e go.$n ] && exit "$(cat go.$n)"
exit 0
"""


class NoEffects:
    """The runs of these scenes write nothing of their own."""

    def write_effects(self, path):
        open(path, 'w').close()

    write_demands = write_effects


class Mutants(StoreCase):
    kind = 'postgresql'

    def setUp(self):
        """A store for each of the two times that a scene is played."""

    def play(self, mutant, promises, scene):
        """With the mutant one of `promises` is found broken, without it none."""
        # Real processes may miss their moment: the mutant has three chances to be caught.
        plays = [self.broken(scene, mutant)]
        while len(plays) < 3 and not plays[-1] & promises:
            plays.append(self.broken(scene, mutant))
        self.assertTrue(plays[-1] & promises, f'{mutant} was not caught: {plays}')
        self.assertEqual(self.broken(scene, None), set())

    def broken(self, scene, mutant):
        """The promises that the checker finds broken in a scene on a store of its own."""
        super().setUp()
        self.active, self.nodes = mutant, []
        try:
            scene()
            for node in self.nodes:
                node.stop()
            verdict = fault_run.Evidence(self, NoEffects(), self.nodes).verdict
        finally:
            fault_run.keep(self.folder, f'{self.id()}-{mutant}')
        self.assertGreater(verdict['stats']['claims'], 0)
        return set(verdict['violations'])

    # ---- the stage ----------------------------------------------------------------------------------------------------

    def jobs(self, days=1, backoff='100ms..200ms', schedule=None, more=None):
        """One ordered job that owes its last `days`, or another one."""
        body, first = os.path.join(self.folder, 'body.sh'), datetime.now(timezone.utc).date() - timedelta(days=days)
        schedule = schedule or '"0 0 * * *", period: day, biz_date: -1d'
        more = more or f'backfill: {{ start: {first} }}'
        with open(body, 'w') as f:
            f.write(BODY)
        with open(os.path.join(self.folder, 'jobs.yaml'), 'w') as f:
            f.write(f'journal: full\njobs:\n  - {{ name: work, schedule: {schedule}, misfire: each, {more}, '
                    f'lock: {{ ttl: 2s }}, timeout: 60s, grace: 200ms, retry: {{ attempts: 5, backoff: {backoff} }}, '
                    f'run: {{ command: [sh, {body}, {self.folder}] }} }}\n')

    def node(self, faults='', store=None):
        env = {name: text for name, text in (('MATINS_MUTANT', self.active), ('MATINS_FAULTS', faults)) if text}
        node = fault_run.Member(self, len(self.nodes), store, env)
        self.nodes.append(node)
        node.start()
        return node

    def began(self, n):
        eventually(f'start {n} of the body', lambda: os.path.exists(os.path.join(self.folder, f'ran.{n}')))

    def let(self, n, status=0):
        path = os.path.join(self.folder, f'go.{n}')
        with open(path + '.new', 'w') as f:
            f.write(str(status))
        os.rename(path + '.new', path)

    def let_all(self):
        open(os.path.join(self.folder, 'go'), 'w').close()

    def heard(self, node, kind, more_than=0):
        """Waits for the node's answer to a call of this kind."""
        def answers():
            count = fault_run.seen([node])
            return sum(n for what, n in count.items() if what.split()[0] == kind and what.split()[1] != 'inv')
        eventually(f'an answer to {kind}', lambda: answers() > more_than)

    def answers(self, node, kind):
        return sum(n for what, n in fault_run.seen([node]).items() if what.split()[0] == kind and what.split()[1] != 'inv')

    def lease_over(self):
        eventually('the end of the lease', lambda: self.sql(
            'select count(*) from job_watermark where lease_until < clock_timestamp()') == [['1']])

    def all_done(self, days=1):
        eventually('all DONE', lambda: self.sql('select status from job_watermark') == [['DONE']] * days)

    def stopped(self, node):
        """Until the node has stopped itself at a fault point."""
        def state():
            self.assertTrue(node.alive(), node.log)
            with open(f'/proc/{node.process.pid}/stat') as f:
                return f.read().rpartition(')')[2].split()[0]
        eventually('the node to stop itself', lambda: state() == 'T')

    @staticmethod
    def stop(node):
        node.process.send_signal(signal.SIGSTOP)

    @staticmethod
    def go_on(node):
        node.process.send_signal(signal.SIGCONT)

    # ---- the scenes ---------------------------------------------------------------------------------------------------

    def test_no_fence_check(self):
        """An owner that was paused brings its result while its successor runs."""
        def scene():
            self.jobs()
            old = self.node()
            self.began(1)
            self.stop(old)
            self.let(1)
            new = self.node()
            self.began(2)
            self.go_on(old)
            self.heard(old, 'commit')
            self.let_all()
            self.heard(new, 'commit')
            self.all_done()
        self.play('no_fence_check', {'I3', 'I11'}, scene)

    def test_no_lease_check(self):
        """An owner that was paused brings its result before anybody has taken the period back."""
        def scene():
            self.jobs()
            old = self.node('reap.before_write=error')
            self.began(1)
            self.stop(old)
            self.let(1)
            self.lease_over()
            self.go_on(old)
            self.heard(old, 'commit')
            self.let_all()
            self.node()
            self.all_done()
        self.play('no_lease_check', {'I4', 'I5'}, scene)

    def test_revive_lease(self):
        """A paused node's next heartbeat comes after the lease, and its body still runs: its guard was paused too."""
        def scene():
            self.jobs()
            old = self.node('reap.before_write=error')
            self.began(1)
            guards, _ = fault_run.guards_and_bodies(old)
            for pid in (*guards, old.process.pid):
                os.kill(pid, signal.SIGSTOP)
            before = self.answers(old, 'hb')
            self.lease_over()
            self.go_on(old)
            self.heard(old, 'hb', before)
            for pid in guards:
                fault_run.tell(pid, signal.SIGCONT)
            self.let_all()
            self.node()
            self.all_done()
        self.play('revive_lease', {'I5'}, scene)

    def test_blind_reap(self):
        """A node finds a dead lease and is paused; when it goes on, the period runs anew."""
        def scene():
            self.jobs()
            old = self.node()
            self.began(1)
            self.stop(old)
            slow = self.node('reap.before_write=stop@1')
            self.stopped(slow)
            self.go_on(old)
            self.began(2)
            self.go_on(slow)
            self.heard(slow, 'reap')
            self.let_all()
            self.all_done()
        self.play('blind_reap', {'I7'}, scene)

    def test_no_order(self):
        """The older of two days failed and waits for its next attempt."""
        def scene():
            self.jobs(days=2, backoff='1500ms..1500ms')
            self.node()
            self.began(1)
            self.let(1, status=1)
            self.let_all()
            self.all_done(days=2)
        self.play('no_order', {'I16'}, scene)

    def test_no_fence_bump(self):
        def scene():
            self.jobs()
            self.node()
            self.began(1)
            self.let(1, status=1)
            self.let_all()
            self.all_done()
        self.play('no_fence_bump', {'I6'}, scene)

    def test_no_cap(self):
        def scene():
            self.jobs(more=f'backfill: {{ start: {datetime.now(timezone.utc).date() - timedelta(days=4)}, max_periods: 2 }}')
            self.let_all()
            self.node()
            eventually('the newest', lambda: [row for row in self.sql('select status from job_watermark order by period')][-1:]
                       == [['DONE']])
        self.play('no_cap', {'I17'}, scene)

    def test_naive_resolve(self):
        """The result is on its way and slow; its node, cut off, asks what became of it."""
        def scene():
            self.jobs()
            proxy = fault_run.Proxy(self, postgres_port())
            node = self.node(store=self.store.replace(f':{postgres_port()}/', f':{proxy.port}/'))
            self.began(1)
            proxy.ask('hold select v.n, v.noted')
            self.let(1)
            self.heard(node, 'resolve')
            proxy.ask('release')
            self.let_all()
            self.all_done()
        self.play('naive_resolve', {'I9'}, scene)

    def test_no_old_lease(self):
        """The row of a run is deleted while its lease lives, and planned again."""
        def scene():
            self.jobs()
            self.node()
            self.began(1)
            self.sql('delete from job_watermark')
            self.began(2)
            self.let_all()
            self.all_done()
        self.play('no_old_lease', {'I7'}, scene)

    def test_silent_beat(self):
        """A run that lives longer than its first lease."""
        def scene():
            self.jobs()
            node = self.node()
            self.began(1)
            self.heard(node, 'hb', 5)
            self.let_all()
            self.all_done()
        self.play('silent_beat', {'I4', 'J'}, scene)

    def test_no_unique_key(self):
        """A job is deleted and comes back, and owes days that are DONE."""
        def scene():
            self.jobs()
            self.let_all()
            node = self.node()
            self.all_done()
            self.ok('job', 'delete', 'work', '--reason', 'by mistake')
            self.assertEqual(node.stop(), 0)
            [[stopped]] = self.sql('select now()')
            node.start()
            eventually('the plan', lambda: self.sql(f"select count(*) from job where cursor > '{stopped}'") == [['1']])
        self.play('no_unique_key', {'I2'}, scene)


if __name__ == '__main__':
    unittest.main()
