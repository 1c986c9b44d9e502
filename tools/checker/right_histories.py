"""Right histories: each must pass."""
from story import Story, drop, fences, renumber

RIGHT = []


def right(what):
    return lambda f: RIGHT.append((what, f)) or f


def days(H, to):
    """The life of a job: at 120 a worker dies, another takes over and the zombie is refused; at 240 an answer is lost."""
    H.run(0, 60)
    H.jr(120, 'plan', 115)
    H.claim(120, 121)
    H.add('commit', period=120, token=H.fence, res='refused')
    H.lose(120, 132)
    H.claim(120, 133)
    H.finish(120, 133)
    H.run(180)
    H.run(240, res='info')
    H.run(*range(300, to + 1, 60))
    return H


@right('plain: take-over, refused zombie, unknown answer')
def plain():
    return days(Story(), 600).end()


@right('take-over by the claim itself, without a reclaim')
def direct():
    H = plain()
    drop(H, lambda e: e.get('op') == 'reclaim')
    renumber(H, 120)
    return H


@right('the clock went back, was noticed, and stands still at its mark')
def stopped_clock():
    H = plain()
    commit = next(e for e in H if e['type'] == 'jr' and (e['period'], e['op']) == (180, 'commit'))
    earlier = max(e['db'] for e in H if e['type'] == 'jr' and e['period'] == 180 and e['ver'] < commit['ver'])
    commit['db'] = earlier - 0.4
    H.append(dict(type='clock', db=commit['db']))
    return H


@right('fences as decimal strings, beyond 2^53')
def strings():
    H = plain()
    fences(H, lambda e: True, lambda f: str(f + (1 << 60)))
    return H


@right('drill: three rows deleted, all re-run and DONE')
def drill(in_order=True, rows=(300, 360, 420), **job):
    H = days(Story(**job), 420)
    H.reopen(*rows, db=445, by='delete')
    if not in_order:
        H.run(480, at=480.1, took=.2)
    for n, p in enumerate(rows):
        H.run(p, at=480.5 + 2 * n, gen=2, took=1, backfill=True)
    if in_order:
        H.run(480, at=487)
    H.run(540, 600)
    return H.end()


@right('re-run by a person: one commit in each of two generations')
def rerun():
    H = days(Story(), 600)
    H.reopen(60, db=640, by='rerun')
    H.run(60, at=641, gen=2)
    return H.end()


@right('row of a live run deleted: the next claim waits for its lease')
def deleted(again=491.5):
    H = days(Story(), 420)
    H.jr(480, 'plan', 480.5, backfill=True)
    H.claim(480, 481)
    H.add('commit', period=480, token=H.fence, res='refused')
    H.reopen(480, db=484, by='delete', old_state='RUNNING', lease_end=491)
    H.run(480, at=again, gen=2, backfill=True)
    H.run(540, 600)
    return H.end()


@right('... and it waits too where the new row was skipped and opened again')
def opened_again(again=491.5):
    H = days(Story(), 420)
    H.jr(480, 'plan', 480.5, backfill=True)
    H.claim(480, 481)
    H.reopen(480, db=484, by='delete', old_state='RUNNING', lease_end=491)
    H.jr(480, 'plan', 484.1, gen=2)
    H.skip(480, 484.2, gen=2, by='person', reason='not wanted')
    H.forget(480)
    H.add('reopened', period=480, gen=3, by='person', old_state='SKIPPED', old_token=H.fence, lease_end=None, db=485)
    H.run(480, at=again, gen=3, backfill=True)
    H.run(540, 600)
    return H.end()


@right('N FAILED; the next trigger runs N, then N+1')
def failed():
    H = days(Story(blind=False), 240)
    H.jr(300, 'plan', 295)
    H.claim(300, 301)
    H.fail(300, 303)
    H.claim(300, 310)
    H.fail(300, 312, final=True)
    H.miss(300, db=371)
    H.claim(300, 360.5)
    H.finish(300, 360.5, took=1)
    H.run(360, at=362)
    H.run(420, 480, 540, 600)
    return H.end()


@right('N FAILED; a person skips it with a reason; N+1 runs')
def waived(skip=dict(by='person', reason='source closed, booked by hand'), **failure):
    H = days(Story(blind=False), 240)
    H.jr(300, 'plan', 295)
    H.claim(300, 301)
    H.fail(300, 303, final=True, **failure)
    if skip:
        H.skip(300, 350, **skip)
    H.run(*range(360, 601, 60))
    return H.end()


@right('outage: the newest three of six kept, the older SKIPPED(cap)')
def outage(skipped=(60, 120, 180), second=372, last=600, **job):
    H = Story(**{'ordered': False, 'blind': False, 'max_periods': 3, 'max_parallel': 2} | job)
    H.run(0)
    H.add('gap', **{'from': 60, 'to': 360})
    for p in skipped:
        H.jr(p, 'plan', 366)
        H.skip(p, 366, by='policy', reason='cap')
    for p in {60, 120, 180} - set(skipped):
        H.run(p, at=366.1, took=.5, backfill=True)
    if 240 not in skipped:
        H.run(240, at=367, took=4, backfill=True)
    H.run(300, at=second, took=4, backfill=True)
    H.run(360, at=377, took=4, backfill=True)
    H.miss(180, 240, 300, db=330)
    H.run(*range(420, last + 1, 60))
    return H.end()


