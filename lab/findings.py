"""Findings: what was found invalid, until it is closed. Closed is one by five entries: phenomenon, first deviation, root cause, change, and a
replay of the original sample that passes. The folder of a run is sealed, so that the entries stand beside it, in findings.json of its root."""
import json
import os
import time

import judge
import keep
from experiment import Bad


def path_of(root):
    return os.path.join(root, 'findings.json')


def closed(root):
    """(folder, experiment) -> the five entries"""
    if not os.path.exists(path_of(root)):
        return {}
    return {(f['folder'], f['experiment']): f for f in keep.read_json(path_of(root))}


def found(root):
    """(folder, experiment) -> its record, of each that was found invalid. Those of mutants are meant to be."""
    all_ = {}
    for folder in keep.runs(root):
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name, 'record.json')
            if os.path.exists(path):
                record = keep.read_json(path)
                if record['observed_result']['verdict'] == judge.INVALID and not record['execution'].get('mutant'):
                    all_[os.path.basename(folder), name] = record
    return all_


def show(options):
    done = closed(options.keep)
    for (folder, name), record in found(options.keep).items():
        entries = done.get((folder, name))
        print(f'{"closed" if entries else "observing":10} {folder} {name}: {record["finding"]["phenomenon"]}' +
              (f'; {entries["root_cause"]}; {entries["change"]}; replayed in {entries["replay"]["folder"]}' if entries else ''))
    return 0


def close(options):
    root, folder = os.path.split(os.path.normpath(options.folder))
    record = found(root).get((folder, options.experiment))
    if not record:
        raise Bad(f'{options.folder}: has no finding of {options.experiment}; `matins lab findings --keep {root or "."}` shows those that there are')
    if (folder, options.experiment) in closed(root):
        raise Bad(f'{options.folder}: the finding of {options.experiment} is closed')
    for option in ('root_cause', 'change'):
        if not getattr(options, option).strip():
            raise Bad(f'--{option.replace("_", "-")}: is empty; a finding is closed by what was the matter and what was changed')
    for where in (options.folder, options.replay):
        wrong = keep.tampered(where) if os.path.isdir(where) else ['is no folder of a run']
        if wrong:
            raise Bad(f'{where}: {"; ".join(wrong)}')
    passed = replayed(record, options)
    entries = dict(experiment=options.experiment, folder=folder, state='closed', by=options.by, at=time.time(), phenomenon=record['finding']['phenomenon'],
                   first_deviation=record['first_deviation'], root_cause=options.root_cause, change=options.change,
                   replay=dict(folder=options.replay, seal=keep.seal_of(options.replay), **passed), seal=keep.seal_of(options.folder))
    before = list(closed(root).values())
    with open(path_of(root) + '.new', 'w', encoding='utf-8') as f:
        f.write(keep.masked(json.dumps([*before, entries], indent=1, ensure_ascii=False, default=str)) + '\n')
    os.replace(path_of(root) + '.new', path_of(root))
    print(f'closed     {folder} {options.experiment}: replayed as it was in {options.replay}, and valid there')
    return 0


def replayed(record, options):
    """The original sample, run later, is valid by its evidence. -> which programs were run"""
    where = os.path.join(options.replay, options.experiment)
    if not os.path.exists(os.path.join(where, 'record.json')):
        raise Bad(f'{options.replay}: {options.experiment} was not run there; `matins lab replay {options.folder}` does it')
    first, again = (keep.read_json(os.path.join(folder, options.experiment, 'registered.json')) for folder in (options.folder, options.replay))
    if first['digest'] != again['digest']:
        raise Bad(f'{options.replay}: {options.experiment} was not run as it was in {options.folder}; `matins lab replay` runs it with its conditions and seed')
    if again['at'] <= first['at']:
        raise Bad(f'{options.replay}: was run before the failure, and shows nothing of what was changed since')
    verdict = judge.judge(where, again)
    if verdict['verdict'] != judge.VALID:
        raise Bad(f'{options.replay}: {options.experiment} is {verdict["verdict"]} there: {verdict["why"]}; the finding stays observing')
    later = keep.read_json(os.path.join(where, 'record.json'))
    return dict(program_before=record['baseline_version']['versions']['program'], program_after=later['baseline_version']['versions']['program'])
