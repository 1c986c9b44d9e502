"""Histories in the making, for the self-test: versions and fences as a right store would number them."""
from collections import Counter

JOB = dict(type='job_def', job='pay', start=0, every=60, until=600, deadline=50, grace=5, audit_cadence=30, audit_grace=10,
           policy='each', retention=3600, max_periods=30, max_parallel=1, ordered=True, steps=1, blind=True)


class Story(list):
    def __init__(self, **job):
        super().__init__([JOB | job])
        self.fence, self.ver, self.paid = 100, Counter(), set()

    def add(self, type, **fields):
        self.append(dict(type=type, job='pay', **fields))

    def jr(self, p, op, db, gen=1, **fields):
        self.ver[p, gen] += 1
        generation = {'gen': gen} if gen > 1 else {}
        self.add('jr', period=p, ver=self.ver[p, gen], op=op, db=db, **generation, **fields)

    def own(self, p, op, db, gen=1, **fields):
        self.jr(p, op, db, gen, token=self.fence, nonce=f'n{self.fence}', **fields)

    def claim(self, p, db, gen=1):
        self.fence += 1
        self.own(p, 'claim', db, gen, lease_until=db + 10)
        self.own(p, 'start', db + .01, gen, resume=None)

    def lose(self, p, db, gen=1, **fields):
        self.fence += 1
        self.jr(p, 'reclaim', db, gen, token=self.fence, **fields)

    def burn(self, p, db, gen=1, **fields):
        self.fence += 1
        self.jr(p, 'burn', db, gen, token=self.fence, **fields)

    def finish(self, p, db, gen=1, took=8, res='ok'):
        half = db + took / 2
        self.own(p, 'ckpt', db + took / 4, gen, n=1)
        self.own(p, 'hb', half, gen, lease_until=half + 10)
        self.own(p, 'commit', db + took, gen)
        self.add('commit', period=p, token=self.fence, res=res)
        if res == 'info':
            self.add('resolve', period=p, token=self.fence, ans='yes')
        if p not in self.paid:
            self.paid.add(p)
            self.add('effect', period=p, step=0, token=self.fence, db=db + took)
        self.final(p, 'DONE', gen, result_token=self.fence)

    def final(self, p, state, gen=1, **fields):
        fence = max((e.get('token', 0) for e in self if e['type'] == 'jr' and e['period'] == p), default=0)
        self.forget(p)
        self.add('final', period=p, gen=gen, state=state, token=fence, **fields)

    def forget(self, p):
        drop(self, lambda e: e['type'] == 'final' and e['period'] == p)

    def run(self, *periods, at=None, gen=1, took=8, res='ok', **fields):
        for p in periods:
            t = p + 1 if at is None else at
            self.jr(p, 'plan', t - .01 if gen > 1 or t > p + 5 else p - 5, gen, **fields)
            self.claim(p, t, gen)
            self.finish(p, t, gen, took, res)

    def fail(self, p, db, **fields):
        self.own(p, 'fail', db, **fields)
        self.final(p, 'FAILED')

    def skip(self, p, db, **fields):
        self.jr(p, 'skip', db, **fields)
        self.final(p, 'SKIPPED')

    def miss(self, *periods, db):
        for p in periods:
            self.add('miss', period=p, db=db)

    def reopen(self, *periods, db, by, old_state='DONE', lease_end=None):
        for p in periods:
            last = [e for e in self if e['type'] == 'jr' and e['period'] == p][-1]
            self.forget(p)
            self.add('reopened', period=p, gen=2, by=by, old_state=old_state, old_token=last.get('token', 0),
                     lease_end=lease_end, db=db)

    def end(self, cut=700):
        for t in range(0, cut, 30):
            self += [dict(type='beat', who='audit', db=t), dict(type='beat', who='audit2', db=t + 7)]
        self.append(dict(type='cut', db=cut, audit_every=30, audit2_every=30))
        return self


# ---- spoiling a history -----------------------------------------------------------------------------------------------

def jr(history, p, op, gen=1, n=0):
    return [e for e in history if e['type'] == 'jr' and (e['period'], e['op'], e.get('gen', 1)) == (p, op, gen)][n]


def one(history, type, p=None):
    return next(e for e in history if e['type'] == type and p in (None, e.get('period')))


def drop(history, which):
    history[:] = [e for e in history if not which(e)]


def of(p, gen=1):
    return lambda e: e.get('period') == p and e.get('gen', 1) == gen and e['type'] != 'reopened'


def renumber(history, p):
    for n, e in enumerate([e for e in history if e['type'] == 'jr' and e['period'] == p], 1):
        e['ver'] = n


def later(history, p, by, *ops):
    """Moves these operations of a period, and its effect; its leases grow with them."""
    for e in history:
        if e.get('period') == p and (e['type'] == 'effect' or e.get('op') in ops):
            e['db'] += by
        if e.get('period') == p and 'lease_until' in e:
            e['lease_until'] += max(by, 0)


def fences(history, which, change):
    for e in history:
        if which(e):
            e.update({k: change(e[k]) for k in ('token', 'result_token') if e.get(k) is not None})
