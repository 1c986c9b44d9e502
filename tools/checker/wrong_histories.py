"""Wrong histories: each must be caught by the promise named."""
from right_histories import changed, changed_behind_a_deletion, deleted, drill, held, lost, opened_again, outage, overtaken, plain, rerun, waived, days, unaudited
from story import Story, drop, fences, jr, later, of, one, renumber

WRONG = []


def wrong(inv, what, start=plain):
    return lambda f: WRONG.append((inv, what, start, f))


def as_told(inv, what, start):
    WRONG.append((inv, what, start, lambda H: None))


@wrong('I0', 'planned twice')
def _(H):
    jr(H, 60, 'hb').update(op='plan')


@wrong('I1', 'two accepted commits')
def _(H):
    H.append(dict(jr(H, 60, 'commit'), ver=7))


@wrong('I1', 'two accepted commits in generation 2', rerun)
def _(H):
    H.append(dict(jr(H, 60, 'commit', 2), ver=7))


@wrong('I2', 'claim after DONE')
def _(H):
    H.jr(600, 'claim', 620, token=1000, nonce='z', lease_until=630)
    one(H, 'final', 600)['token'] = 1000


@wrong('I2', 'generation 2 that no recorded act opened', rerun)
def _(H):
    drop(H, lambda e: e['type'] == 'reopened')


@wrong('I2', 'a trigger starts a FAILED(held) period', lambda: waived(skip=None, held=True))
def _(H):
    H.jr(300, 'claim', 650, token=1000, nonce='z', lease_until=660)
    H.final(300, 'RUNNING')


@wrong('I3', 'zombie commit accepted (stale fence)')
def _(H):
    jr(H, 120, 'commit')['token'] = jr(H, 120, 'claim')['token']


@wrong('I3', 'zombie with the same number, other nonce')
def _(H):
    jr(H, 60, 'commit')['nonce'] = 'lost-timeline'


@wrong('I3', 'heartbeat accepted after the attempt had failed', lambda: waived(skip=None))
def _(H):
    H.own(300, 'hb', 304, lease_until=314)
    jr(H, 300, 'hb').update({k: jr(H, 300, 'fail')[k] for k in ('token', 'nonce')})


@wrong('I3', 'old generation goes on after its row was deleted', deleted)
def _(H):
    H.append(dict(jr(H, 480, 'start'), op='hb', ver=4, db=485, lease_until=491))
    one(H, 'reopened')['lease_end'] = 491


@wrong('I3', 'result under a fence that was never granted')
def _(H):
    one(H, 'final', 60)['result_token'] = 1000


@wrong('I4', 'commit 2 s after the lease')
def _(H):
    jr(H, 60, 'commit')['db'] = 60 + 17


@wrong('I5', 'heartbeat resurrects')
def _(H):
    jr(H, 60, 'hb')['db'] = 60 + 11.5
    jr(H, 60, 'commit')['db'] = 60 + 12


@wrong('I5', 'heartbeat shortens the lease')
def _(H):
    jr(H, 60, 'hb')['lease_until'] = 60 + 10


@wrong('I6', 'fence reused after a lost lease')
def _(H):
    burnt = jr(H, 120, 'reclaim')['token']
    fences(H, lambda e: e.get('token') == burnt + 1, lambda f: burnt)


@wrong('I6', 'fence goes back across rows of one job')
def _(H):
    fences(H, of(420), lambda f: 50)


@wrong('I6', 'deleted row starts again at fence 1', drill)
def _(H):
    fences(H, of(300, 2), lambda f: 1)
    fences(H, lambda e: e['type'] == 'commit' and e['period'] == 300, lambda f: 1)


@wrong('I6', 'fence below that of a row deleted before the history began', rerun)
def _(H):
    drop(H, lambda e: e['type'] == 'jr' and of(60)(e))
    one(H, 'reopened')['old_token'] = 1000


def crowded(**limit):
    """Two periods run at a time where a limit allows one."""
    H = Story(blind=False, ordered=False, tenant='payments', limit_key='bank-a', **({'limit': 1} if not limit else {}))
    if limit:
        H.append(dict(type='limit', db=0, **limit))
    H.run(0, at=45, took=18)
    H.run(*range(60, 601, 60))
    return H.end()


for what, limit in (('the store', dict(kind='global', most=1)), ('a tenant', dict(kind='tenant', name='payments', most=1)),
                    ('a tenant, by a pattern', dict(kind='tenant', name='*', most=1)),
                    ('a key', dict(kind='key', name='bank-a', most=1)), ('a job', {})):
    as_told('I24', f'more runs at a time than {what} may have', lambda limit=limit: crowded(**limit))


def unseen():
    return days(Story(blind=False, ordered=False, race=200), 600).end()


