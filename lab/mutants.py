"""Proof that the lab can fail: each protection taken out once has to be noticed by its experiment, and the same scene with the protection
in place has to be good. Those that no experiment takes out stand in elsewhere.toml, each with what holds there."""
import os
import tomllib

import judge
import keep
from batch import say
from experiment import STORES
from program import HERE

CHANCES = 3     # real processes may miss their moment


def elsewhere():
    """(protection, kind of store) -> why no experiment shows it"""
    with open(os.path.join(HERE, 'elsewhere.toml'), 'rb') as f:
        told = tomllib.load(f)
    return {(name, store): row['why'] for name, row in told.items() for store in row.get('stores', STORES)}


def play(batch, store):
    """-> [row of the table], what each experiment noticed on this store"""
    rows, every = {}, {e.name: e for e in batch.experiments}
    for _ in range(CHANCES):
        folder, records, _ = batch.run()
        for record in records:
            name = record['execution']['experiment']
            rows[name] = dict(protection=every[name].candidate['mutant'], store=store, experiment=name, caught=judge.caught(record),
                              left_out=not record['observed_result']['samples'], why=record['observed_result']['why'], folder=folder)
        batch.experiments = [every[name] for name, row in rows.items() if not row['caught'] and not row['left_out']]
        if not batch.experiments:
            break
    return list(rows.values())


def tell(batches, whole):
    """`batches`: (kind of store, what is run there). `whole`: not a selection, so that what no experiment shows is told too."""
    table = [row for store, batch in batches for row in play(batch, store)]
    if whole:
        played = {(row['protection'], row['store']) for row in table}
        stores = [store for store, _ in batches]
        table += [dict(protection=name, store=store, experiment='', caught=None, left_out=True, why=why, folder='')
                  for (name, store), why in elsewhere().items() if store in stores and (name, store) not in played]
    say('\nprotection taken out      store       noticed as')
    for row in sorted(table, key=lambda row: (not row['experiment'], row['protection'], row['store'])):
        noticed = row['caught'] or (f'NOT NOTICED: {row["why"]}' if row['experiment'] else f'not shown: {row["why"]}')
        say(f'{row["protection"]:25} {row["store"].partition("://")[0]:11} {noticed}')
    folders = sorted({row['folder'] for row in table if row['folder']})
    path = folders[-1] + '.mutants.json'
    keep.write_json(path, table)
    played = [row for row in table if row['experiment']]
    missed = [row for row in played if not row['caught']]
    say(f'{len(played) - len(missed)} of {len(played)} noticed; evidence in {", ".join(folders)}, the table in {path}')
    return 1 if missed else 0
