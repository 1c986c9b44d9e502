"""Evil at random instants, in seeded order."""
import heapq
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

from nodes import guards_and_bodies, tell
from workload import TTL

LONGEST = 90        # seconds that a short run may take until what it is about has happened


class Nemesis:
    """Does evil in seeded order until its time is over; `done` counts what took place."""

    def __init__(self, case, members, rng, cuts=()):
        self.case, self.members, self.rng = case, members, rng
        self.cuts = list(cuts)            # [(name, function)]: what else can break, the network for instance
        self.later = []                   # heap of (instant, number, act)
        self.done = Counter()
        self.told = []

    def at(self, seconds, act):
        heapq.heappush(self.later, (time.monotonic() + seconds, len(self.told) + len(self.later), act))

    def did(self, what, more=''):
        self.done[what] += 1
        self.told.append(f'{time.time():.3f} {what} {more}')

    def rage(self, seconds, enough):
        """For `seconds`; and where what must happen has not happened by then, for a while longer."""
        start = next_act = time.monotonic()
        while time.monotonic() < start + seconds or time.monotonic() < start + max(3 * seconds, LONGEST) and not enough():
            self.go_on()
            self.supervise()
            if time.monotonic() >= next_act:
                self.act()
                next_act = time.monotonic() + self.rng.uniform(0.3, 1.5)
            time.sleep(0.02)
        while self.later:                 # peace: what was stopped goes on, what was killed comes back
            heapq.heappop(self.later)[2]()

    def go_on(self):
        while self.later and self.later[0][0] <= time.monotonic():
            heapq.heappop(self.later)[2]()

    def sql(self, statement):
        """What was stopped may hold what the statement waits for: its time to go on comes meanwhile."""
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(self.case.sql, statement)
            while not wait([answer], 0.02).done:
                self.go_on()
            return answer.result()

    def act(self):
        choices = {self.kill_node: 3, self.stop_node: 4, self.stop_guard: 2, self.stop_body: 2, self.kill_guard: 2,
                   self.kill_body: 2, self.delete_row: 3}
        for name, cut in self.cuts:
            choices[lambda name=name, cut=cut: self.cut(name, cut)] = 2
        act, = self.rng.choices(list(choices), list(choices.values()))
        act()

    def supervise(self):
        """A node that ended by itself comes back, as its supervisor would have it; that it ended is told."""
        for member in self.members:
            if member.process is not None and member.process.poll() not in (None, -signal.SIGKILL):
                self.did('ended_by_itself', f'{member.log} {member.process.returncode}')
                member.start()

    def cut(self, name, cut):
        told = cut()
        if told is not False:            # it was not its turn
            self.did(name, told)

    def victim(self, but=()):
        alive = [member for member in self.members if member.alive() and member not in but]
        return self.rng.choice(alive) if alive else None

    def kill_node(self):
        member = self.victim(but=self.members[:1] if len(self.members) > 1 else ())     # one lives on: what it uses is measured
        if member:
            member.kill()
            self.did('kill_node', member.log)
            self.at(self.rng.uniform(0.1, 2), member.start)

    def stop_for_a_while(self, what, pid):
        if pid and tell(pid, signal.SIGSTOP):
            self.did(what, pid)
            self.at(self.rng.choice((0.5 * TTL, 1.6 * TTL, 2.2 * TTL)), lambda: tell(pid, signal.SIGCONT))

    def stop_node(self):
        member = self.victim()
        self.stop_for_a_while('stop_node', member and member.process.pid)

    def process(self, kind):
        """One of the guards (0) or bodies (1), whichever node has any."""
        found = {pid for member in self.members if member.alive() for pid in guards_and_bodies(member)[kind]}
        return self.rng.choice(sorted(found)) if found else None

    def stop_guard(self):
        self.stop_for_a_while('stop_guard', self.process(0))

    def stop_body(self):
        self.stop_for_a_while('stop_body', self.process(1))

    def kill_one(self, what, pid):
        if pid and tell(pid, signal.SIGKILL):
            self.did(what, pid)

    def kill_guard(self):
        self.kill_one('kill_guard', self.process(0))

    def kill_body(self):
        self.kill_one('kill_body', self.process(1))

    def delete_row(self):
        rows = self.case.sql("select job_name, period, status from job_watermark where job_name in ('recon', 'hourly') "
                             'order by job_name, period')
        if rows:
            job, period, status = self.rng.choice(rows)
            self.sql(f"delete from job_watermark where job_name = '{job}' and period = '{period}'")
            self.did('delete_row', f'{job} {period} {status}')
