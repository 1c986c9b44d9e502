"""Proof that the lab can fail: each protection taken out once has to be noticed by its experiment, and the same scene with the protection
in place has to be good."""
import os

import judge
import keep
from batch import say

CHANCES = 3     # real processes may miss their moment


def caught(record, experiment):
    """The promise that was found broken first, where that is what this mutant breaks; else None. The baselines have to be good."""
    result = record['observed_result']
    if result['verdict'] != judge.INVALID or record['first_deviation']['sample'] != 'candidate':
        return None
    found = set(result['samples']['candidate']['violations'])
    if found & set(experiment.told['catches']):
        return ', '.join(sorted(found & set(experiment.told['catches'])))
    deviation = record['first_deviation']
    return deviation['what'] if not found and deviation['promise'] in (None, *experiment.told['catches']) else None


def tell(batch):
    table, folders = {}, []
    every = {e.name: e for e in batch.experiments}
    for _ in range(CHANCES):
        folder, records, seal = batch.run()
        folders.append(folder)
        for record in records:
            name = record['execution']['experiment']
            left_out = not record['observed_result']['samples']
            table[name] = dict(store=every[name].candidate['store'], caught=caught(record, every[name]), left_out=left_out,
                               why=record['observed_result']['why'], folder=folder)
        batch.experiments = [every[name] for name, row in table.items() if not row['caught'] and not row['left_out']]
        if not batch.experiments:
            break
    say('\nprotection taken out      store       noticed as')
    for name, row in sorted(table.items()):
        say(f'{name.removeprefix("mutants."):25} {row["store"]:11} {row["caught"] or "NOT NOTICED: " + row["why"]}')
    path = os.path.join(folders[-1] + '.mutants.json')
    keep.write_json(path, table)
    missed = [name for name, row in table.items() if not row['caught']]
    say(f'{len(table) - len(missed)} of {len(table)} noticed; evidence in {", ".join(folders)}, the table in {path}')
    return 1 if missed else 0