@wrong('I6', 'one fence for two claims at the same time', unseen)
def _(H):
    fences(H, of(420), lambda f: jr(H, 360, 'claim')['token'])


@wrong('I7', 'claim over a live lease')
def _(H):
    drop(H, lambda e: e.get('op') == 'reclaim')
    renumber(H, 120)
    jr(H, 120, 'claim', n=1)['db'] = 120 + 5


@wrong('I7', 'reclaimed under a live lease')
def _(H):
    jr(H, 120, 'reclaim')['db'] = 120 + 5


as_told('I7', "claim over a deleted row's live lease", lambda: deleted(again=486))


@wrong('I7', '... and the reopened event does not tell of the lease', lambda: deleted(again=486))
def _(H):
    one(H, 'reopened')['lease_end'] = None


as_told('I7', '... skipped and opened again in between', lambda: opened_again(again=486))


@wrong('I7', '... and the row is older than the history', lambda: deleted(again=486))
def _(H):
    drop(H, lambda e: e['type'] == 'jr' and of(480)(e))


@wrong('I8', 'db clock regress')
def _(H):
    jr(H, 180, 'commit')['db'] = 180 + 1


@wrong('I8', 'db clock regress of more than the mark may lag, though it was noticed')
def _(H):
    jr(H, 180, 'commit')['db'] = jr(H, 180, 'claim')['db'] - 3
    H.append(dict(type='clock', db=jr(H, 180, 'commit')['db']))


@wrong('I8', 'db clock regress to where no stop of the clock was')
def _(H):
    jr(H, 180, 'commit')['db'] = 180 + 1
    H.append(dict(type='clock', db=180))


@wrong('I9', 'resolved NO but committed')
def _(H):
    one(H, 'resolve')['ans'] = 'no'


@wrong('I9', 'resolved YES but not committed')
def _(H):
    H.add('resolve', period=120, token=jr(H, 120, 'claim')['token'], ans='yes')


@wrong('I9', 'refused to the worker but committed')
def _(H):
    one(H, 'commit', 60)['res'] = 'refused'


@wrong('I10', 'checkpoint overwritten by an older one')
def _(H):
    jr(H, 60, 'hb').update(op='ckpt', n=0)


@wrong('I10', "generation 2 resumes at generation 1's checkpoint", drill)
def _(H):
    jr(H, 300, 'start', 2)['resume'] = 1


@wrong('I11', 'acknowledged commit lost (failover)')
def _(H):
    drop(H, lambda e: e.get('period') == 300 and (e['type'] == 'effect' or e.get('op') == 'commit'))
    one(H, 'final', 300).update(state='RUNNING', result_token=None)


@wrong('I12', 'effect twice')
def _(H):
    H.append(dict(one(H, 'effect', 60)))


@wrong('I12', 'effect twice: the re-run paid again', rerun)
def _(H):
    H.append(dict(one(H, 'effect', 60), db=649))


@wrong('I12', 'DONE without effect')
def _(H):
    drop(H, lambda e: e['type'] == 'effect' and e['period'] == 360)


@wrong('I12', 'effect of a period that is not DONE', waived)
def _(H):
    H.add('effect', period=300, step=0, db=302)


@wrong('I12', 'effect of a period that was never planned')
def _(H):
    H.add('effect', period=90, step=0, db=95)


@wrong('I13', 'silent miss')
def _(H):
    drop(H, lambda e: e.get('period') == 420)


@wrong('I13', 'miss reported too late', unseen)
def _(H):
    drop(H, lambda e: e.get('period') == 420)
    H.miss(420, db=420 + 100)


@wrong('I13', 'late and unreported', unseen)
def _(H):
    later(H, 540, 110, 'claim', 'start', 'ckpt', 'hb', 'commit')


@wrong('I13', 'deleted row neither filled nor reported', drill)
def _(H):
    drop(H, of(300, 2))


@wrong('I13', 'label-blind: the labels lie, one period had no effect in time')
def _(H):
    one(H, 'effect', 420)['db'] = 365


@wrong('I14', 'policy latest ran all')
def _(H):
    H[0]['policy'] = 'latest'
    H.add('gap', **{'from': 60, 'to': 300})


@wrong('I14', 'policy each: reported as missed, never run', unseen)
def _(H):
    drop(H, of(420))
    H.miss(420, db=500)


as_told('I14', 'SKIPPED without a reason', lambda: waived(skip=dict(by='person')))


@wrong('I14', 'SKIPPED(superseded) under policy each', outage)
def _(H):
    jr(H, 60, 'skip')['reason'] = 'superseded'


