"""The release gate: what has to be there before something goes out. Each missing item is a line."""
import os
import tomllib

import judge
import keep
from experiment import KINDS, Bad

TRACED = ('code', 'dependencies', 'configuration', 'data')


def run(options):
    if not os.path.exists(os.path.join(options.folder, 'report.json')):
        raise Bad(f'{options.folder}: is no folder of a run')
    try:
        with open(options.release, 'rb') as f:
            release = tomllib.load(f)
    except (OSError, tomllib.TOMLDecodeError) as e:
        raise Bad(f'{options.release}: {e}') from None
    missing = list(items(options.folder, release, options.replay))
    for what in missing:
        print(f'MISSING  {what}')
    if not missing:
        print(f'the gate is open for {options.folder}, seal {keep.seal_of(options.folder)}')
    return 1 if missing else 0


def items(folder, release, replay):
    for who in ('author', 'owner'):
        if not str(release.get(who, '')).strip():
            yield f'{who}: nobody is named in the release file'
    for key in TRACED:
        if not str(release.get(key, '')).strip():
            yield f'{key}: no version of it is named in the release file'
    if not release.get('not_covered'):
        yield 'not_covered: the release file does not say what was not tried'
    yield from (f'evidence: {what}' for what in keep.tampered(folder))
    yield from (f'evidence: {what}' for what in unmasked(folder))
    records = keep.read_json(os.path.join(folder, 'report.json'))['records']
    yield from samples(folder, records)
    yield from rehearsed(folder, records)
    yield from replayed(folder, replay, release)


def samples(folder, records):
    kinds = {}
    for r in records:
        name, result = r['execution']['experiment'], r['observed_result']
        if not r['changed_condition'].get('exactly_one'):
            yield f'{name}: names no planned variable'
        if not os.path.exists(os.path.join(folder, name, 'registered.json')):
            yield f'{name}: was not registered before it ran'
        if result['verdict'] != judge.VALID:
            yield f'{name}: {result["verdict"]}: {result["why"]}'
            continue
        if not r['baseline_version'] or not r['baseline_version']['versions'].get('program'):
            yield f'{name}: the program that ran is not known'
        again = judge.judge(os.path.join(folder, name), keep.read_json(os.path.join(folder, name, 'registered.json')))
        if again['verdict'] != judge.VALID:
            yield f'{name}: its evidence says {again["verdict"]}: {again["why"]}'
        kinds.setdefault(r['topic'], set()).add(r['execution']['kind'])
    for topic in {r['topic'] for r in records}:
        lacking = [kind for kind in KINDS if kind not in kinds.get(topic, ())]
        if lacking:
            yield f'{topic}: no valid {", ".join(lacking)} experiment'
    if not records:
        yield 'no experiment was run'


def rehearsed(folder, records):
    stops = []
    for r in records:
        path = os.path.join(folder, r['execution']['experiment'], 'candidate', 'stop.json')
        if os.path.exists(path):
            stops.append(keep.read_json(path))
    stops = [s for s in stops if s]
    if not any(set(s['written_afterwards'].values()) == {0} and s['seconds_to_stop'] <= 1 for s in stops):
        yield 'stop condition: none came true in this run, so nobody has seen one stop it (locks.failing does)'
    if not any(r['recovery_replay'] and r['observed_result']['verdict'] == judge.VALID for r in records):
        yield 'way back: no recovering experiment is valid'


def replayed(folder, replay, release):
    if not replay:
        yield 'replay: nobody else has run it again (`matins lab replay FOLDER --all --by NAME`, then --replay)'
        return
    if not os.path.exists(os.path.join(replay, 'run.json')):
        yield f'replay: {replay} is no folder of a run'
        return
    yield from (f'replay: {what}' for what in keep.tampered(replay))
    by = keep.read_json(os.path.join(replay, 'run.json'))['by']
    if by in (release.get('author'), keep.read_json(os.path.join(folder, 'run.json'))['by']):
        yield f'replay: was run by {by}, who is not somebody else'
    mine, theirs = (verdicts(where) for where in (folder, replay))
    for digest, (name, _) in mine.items():
        if theirs.get(digest, ('', ''))[1] != judge.VALID:
            yield f'replay: {name} is not valid there, or was not run as it was here'


def verdicts(folder):
    records = keep.read_json(os.path.join(folder, 'report.json'))['records']
    return {r['execution']['digest']: (r['execution']['experiment'], r['observed_result']['verdict']) for r in records}


def unmasked(folder):
    for name in keep.files(folder):
        with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as f:
            text = f.read()
        if keep.masked(text) != text:
            yield f'{name} has a secret in it'
