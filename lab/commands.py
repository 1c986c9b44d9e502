"""What each command does; exit codes: 0 all valid, 1 something is not, 2 bad input."""
import json
import os

import findings as findings_
import gate as gate_
import judge
import keep
import mutants
import soak as soak_
from batch import Batch, experiments_of, say
from experiment import STORES, Bad, Experiment, shipped

LAB_BUILD = os.environ.get('MATINS_LAB_BUILD') == '1'


def run(options):
    if options.store and options.store not in STORES and not options.store.startswith(('postgresql://', 'mariadb://')):
        raise Bad(f'--store {options.store}: write {", ".join(STORES)}, postgresql://... or mariadb://...')
    if options.what == ['full'] and not options.store:
        return max(tell(batch_on(options, store, on_that_alone=True)) for store in STORES)
    if options.what == ['mutants']:
        batches = [(store, batch_on(options, store, on_that_alone=True)) for store in ([options.store] if options.store else STORES)]
        return mutants.tell([(store, batch) for store, batch in batches if batch.experiments], whole=not options.only)
    batch = batch_on(options, options.store)
    if all(e.told.get('catches') for e in batch.experiments):
        return mutants.tell([(batch.experiments[0].candidate['store'], batch)], whole=False)
    return tell(batch)


def batch_on(options, store, on_that_alone=False):
    """`on_that_alone`: without those that this kind of store has no place for."""
    experiments = experiments_of(options.what, store)
    if options.only:
        unknown = set(options.only) - {e.name for e in experiments}
        if unknown:
            raise Bad(f'--only {", ".join(sorted(unknown))}: not among them; `matins lab list` shows them')
        experiments = [e for e in experiments if e.name in options.only]
    if on_that_alone:
        experiments = [e for e in experiments if e.candidate['store'] == store]
    return Batch(experiments, options.keep, LAB_BUILD, ' '.join(options.what), options.at_a_time, options.by)


def tell(batch):
    folder, records, seal = batch.run()
    bad = [r for r in records if r['observed_result']['verdict'] != judge.VALID]
    say(f'{len(records) - len(bad)} of {len(records)} valid; evidence in {folder}, report in {folder}/report.html\nseal {seal}')
    return 1 if bad else 0


def list(options):  # noqa: A001 (the command is called so)
    for e in shipped('full'):
        print(f'{e.name:28} {e.kind:10} {e.topic}: {e.told["claim_from_article"]}')
    return 0


def records_of(folder):
    """(folder of the experiment, what was registered, its record)"""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.exists(os.path.join(path, 'registered.json')):
            record = os.path.join(path, 'record.json')
            yield path, keep.read_json(os.path.join(path, 'registered.json')), keep.read_json(record) if os.path.exists(record) else None


def verify(options):
    """Judges again, and says what is not as it was."""
    if not os.path.isdir(options.folder):
        raise Bad(f'{options.folder}: is no folder of a run')
    wrong = keep.tampered(options.folder)
    if options.seal and not wrong and keep.seal_of(options.folder) != options.seal:
        wrong.append(f'the seal is {keep.seal_of(options.folder)}, not {options.seal}')
    verdicts = {}
    if os.path.exists(os.path.join(options.folder, 'soak.json')):
        try:
            verdicts, differ = soak_.verify(options.folder)
            wrong += differ
        except (ValueError, KeyError, TypeError, IndexError, OSError) as e:
            wrong.append(f'cannot be judged again: {type(e).__name__} {e}')
    for path, registered, record in records_of(options.folder):
        name = os.path.basename(path)
        if record is None:
            wrong.append(f'{name}: has no record')
            continue
        if record['observed_result'].get('samples'):
            try:
                again = judge.judge(path, registered)
            except (ValueError, KeyError, TypeError, IndexError, OSError) as e:
                wrong.append(f'{name}: cannot be judged again: {type(e).__name__} {e}')
                continue
            if again['verdict'] != record['observed_result']['verdict']:
                wrong.append(f'{name}: the record says {record["observed_result"]["verdict"]}, the evidence {again["verdict"]}: {again["why"]}')
            elif json.dumps(again['samples'], default=str) != json.dumps(record['observed_result']['samples'], default=str):
                wrong.append(f'{name}: the figures of the record are not those of the evidence')
            elif json.dumps(again['first_deviation'], default=str) != json.dumps(record['first_deviation'], default=str):
                wrong.append(f'{name}: the first deviation of the record is not that of the evidence')
            verdicts[name] = again['verdict']
        else:
            verdicts[name] = record['observed_result']['verdict']
    for name, verdict in verdicts.items():
        print(f'{verdict:13} {name}')
    for what in wrong:
        print(f'TAMPERED      {what}')
    if not wrong:
        print(f'the evidence is as it was sealed: {keep.seal_of(options.folder)}')
    return 1 if wrong or any(v == judge.INVALID for v in verdicts.values()) else 0


def replay(options):
    """What failed, as it was registered: same file, same conditions, same seed."""
    wrong = keep.tampered(options.folder) if os.path.isdir(options.folder) else [f'{options.folder}: is no folder of a run']
    if wrong:
        raise Bad('; '.join(wrong))
    failed = []
    for path, registered, record in records_of(options.folder):
        if record and (options.all or record['observed_result']['verdict'] == judge.INVALID):
            with open(os.path.join(path, 'experiment.toml'), 'rb') as f:
                e = Experiment(os.path.join(path, 'experiment.toml'), f.read())
            e.baseline, e.candidate = registered['baseline'], registered['candidate']
            failed.append(e)
    if not failed:
        print(f'{options.folder}: nothing failed there, so there is nothing to replay')
        return 0
    return tell(Batch(failed, options.keep, LAB_BUILD, f'replay of {options.folder}', by=options.by))


def findings(options):
    return findings_.show(options)


def close(options):
    return findings_.close(options)


def soak(options):
    return soak_.run(options)


def gate(options):
    return gate_.run(options)
