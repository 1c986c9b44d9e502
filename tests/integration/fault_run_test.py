"""Kill -9 and SIGSTOP of nodes, guards and jobs, rows deleted, connections cut, at random instants; then everything due is
DONE (I20), each step is in the business table once (I12), and the checker finds nothing.

MATINS_FAULT_SEED and MATINS_FAULT_SECONDS choose another run than a random one of usual length.
"""
import os
import random
import secrets
import subprocess
import sys
import time
import unittest
from collections import Counter

import fault_run
from support import StoreCase, eventually, mariadb_port, postgres_port

PEACE = 180     # seconds in which all that is due has to be done after the last fault (I20)

JUST_NOW = 10   # seconds for what has fallen due last


class Faults(StoreCase):
    """A run of one shape on one store."""
    MUST = 'kill_node', 'stop_node', 'delete_row'

    def storm(self, shape, nodes, seconds):
        seed = fault_run.seed()
        print(f'{shape} on {self.kind}: MATINS_FAULT_SEED={seed}', flush=True)
        self.work = fault_run.Work(self.folder)
        with open(os.path.join(self.folder, 'jobs.yaml'), 'w') as f:
            f.write(self.work.jobs())
        self.members = self.places(nodes)
        self.nemesis = fault_run.Nemesis(self, self.members, random.Random(seed), self.cuts())
        try:
            for member in self.members:
                member.start()
            eventually('the first rows', lambda: self.sql('select job_name, period from job_watermark'))
            self.work.begun = time.time() + 1
            self.nemesis.rage(fault_run.fault_seconds(seconds), self.enough)
            self.peace()
            self.judge()
        except BaseException:
            print('\n'.join(self.nemesis.told), file=sys.stderr)
            fault_run.keep(self.folder, f'{shape}-{self.kind}-{seed}')
            raise

    def places(self, nodes):
        return [fault_run.Member(self, number) for number in range(nodes)]

    def cuts(self):
        return ()

    def calm(self):
        """Ends what the cuts began."""

    def enough(self):
        """Whether the faults have led to what the verdict shall be about."""
        did = self.nemesis.done
        lost, reopened = (int(self.sql(text)[0][0]) for text in (
            "select count(*) from job_journal where op = 'reclaim'", "select count(*) from job_event where kind = 'reopened'"))
        return (all(did[what] for what in self.MUST) and lost > 1 and reopened > 1 and
                did['stop_guard'] + did['stop_body'] + did['kill_guard'] + did['kill_body'] > 1 and
                fault_run.refusals(fault_run.seen(self.members)) > 0)

    def peace(self):
        self.calm()
        for member in self.members:
            if not member.alive():
                member.start()

        def open_periods():
            due = self.work.due(time.time() - JUST_NOW)       # what fell due meanwhile too: it is judged as well
            rows = {(job, period): status for job, period, status in
                    self.sql('select job_name, period, status from job_watermark')}
            return [(job, period, rows.get((job, period))) for job, periods in due.items() for period in periods
                    if rows.get((job, period)) not in (('DONE', 'SKIPPED') if job == 'cache' else ('DONE',))]

        try:
            eventually('all that is due', lambda: not open_periods(), PEACE)
        except AssertionError as e:
            raise AssertionError(f'{e}: {open_periods()}') from None
        for member in self.members:
            self.assertEqual(member.stop(), 0, member.log)

    def judge(self):
        times = Counter((job, period, step) for job, period, step, _ in self.work.entries())
        self.assertEqual([entry for entry, count in times.items() if count != 1], [], 'applied more than once')
        evidence = fault_run.Evidence(self, self.work, self.members)
        self.assertTrue(evidence.verdict['valid'], evidence.verdict['violations'])
        did, stats = self.nemesis.done, evidence.stats
        self.assertEqual(did['ended_by_itself'], 0, 'a node ended by itself')
        print(f'  did {dict(did)}\n  stats {dict(stats)}\n  refused {fault_run.refusals(evidence.seen)}', flush=True)
        # What did not happen was not judged.
        self.assertTrue(self.enough())
        for what in ('lost', 'reopened', 're_executions', 'commits', 'effects'):
            self.assertGreater(stats[what], 0, what)
        return evidence


class Sqlite(Faults):
    kind = 'sqlite'

    def test_busy(self):
        self.storm('busy', nodes=3, seconds=40)

    def test_lonely(self):
        self.storm('lonely', nodes=1, seconds=35)


