"""W2, the store's journal, replayed: each accepted change against the state before it."""
from collections import defaultdict

from history import INF, LIVE, same_status

# The reasons for which the scheduler itself may skip -> the only misfire policy that may give that reason.
REASONS = {'missed': 'skip', 'superseded': 'latest', 'cap': None, 'expired': None, 'unfillable': None, 'replaced': None,
           'changed': None}
OWNER_OPS = ('start', 'hb', 'ckpt', 'commit', 'fail')
OTHER_OPS = ('plan', 'again', 'claim', 'reclaim', 'burn', 'skip')
IDLE_OPS = ('dispatch', 'unhold', 'judge', 'putoff', 'cancel')     # change nothing that is judged here


NOTICED = 2     # seconds that the store's clock may have gone on since the mark at which it stands when it went back


class Run:
    """One generation of one period."""

    def __init__(self, key, job, before, act, report, marks=()):
        self.key, self.gen, self.job, self.report, self.marks = key, key[2], job, report, marks
        self.state = self.nonce = self.lease = self.ckpt = None
        self.last = None                    # instant of the last change
        self.tok, self.lost, self.commits = 0, 0, 0
        self.granted = set()                # fences given with claims
        self.held = self.backfill = self.manual = False
        self.planned = None
        self.settled = None                 # instant of DONE, or of a SKIPPED for a reason that counts
        self.skip = None                    # that reason
        self.end = None                     # the operation that made the last end state
        self.starts, self.first = [], []    # first: the first start after each trigger
        self.fresh = True                   # the next start is the first after a trigger
        self.asked = None                   # when that trigger gave a FAILED period new attempts
        self.held_from = None               # since when it waits for a person
        self.filling = []                   # whether each attempt was a back-fill's
        self.busy = []                      # [from, to] of each attempt
        self.by = act and act['by']
        self.opened = act and act['db']
        self.wait = -INF                    # no claim before this
        if before:
            self.follow(before, act)
        if act:
            self.tok = max(self.tok, act['old_token'])
            self.wait = max(self.wait, act['lease_end'] or -INF)
        elif self.gen > 1:
            self.bad('I2', 'a generation that no recorded act opened')

    def bad(self, promise, what, **more):
        self.report(promise, what, run=self.key, **more)

    def by_hand(self):
        return self.manual or self.by in ('person', 'rerun')

    def follow(self, old, act):
        """Fences and a live lease outlast the row; what `reopened` says must be what the journal says."""
        lease = old.lease if old.state in LIVE else None
        self.tok, self.wait = old.tok, lease or (-INF if old.granted else old.wait)
        if old.gen != self.gen - 1:
            self.bad('J', 'a generation is missing before this one')
        if not act:
            return
        told = (act['old_token'], act['lease_end'] if lease else None)
        if told != (old.tok, lease) or not same_status(act['old_state'], old.state, old.held):
            self.bad('J', 'reopened event differs from the journal', event=(act['old_state'], *told))
        if old.last is not None and old.last > act['db']:
            self.bad('I3', 'ZOMBIE ACCEPTED: the old generation went on')
        old.stop(act['db'])                 # its owner is no owner any more, and is told so by its next beat

    def stop(self, db):
        if self.busy and self.busy[-1][1] == INF:
            self.busy[-1][1] = db

    def leave(self, e, state):
        self.stop(e['db'])
        self.state, self.lease = state, None
        self.end = e if state in ('DONE', 'FAILED', 'SKIPPED') else None

    def give_back(self, e):
        self.held = bool(e.get('held'))
        self.held_from = e['db'] if self.held else None
        self.fresh = self.fresh or bool(e.get('final'))
        self.leave(e, 'FAILED' if e.get('held') or e.get('final') else 'PLANNED')

    def new_fence(self, e):
        """Given with a claim, or burnt by whoever took the run away."""
        if e['token'] <= self.tok:
            self.bad('I6', 'fence not greater than every earlier one of its row', was=self.tok, now=e['token'])
        self.tok = e['token']

    def apply(self, e):
        op, db = e['op'], e['db']
        if self.last is not None and db < self.last - 1e-9 and not (db in self.marks and self.last - db <= NOTICED):
            self.bad('I8', 'db clock went back inside one journal', op=op, ver=e['ver'], by=round(self.last - db, 6))
        person_skips = (op, e.get('by')) == ('skip', 'person')
        if self.state in ('DONE', 'SKIPPED') or self.held and not person_skips:
            self.bad('I2', f'{op} after the final state {self.state}', ver=e['ver'])
        self.last = db
        if self.state == 'FAILED' and self.asked is None and op in ('again', 'dispatch'):
            self.asked = db
        self.backfill |= bool(e.get('backfill'))
        self.manual |= bool(e.get('manual'))
        if op in OWNER_OPS:
            self.work(e)
        elif op in OTHER_OPS:
            getattr(self, 'on_' + op)(e)
        elif op not in IDLE_OPS:
            self.bad('J', f'unknown operation {op}')

    def on_plan(self, e):
        if self.state is not None:
            self.bad('I0', 'planned twice')
        self.state, self.planned = 'PLANNED', e['db']

    def on_again(self, e):
        if self.state != 'FAILED':
            self.bad('I2', f'a trigger gave new attempts in state {self.state}')
        self.leave(e, 'PLANNED')

    def on_claim(self, e):
        until = self.lease if self.state in LIVE else self.wait
        if e['db'] < until:                         # a lease is alive before its end, not at it
            self.bad('I7', 'claimed while the previous lease was alive', left=round(until - e['db'], 3))
        self.lost += self.state in LIVE
        self.new_fence(e)
        self.granted.add(e['token'])
        self.leave(e, 'CLAIMED')
        self.busy.append([e['db'], INF])
        # A later trigger may judge a period otherwise than the one before it.
        self.filling.append(e.get('backfill', self.backfill))
        self.nonce, self.lease = e.get('nonce'), e['lease_until']
        if self.job.get('claim_starts'):
            self.work_start(e)

    def on_reclaim(self, e):
        if e['db'] < (self.lease or -INF):
            self.bad('I7', 'reclaimed while the lease was alive', left=round(self.lease - e['db'], 3))
        self.lost += 1
        recovery = self.job.get('recovery')
        if e.get('cancelled'):
            pass                                    # a person had asked for its end, and the loss was that
        elif recovery == 'hold' or recovery == 'resume' and self.ckpt is None:
            if not e.get('held'):
                self.bad('I20', f'recovery: {recovery}, but a lost lease was not held')
        elif (e.get('held') or e.get('final')) and self.lost < self.job.get('max_lost', 5):
            self.bad('I20', 'a lost lease was taken for a failure', lost=self.lost)
        if e.get('token') is not None:
            self.new_fence(e)
        self.give_back(e)

    def on_burn(self, e):
        self.lost += self.state in LIVE and bool(e.get('lost'))
        self.new_fence(e)
        self.give_back(e)

    def on_skip(self, e):
        reason, policy = e.get('reason'), self.job.get('policy')
        if reason and (e.get('by') == 'person' or REASONS.get(reason, '?') in (None, policy)):
            self.settled, self.skip = e['db'], reason
        else:
            self.bad('I14', f'SKIPPED for no reason that counts: {reason}')
        if e.get('token') is not None:
            self.new_fence(e)
        self.leave(e, 'SKIPPED')

    def work(self, e):
        """What only the owner may do."""
        op, late = e['op'], 0 if self.lease is None else e['db'] - self.lease
        other_nonce = self.nonce and e.get('nonce') and e['nonce'] != self.nonce
        if e['token'] != self.tok or other_nonce:
            self.bad('I3', f'ZOMBIE ACCEPTED: {op} with fence {e["token"]}, current {self.tok}', ver=e['ver'])
        elif self.state not in LIVE:
            self.bad('I3', f'ZOMBIE ACCEPTED: {op} while nobody owned the run', ver=e['ver'])
        if late > 0:
            self.bad('I5' if op == 'hb' else 'I4', f'{op} accepted {late:.3f} s after the lease ended', ver=e['ver'])
        getattr(self, 'work_' + op)(e)

    def work_start(self, e):
        if 'resume' in e and e['resume'] != self.ckpt:
            self.bad('I10', f'resumed at {e["resume"]}, last accepted checkpoint {self.ckpt}')
        self.state = 'RUNNING'
        self.starts.append(e['db'])
        if self.fresh:
            self.fresh = False
            # What a trigger tries again is judged by that trigger, and by no later one.
            self.first.append(e['db'] if self.asked is None else self.asked)
            self.asked = None

    def work_hb(self, e):
        if e['lease_until'] < (self.lease or 0):
            self.bad('I5', 'heartbeat shortened the lease')
        self.lease = e['lease_until']

    def work_ckpt(self, e):
        if self.ckpt is not None and e['n'] <= self.ckpt:
            self.bad('I10', f'checkpoint went back {self.ckpt} -> {e["n"]}')
        self.ckpt = e['n']

    def work_commit(self, e):
        self.commits += 1
        self.settled = e['db']
        self.leave(e, 'DONE')

    def work_fail(self, e):
        self.give_back(e)


def replay(of, jobs, bad):
    """-> {(job, period): [Run of generation 1, 2, ...]}, each checked on the way"""
    journal, acts, runs = defaultdict(list), {}, defaultdict(list)
    for e in of['jr']:
        journal[e['job'], e['period'], e.get('gen', 1)].append(e)
    for e in of['reopened']:
        acts[e['job'], e['period'], e['gen']] = e
    marks = {e['db'] for e in of['clock']}
    for key in sorted(journal.keys() | acts.keys()):
        generations = runs[key[:2]]
        entries = sorted(journal[key], key=lambda e: e['ver'])
        run = Run(key, jobs.get(key[0], {}), generations[-1] if generations else None, acts.get(key), bad, marks)
        if [e['ver'] for e in entries] != list(range(1, len(entries) + 1)):
            run.bad('J', 'journal gap or duplicate version')
        for e in entries:
            run.apply(e)
        if run.opened is None:
            run.opened = entries[0]['db']
        if run.commits > 1:
            run.bad('I1', f'{run.commits} accepted commits in one generation')
        generations.append(run)
    return runs
