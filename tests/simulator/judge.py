#!/usr/bin/env python3
"""Lets the checker judge what matins_simulator left behind, seed by seed, in one process.

    python3 judge.py CHECKER FOLDER [--until-caught]

CHECKER is tools/checker; FOLDER is what `matins_simulator --evidence` filled.  Exits 1 when a history is not valid; with
--until-caught it exits 0 at the first one that is not, and 1 when all are.
"""
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path


def judge(folder, seed):
    base = str(folder / f'seed-{seed}')
    world = json.loads(Path(base + '.world.json').read_text())
    events = export.export(export.parse([
        f'sqlite:{base}.db', '--history', base + '.testimony.jsonl', '--effects', base + '.effects.jsonl',
        '--jobs', base + '.jobs.jsonl', '--cut', str(world['cut'])]))
    # A plain DELETE is dated by the machine's clock, not by the virtual one.
    when = defaultdict(list)
    for act in world['deleted']:
        when[act['job'], act['period']].append(act['db'])
    due = {}
    for event in events:
        if event['type'] == 'reopened' and event['by'] == 'delete':
            due.setdefault((event['job'], event['period']), []).append(event)
    for (job, period), acts in due.items():
        key = next(k for k in when if k[0] == job and cron_instant(k[1]) == period)
        for event, db in zip(acts, when[key]):
            event['db'] = db
    by_another(events, world)
    return checker.check(events)


def by_another(events, world):
    """What another program did is settled, and not by the scheduler: for the checker, a person's word."""
    told = {(act['job'], cron_instant(act['period'])): act['db'] for act in world['foreign']}
    for event in events:
        key = event.get('job'), event.get('period')
        if key in told and event['type'] == 'jr' and event['ver'] == 1:
            event.update(op='skip', by='person', reason='done by another program', manual=True, db=told[key])
        elif key in told and event['type'] == 'final' and event['state'] == 'DONE':
            event.update(state='SKIPPED', result_token=None)


def cron_instant(key):
    from datetime import datetime
    return datetime.fromisoformat(key.replace('Z', '+00:00')).timestamp()


def main(arguments):
    folder, until_caught = Path(arguments[1]), '--until-caught' in arguments
    stats, wrong = Counter(), 0
    seeds = sorted(int(path.name.split('-')[1].split('.')[0]) for path in folder.glob('seed-*.db'))
    for seed in seeds:
        if json.loads((folder / f'seed-{seed}.world.json').read_text())['stepped']:
            stats['not judged: the clock stepped'] += 1
            continue
        verdict = judge(folder, seed)
        stats.update(verdict['stats'])
        if verdict['valid']:
            continue
        wrong += 1
        for promise, found in verdict['violations'].items():
            print(f'seed {seed} broke {promise}: {found[0]}' + (f' and {len(found) - 1} more' if found[1:] else ''))
        if until_caught:
            return 0
    print(json.dumps(stats, indent=1))
    print(f'{wrong} of {len(seeds)} histories are not valid')
    return 1 if wrong or until_caught or not seeds else 0


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    import checker
    import export
    sys.exit(main(sys.argv[1:]))
