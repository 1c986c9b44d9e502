"""Where a history deviates first: not the last error, but the first event from which on a promise is broken, in the order of the store's clock."""
import bisect
import os
import sys
from collections import defaultdict

from program import checker_folder

sys.path.insert(0, checker_folder())
import evidence  # noqa: E402
import history  # noqa: E402
import limits  # noqa: E402
import replay  # noqa: E402

NEVER = float('inf')


def first(events, violations):
    """-> {event, phase, promise, what}. `violations`: promise -> what the checker says, not empty."""
    of = history.by_type(events)
    acts = sorted((e for e in events if e['type'] in ('jr', 'reopened')), key=lambda e: (e['db'], e.get('ver', 0)))
    given = [e for e in events if e['type'] in ('job_def', 'limit')]
    whole = broken(given, acts, violations)
    found = []
    if whole:
        upto = bisect.bisect_left(range(1, len(acts) + 1), True, key=lambda n: bool(broken(given, acts[:n], violations)))
        event, then = acts[upto], broken(given, acts[:upto + 1], violations)
        promise = sorted(then)[0]
        found.append((event['db'], dict(event=event, phase=event.get('op', event['type']), promise=promise, what=then[promise][0]['what'])))
    for promise, tellings in violations.items():
        for told in tellings:
            if told not in whole.get(promise, ()):
                at, event, phase = place(told, of, acts)
                found.append((at, dict(event=event or told, phase=phase, promise=promise, what=told['what'])))
    return min(found, key=lambda f: f[0])[1]


def broken(given, acts, violations):
    """What the journal breaks by itself, of the promises that are asked for."""
    found = defaultdict(list)

    def bad(promise, what, **where):
        found[promise].append(dict(what=what, **where))
    of = history.by_type(given + acts)
    jobs = {e['job']: e for e in of['job_def']}
    runs = replay.replay(of, jobs, bad)
    evidence.check_fences(of, jobs, bad)
    limits.check_limits(of, jobs, runs, bad)
    return {promise: told for promise, told in found.items() if promise in violations}


def place(told, of, acts):
    """-> (instant, event, phase) of what other witnesses say, or what the schedule demanded."""
    run, what = tuple(told.get('run', ())), told['what']
    of_run = [e for e in acts if (e['job'], e['period']) == run[:2]]
    if 'acknowledged' in what or 'refused to the worker' in what or 'resolved as' in what:
        answers = [e for e in of['commit'] + of['resolve'] if (e['job'], e['period'], e['token']) == run]
        # An answer has no instant of the store's. It came after all that this owner was accepted with, and shows at what comes next.
        ours = max((e['db'] for e in of_run if int(e.get('token') or 0) == run[2]), default=NEVER)
        return min((e['db'] for e in of_run if e['db'] > ours), default=ours), answers[-1] if answers else None, 'answer'
    effects = sorted((e for e in of['effect'] if (e['job'], e['period'], e.get('step', 0)) == run), key=lambda e: e['db'])
    if 'effect' in what and effects:
        event = effects[1] if 'applied' in what and len(effects) > 1 else effects[0]
        return event['db'], event, 'effect'
    if 'DONE without its effect' in what:
        return of_op(of_run, 'commit', 'effect')
    if 'final row' in what or 'PHANTOM' in what:
        rows = [e for e in of['final'] if (e['job'], e['period']) == run[:2]]
        return (of['cut'][0]['db'] if of['cut'] else NEVER, rows[0] if rows else None, 'final')
    if 'since' in told:
        return told['since'], None, 'audit'
    if 'window' in told:        # only its end shows that there was none
        return told['window'][1], None, 'effect'
    if 'ran' in told:
        return misfired(told, acts)
    if 'reported' in what or 'MISS' in what or 'disposition' in what or 'was not SKIPPED' in what:
        return (limit(run, of) if run else NEVER), None, 'audit' if 'disposition' not in what and 'SKIPPED' not in what else 'plan'
    if 'SKIPPED(' in what:
        return of_op(of_run, 'skip', 'plan')
    return of_op(of_run, 'claim', 'start')


def misfired(told, acts):
    """The first that ran and should not have, or was passed over and should have run."""
    wrong = [(e['db'], e, 'start') for e in acts if e.get('op') == 'claim' and e['job'] == told['job'] and e['period'] in set(told['ran']) - set(told['want'])]
    wrong += [(e['db'], e, 'plan') for e in acts if e.get('op') == 'skip' and e['job'] == told['job'] and e['period'] in set(told['want']) - set(told['ran'])]
    return min(wrong, key=lambda found: found[0], default=(NEVER, None, 'plan'))


def limit(run, of):
    """When a period that nobody settled is a miss: not before."""
    job = next((j for j in of['job_def'] if j['job'] == run[0]), {})
    return run[1] + sum(job.get(name, 0) for name in ('deadline', 'audit_cadence', 'audit_grace'))


def of_op(acts, op, phase):
    event = next((e for e in acts if e.get('op') == op), None)
    return (event['db'] if event else NEVER), event, phase