class Postgresql(Faults):
    """One database a run, so that only its own backends are killed. Of the nodes of `busy` one speaks through a proxy that
    loses answers, one through pgbouncer."""
    kind = 'postgresql'
    MUST = *Faults.MUST, 'kill_backend', 'drop_reply'
    # What a call of each sort has in it; its answer is swallowed after it took effect.
    CALLS = ('select v.n, v.noted', "op = 'claim'", "op = 'hb'", "op = 'reclaim'", "op = 'dispatch'")

    def fresh_store(self):
        server = f'postgresql://postgres@127.0.0.1:{postgres_port()}'
        self.database = f'fault_{secrets.token_hex(6)}'
        self.psql(f'{server}/postgres', f'create database {self.database}')
        self.addCleanup(self.psql, f'{server}/postgres', f'drop database {self.database} with (force)')
        return f'{server}/{self.database}?schema=matins'

    def psql(self, url, statement):
        subprocess.run(['psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', url, '-c', statement], check=True, timeout=60)

    def places(self, nodes):
        self.proxy = fault_run.Proxy(self, postgres_port())
        ports = [self.proxy.port]
        if nodes > 1:
            ports += [fault_run.Pool(self, postgres_port()).port, postgres_port()]
        return [fault_run.Member(self, number, self.store.replace(f':{postgres_port()}/', f':{ports[number % len(ports)]}/'))
                for number in range(nodes)]

    def cuts(self):
        return ('kill_backend', self.kill_backend), ('drop_reply', self.drop_reply), ('blackhole', self.blackhole), \
            ('reset', lambda: self.proxy.ask('reset'))

    def kill_backend(self):
        pids = [pid for pid, in self.sql('select pid from pg_stat_activity where datname = current_database() and '
                                         "pid <> pg_backend_pid() and backend_type = 'client backend' order by pid")]
        pid = self.nemesis.rng.choice(pids) if pids else 0
        self.sql(f'select pg_terminate_backend({pid})')
        return pid

    def drop_reply(self):
        call = self.nemesis.rng.choice(self.CALLS)
        self.proxy.ask(f'drop_reply {call}')
        return call

    def blackhole(self):
        self.proxy.ask('blackhole')
        self.nemesis.at(self.nemesis.rng.uniform(0.3, 3), lambda: self.proxy.ask('pass'))

    def calm(self):
        self.proxy.ask('pass')

    def hits(self):
        return int(self.proxy.ask('hits'))

    def judge(self):
        evidence = super().judge()
        print(f'  swallowed {self.hits()}, of ends {evidence.seen["commit info"] + evidence.seen["fail info"]}', flush=True)

    def enough(self):
        return super().enough() and self.hits() > 0

    def test_busy(self):
        self.storm('busy', nodes=4, seconds=40)

    def test_lonely(self):
        self.storm('lonely', nodes=1, seconds=35)


class Mariadb(Faults):
    """A database a run, so that only its own connections are killed. Half of the nodes of `busy` speak through a proxy that
    loses answers."""
    kind = 'mariadb'
    MUST = *Faults.MUST, 'kill_connection', 'drop_reply'
    CALLS = ("r.op = 'commit'", "r.op = 'claim'", "r.op = 'hb'", '"op":"reclaim"', "r.op = 'dispatch'")

    def places(self, nodes):
        self.proxy = fault_run.Proxy(self, mariadb_port(), 'mariadb')
        ports = self.proxy.port, mariadb_port()
        return [fault_run.Member(self, number, self.store.replace(f':{mariadb_port()}/', f':{ports[number % 2]}/'))
                for number in range(nodes)]

    def cuts(self):
        return ('kill_connection', self.kill_connection), ('drop_reply', self.drop_reply), ('blackhole', self.blackhole), \
            ('reset', lambda: self.proxy.ask('reset'))

    def kill_connection(self):
        ids = [row[0] for row in self.sql('select id from information_schema.processlist where db = database() and '
                                          'id <> connection_id() order by id')]
        if not ids:
            return 0
        chosen = self.nemesis.rng.choice(ids)
        # Between the two it may have gone by itself.
        subprocess.run(['mariadb', '--no-defaults', '-h', '127.0.0.1', '-P', str(mariadb_port()), '-u', 'root', '-e',
                        f'kill {chosen}'], stderr=subprocess.DEVNULL, timeout=60, check=False)
        return chosen

    drop_reply, blackhole, calm, hits = Postgresql.drop_reply, Postgresql.blackhole, Postgresql.calm, Postgresql.hits

    def enough(self):
        return super().enough() and self.hits() > 0

    def test_busy(self):
        self.storm('busy', nodes=4, seconds=40)

    def test_lonely(self):
        self.storm('lonely', nodes=1, seconds=35)


if __name__ == '__main__':
    unittest.main()