@wrong('I15', 'started early')
def _(H):
    jr(H, 60, 'claim')['db'] = 55.5
    jr(H, 60, 'start')['db'] = 56


@wrong('I15', 'period not in the schedule')
def _(H):
    H.run(90, at=610)


as_told('I15', 'a period of the schedule before the change', lambda: changed(skipped=None, ran=(480, 540)))
as_told('I15', 'the same, which stood until it was due', lambda: changed_behind_a_deletion(at=541))
as_told('I15', 'SKIPPED(changed), but the schedule in force contains it', lambda: changed(skipped=480, ran=()))


@wrong('I16', 'ordered job: N+1 starts while N runs')
def _(H):
    later(H, 180, 58, 'hb', 'commit')


as_told('I16', 'N+1 starts after the final FAILED of N', lambda: waived(skip=None))
as_told('I16', 'N+1 starts after N was FAILED(held)', lambda: waived(skip=None, held=True))
as_told('I16', 'the scheduler skips the FAILED N to go on', lambda: waived(skip=dict(by='policy', reason='failed')))
as_told('I16', 'a person skips N without a reason', lambda: waived(skip=dict(by='person')))


@wrong('I16', 'N+1 runs though N was never planned')
def _(H):
    drop(H, lambda e: e.get('period') == 420)
    H.miss(420, db=500)


as_told('I16', 'rows deleted, the next starts before they are DONE again', lambda: drill(in_order=False))
as_told('I16', 'an old row deleted, the next starts before it is DONE again', lambda: drill(in_order=False, rows=(300,)))
as_told('I17', 'max_parallel exceeded', lambda: outage(max_parallel=1, second=369))
as_told('I17', 'a period beyond max_periods is run', lambda: outage(skipped=(60, 120)))


@wrong('I17', 'a FAILED period is tried again by a trigger that owes newer ones', overtaken)
def _(H):
    jr(H, 120, 'reclaim')['final'] = True


@wrong('I17', 'periods beyond max_periods are left lying', lambda: outage(last=420))
def _(H):
    drop(H, of(60))


as_told('I17', 'SKIPPED(cap) inside max_periods', lambda: outage(skipped=(60, 120, 180, 240)))
as_told('I17', 'back-fill beyond the retention', lambda: drill(retention=150))


@wrong('I18', 'auditor dead, nobody alarmed')
def _(H):
    drop(H, lambda e: e['type'] == 'beat' and e['who'] == 'audit' and 200 < e['db'] < 600)


@wrong('I20', 'a lost lease taken for a failure')
def _(H):
    jr(H, 120, 'reclaim')['final'] = True


as_told('I20', 'lost three times and given back twice, and taken for a failure', lambda: lost(burnt=(1, 3)))
as_told('I20', 'recovery: hold, and the lost run is run again', lambda: held(held=False))


@wrong('J', 'an operation that nobody knows')
def _(H):
    jr(H, 60, 'plan')['op'] = 'planned'


@wrong('J', 'journal gap')
def _(H):
    drop(H, lambda e: e['type'] == 'jr' and e['period'] == 60 and e['op'] == 'hb')


@wrong('J', 'final row is not what its journal says')
def _(H):
    one(H, 'final', 60)['state'] = 'RUNNING'


@wrong('J', 'row without a journal')
def _(H):
    drop(H, lambda e: e['type'] == 'jr' and e['period'] == 600)


@wrong('J', 'reopened event forgets the lease of the deleted row', deleted)
def _(H):
    one(H, 'reopened')['lease_end'] = None


@wrong('J', 'a generation is missing', rerun)
def _(H):
    for e in H:
        if e.get('gen') == 2:
            e.update(gen=3)


@wrong('I2', 'a trigger gives new attempts to a DONE period', unaudited)
def _(H):
    H.jr(600, 'again', 650)
    renumber(H, 600)
    H.final(600, 'PLANNED')


@wrong('I14', 'no audit, and a period that nobody settled', unaudited)
def _(H):
    drop(H, lambda e: e.get('period') == 300)


@wrong('I15', 'a claim that starts the run comes early', unaudited)
def _(H):
    jr(H, 60, 'claim')['db'] = 56


@wrong('I10', "a claim offers generation 1's checkpoint", lambda: again_by_hand())
def _(H):
    jr(H, 60, 'claim', 2)['resume'] = 1


def again_by_hand():
    H = rerun()
    H[0]['claim_starts'] = True
    drop(H, lambda e: e.get('op') == 'start')
    for e in [e for e in H if e.get('op') == 'claim']:
        e['resume'] = None
    for p in range(0, 601, 60):
        for gen in (1, 2):
            for n, e in enumerate([e for e in H if e['type'] == 'jr' and of(p, gen)(e)], 1):
                e['ver'] = n
    return H
