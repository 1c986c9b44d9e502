"""I24: limits, against the attempts that the journal says were alive.

    limit {kind: global|tenant|key|job|backfill_share, name, most, db}    from then on; most null: no such limit.  A name
    that ends with * is for each that begins so and has no nearer one

A job_def may have tenant, limit_key (expanded, or a template without a period) and limit.  Only the start of an attempt is
judged: what runs above a lowered limit goes on.
"""
from collections import defaultdict

from history import INF


class Rules:
    """What was in force when."""

    def __init__(self, of):
        self.said = defaultdict(list)
        for e in sorted(of['limit'], key=lambda e: e['db']):
            self.said[e['kind'], e.get('name', '')].append((e['db'], e['most']))

    def exact(self, kind, name, t):
        told = [most for db, most in self.said.get((kind, name), ()) if db <= t]
        return told[-1] if told else None

    def most(self, kind, name, t):
        for rule in [name] + [name[:n] + '*' for n in range(len(name), -1, -1)]:
            if (most := self.exact(kind, rule, t)) is not None:
                return most
        return None

    def backfills(self, t):
        share, whole = self.exact('backfill_share', '', t), self.exact('global', '', t)
        return None if share is None or whole is None else max(1, whole * share // 100)


def check_limits(of, jobs, runs, bad):
    rules, alive = Rules(of), defaultdict(int)
    edges = []
    for generations in runs.values():
        for run in generations:
            for (a, b), filling in zip(run.busy, run.filling):
                names = list(counted(jobs.get(run.key[0], {'job': run.key[0]}), filling))
                edges.append((a, 1, run, names))
                if b < INF:
                    edges.append((b, 0, run, names))
    for t, starts, run, names in sorted(edges, key=lambda edge: edge[:2]):
        for name in names:
            alive[name] += 1 if starts else -1
            most = limit_of(rules, jobs, name, t) if starts else None
            if most is not None and alive[name] > most:
                bad('I24', f'{alive[name]} runs at a time of {"/".join(filter(None, name))}, of which {most} may be',
                    run=run.key, at=t)


def counted(job, filling):
    yield 'global', ''
    yield 'job', job['job']
    for kind in ('tenant', 'limit_key'):
        if job.get(kind):
            yield kind.removeprefix('limit_'), job[kind]
    if filling:
        yield 'backfill_share', ''


def limit_of(rules, jobs, name, t):
    if name[0] == 'job':
        return jobs.get(name[1], {}).get('limit')
    return rules.backfills(t) if name[0] == 'backfill_share' else rules.most(*name, t)