@right('policy skip: none of the outage runs, but a person may re-run one')
def skipped():
    H = Story(policy='skip', ordered=False)
    H.run(0)
    H.add('gap', **{'from': 60, 'to': 180})
    for p in (60, 120):
        H.jr(p, 'plan', 170)
        H.skip(p, 170, by='policy', reason='missed')
    H.run(180, 240)
    H.reopen(60, db=260, by='rerun', old_state='SKIPPED')
    H.run(60, at=261, gen=2, took=4)
    H.run(*range(300, 601, 60))
    return H.end()


@right('outage: one back-fill run begins as the other ends')
def close():
    return outage(max_parallel=1, second=371)


@right('a running row is deleted: the next back-fill run need not wait for its lease, its own next generation must')
def deleted_while_running():
    H = Story(ordered=False, blind=False)
    H.run(0)
    H.jr(60, 'plan', 124, backfill=True)
    H.claim(60, 125)
    H.reopen(60, db=127, by='delete', old_state='RUNNING', lease_end=135)
    H.run(120, at=129, took=3, backfill=True)
    H.run(60, at=136, gen=2, took=4, backfill=True)
    H.run(*range(180, 601, 60))
    return H.end()


def second_try(first_ends):
    """max_periods 1: `first_ends` tells how the first try of period 120 ends and what 180 does meanwhile; then 120 is tried again."""
    H = Story(max_periods=1, ordered=False, blind=False)
    H.run(0, 60)
    H.jr(120, 'plan', 115)
    H.claim(120, 121)
    first_ends(H)
    H.claim(120, 187)
    H.finish(120, 187)
    H.claim(180, 196)
    H.finish(180, 196)
    H.miss(120, db=211)
    H.run(*range(240, 601, 60))
    return H.end()


@right('max_periods 1: a lost run is taken over though a newer one is owed')
def overtaken():
    def lost(H):
        H.lose(120, 132)
        H.jr(180, 'plan', 175)
        H.claim(180, 181)
        H.fail(180, 184)
    return second_try(lost)


@right('max_periods 1: what a trigger tries again is judged by that trigger, not by what fell due while it waited')
def waited():
    def failed(H):
        H.fail(120, 123, final=True)
        H.jr(120, 'again', 179)
        H.jr(180, 'plan', 175)
    return second_try(failed)


@right('a change: what the old schedule planned ahead is SKIPPED(changed)')
def changed(skipped=540, ran=(480,)):
    H = days(Story(blind=False, versions=[{'from': 0, 'every': 60}, {'from': 475, 'every': 120}]), 420)
    if skipped:
        H.jr(skipped, 'plan', 474)
        H.skip(skipped, 476, by='policy', reason='changed')
    H.run(*ran)
    H.run(600)
    return H.end()


@right('a change: what the old schedule planned ahead, and a person deleted, is SKIPPED(changed) when it has been planned again')
def changed_behind_a_deletion(at=472):
    H = Story(blind=False, versions=[{'from': 0, 'every': 60}, {'from': 475, 'every': 120}])
    days(H, 420)
    H.jr(540, 'plan', 470)
    H.reopen(540, db=at, by='delete', old_state='PLANNED')
    H.jr(540, 'plan', at + 2, gen=2)
    H.jr(540, 'skip', at + 4, gen=2, by='policy', reason='changed')
    H.final(540, 'SKIPPED', gen=2)
    H.run(480, 600)
    return H.end()


@right('limits of the store, a tenant, a key and a job, one of them lowered while a run is alive')
def limited():
    H = Story(blind=False, tenant='payments', limit_key='bank-a', limit=1)
    for kind, name, most, db in (('global', '', 1, 0), ('tenant', 'pay*', 1, 0), ('tenant', 'reports', 0, 0),
                                 ('key', 'bank-a', 1, 0), ('key', 'bank-a', 0, 122), ('key', 'bank-a', None, 132.5)):
        H.append(dict(type='limit', kind=kind, name=name, most=most, db=db))
    return days(H, 600).end()


@right('recovery: rerun; lost five times: FAILED(lost)')
def lost(burnt=(), **burn):
    H = days(Story(blind=False), 540)
    H.jr(600, 'plan', 600)
    for n in range(5):
        H.claim(600, 601 + 12 * n)
        if n in burnt:
            H.burn(600, 605 + 12 * n, **burn)
        else:
            H.lose(600, 612 + 12 * n, **({'final': True} if n == 4 else {}))
    H.final(600, 'FAILED')
    return H.end()


@right('two of the five by a resolved no, which count as lost')
def burnt():
    return lost(burnt=(1, 3), lost=True)


@right('recovery: hold; FAILED(held) until a person reopens it')
def held(**loss):
    H = Story(recovery='hold')
    H.run(0, 60)
    H.jr(120, 'plan', 115)
    H.claim(120, 121)
    H.lose(120, 132, **loss or {'held': True})
    H.reopen(120, db=140, by='person', old_state='PLANNED' if loss else 'FAILED')
    H.run(120, at=141, gen=2)
    H.run(*range(180, 601, 60))
    return H.end()


@right('a claim starts the run, a later trigger gives new attempts, and there is no audit')
def unaudited():
    H = Story(blind=False, claim_starts=True)
    H.run(0, 60)
    H.jr(120, 'plan', 115)
    H.claim(120, 121)
    H.fail(120, 123, final=True)
    H.jr(120, 'again', 180)
    H.claim(120, 181)
    H.finish(120, 181, took=1)
    H.run(180, at=183)
    H.run(*range(240, 601, 60))
    H.end()
    H[-1]['audit'] = False
    drop(H, lambda e: e['type'] == 'beat' or e.get('op') == 'start')
    for p in range(0, 601, 60):
        renumber(H, p)
    del H[-1]['audit_every'], H[-1]['audit2_every']
    return H
