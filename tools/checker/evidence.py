"""What nodes were told (W1) and what is there at the end (W3), against the journal."""
from collections import Counter, defaultdict

from history import same_status


def check_final_rows(of, runs, bad):
    for f in of['final']:
        key = f['job'], f['period']
        if key not in runs:
            bad('J', 'final row without a journal', run=key)
            continue
        run = runs[key][-1]
        row, told = (f.get('gen', 1), f['token'] or 0), (run.gen, run.tok)
        if row != told or not same_status(f['state'], run.state, run.held):
            bad('J', 'final row differs from its journal', run=run.key, row=(*row, f['state']), journal=(*told, run.state))
        if run.state == 'DONE' and f.get('result_token') not in run.granted:
            bad('I3', 'PHANTOM: result under a fence never granted', run=run.key)


def check_fences(of, jobs, bad):
    """I6 per job: a fence is greater than all that its job was given before, whatever the row and the generation.  Claims
    nearer than `race` seconds (periods of an unordered job, several nodes) count as simultaneous: they need only differ."""
    given = defaultdict(list)
    for e in of['jr']:
        if e['op'] in ('claim', 'reclaim', 'burn', 'skip') and e.get('token') is not None:
            given[e['job']].append((e['db'], e['token'], e['period']))
    for job, fences in given.items():
        fences.sort()
        race, old, top, seen = jobs.get(job, {}).get('race', 0), 0, 0, set()
        for db, token, period in fences:
            while fences[old][0] < db - race:
                top = max(top, fences[old][1])
                old += 1
            if token <= top or token in seen:
                bad('I6', 'fence not greater than every earlier one of its job', job=job, period=period, was=top, now=token)
            seen.add(token)


def check_answers(of, bad, stats):
    """Lost acknowledgements, unknown outcomes."""
    accepted = {(e['job'], e['period'], e['token']) for e in of['jr'] if e['op'] == 'commit'}
    for e in of['commit']:
        key = e['job'], e['period'], e['token']
        if e['res'] == 'ok' and key not in accepted:
            bad('I11', 'LOST: commit acknowledged to the worker but not in the database', run=key)
        if e['res'] == 'refused' and key in accepted:
            bad('I9', 'commit refused to the worker but accepted in the database', run=key)
        stats['unknown'] += e['res'] == 'info'
    for e in of['resolve']:
        key = e['job'], e['period'], e['token']
        if e['ans'] == 'no' and key in accepted:
            bad('I9', 'resolved as NOT committed, but it is committed', run=key)
        if e['ans'] == 'yes' and key not in accepted:
            bad('I9', 'resolved as committed, but it is not', run=key)


def check_effects(of, jobs, runs, bad):
    """The key of an effect has no generation: a re-run does not pay twice."""
    effects = Counter((e['job'], e['period'], e.get('step', 0)) for e in of['effect'])
    done = {key for key, generations in runs.items() if any(run.commits for run in generations)}
    for key, count in effects.items():
        if count > 1:
            bad('I12', f'effect applied {count} times', run=key)
        if key[:2] not in runs:
            bad('I12', 'effect for a run that was never planned', run=key)
        elif jobs[key[0]].get('same_tx', True) and key[:2] not in done:
            bad('I12', 'effect without accepted commit (atomicity broken)', run=key)
    for key in done:
        for step in range(jobs[key[0]].get('steps', 1)):
            if (*key, step) not in effects:
                bad('I12', 'DONE without its effect', run=key, step=step)


def check_auditors(of, cut, bad):
    """I18: the auditor and its auditor."""
    for who, field in (('audit', 'audit_every'), ('audit2', 'audit2_every')):
        beats, every = sorted(e['db'] for e in of['beat'] if e['who'] == who), cut.get(field)
        alarms = [e['db'] for e in of['alarm'] if e['about'] == who]
        for a, b in zip(beats, beats[1:] + [cut['db']]):
            if every and b - a > 3 * every and not any(a < x <= a + 4 * every for x in alarms):
                bad('I18', f'{who} silent for {b - a:.0f} s and nobody alarmed', since=a)
