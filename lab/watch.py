"""What is looked at while a sample runs: figures once a second, and the stop conditions, on which everything is killed at once."""
import os
import sqlite3
import subprocess
import threading
import time
from collections import Counter

import replicas
import stores

EVERY = 0.15        # seconds from look to look
LOCK_WAIT = 3       # seconds that something may wait for one lock
AFTERWARDS = 1.0    # seconds in which nothing may be written any more


class Watch(threading.Thread):
    def __init__(self, stage, stops):
        super().__init__(daemon=True)
        self.stage, self.stops = stage, stops
        self.over = threading.Event()
        self.stopped, self.metrics, self.waits_since = None, [], None
        self.plans = self.look_at_plans()
        self.first_deadlocks = stage.store.locks()['deadlocks']

    def look_at_plans(self):
        """The plans of what nodes ask, and the indexes that there are."""
        return dict({name: self.stage.store.plan(question) for name, question in stores.QUESTIONS.items()},
                    indexes=self.stage.store.indexes())

    def run(self):
        last = 0
        while not self.over.wait(EVERY):
            try:
                if time.monotonic() - last >= 1:
                    last = time.monotonic()
                    self.metrics.append(self.measure())
                why = self.reason()
            except (RuntimeError, sqlite3.Error, OSError, subprocess.SubprocessError) as e:   # the store is away: a fault, seldom a lock
                self.metrics.append(dict(at=time.time(), away=str(e)[:200]))
                continue
            if why:
                self.stop(*why)
                return

    def end(self):
        self.over.set()
        self.join()
        try:
            self.metrics.append(self.measure())
            self.plans_after = self.look_at_plans()
        except (RuntimeError, sqlite3.Error, OSError, subprocess.SubprocessError) as e:
            self.plans_after = dict(unknown=str(e)[:200])

    def measure(self):
        stage = self.stage
        statuses = dict(stage.sql('select status, count(*) from job_watermark group by status'))
        nodes = {}
        for number, member in enumerate(stage.nodes):
            if member.alive():
                nodes[number] = usage(member.process.pid)
        return dict(at=time.time(), rows=statuses, journal=int(stage.sql('select count(*) from job_journal')[0][0]), nodes=nodes,
                    **stage.store.locks(), activity=stage.store.activity(), replication=replicas.lag(stage.server))

    # ---- stopping -----------------------------------------------------------------------------------------------------------

    def reason(self):
        """-> (which condition, what was seen), or None"""
        for stop in self.stops:
            seen = getattr(self, stop.replace(' ', '_'))()
            if seen:
                return stop, seen
        return None

    def doubled(self):
        return [(*which, n) for which, n in Counter(entry[:3] for entry in self.stage.entries()).items() if n > 1]

    def lost(self):
        done = self.stage.sql("select job_name, period from job_watermark where status = 'DONE'")
        there = {entry[:2] for entry in self.stage.entries()} if done else ()
        return [row for row in done if tuple(row) not in there]

    def inconsistent(self):
        """DONE without the commit in the journal."""
        return self.stage.sql("select w.job_name, w.period from job_watermark w where w.status = 'DONE' and not exists (select 1 from job_journal j "
                              "where j.job_name = w.job_name and j.period = w.period and j.op = 'commit')")

    def plan(self):
        now = self.look_at_plans()
        return [dict(question=name, was=self.plans[name], now=now[name]) for name in now if now[name] != self.plans[name]]

    def deadlock(self):
        return self.stage.store.locks()['deadlocks'] - self.first_deadlocks

    def lock_wait(self):
        if not self.stage.store.locks()['waiting']:
            self.waits_since = None
        elif self.waits_since is None:
            self.waits_since = time.monotonic()
        return self.waits_since is not None and time.monotonic() - self.waits_since > LOCK_WAIT and 'a lock was waited for'

    def stop(self, condition, seen):
        noticed = time.time()
        self.stage.kill_all()
        killed = time.time()
        before = self.written()
        time.sleep(AFTERWARDS)          # a span in which nothing must happen has to pass
        after = self.written()
        self.stopped = dict(condition=condition, seen=seen, noticed=noticed, killed=killed, seconds_to_stop=round(killed - noticed, 3),
                            watched_for=AFTERWARDS, written_at_stop=before, written_afterwards={k: after[k] - before[k] for k in after})

    def written(self):
        return dict(effects=len(self.stage.entries()), journal=int(self.stage.sql('select count(*) from job_journal')[0][0]),
                    starts=len(self.stage.starts()))


def usage(pid):
    """Memory in KiB and open descriptors of a process."""
    try:
        with open(f'/proc/{pid}/statm') as f:
            return dict(rss=int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') // 1024, descriptors=len(os.listdir(f'/proc/{pid}/fd')))
    except OSError:
        return {}
