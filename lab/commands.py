"""What each command does; exit codes: 0 all valid, 1 something is not, 2 bad input."""
import json
import os
import shutil
import tomllib

import findings as findings_
import gate as gate_
import judge
import keep
import mutants
import soak as soak_
from batch import NO_OLDER, Batch, experiments_of, say
from experiment import STORES, Bad, Experiment, digest, shipped
from program import MATINS

MATINS_FOUND = shutil.which(MATINS) or MATINS
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
    older, without = older_program(options.older), []
    if not older and not options.only:
        without = [f'{e.name}: {NO_OLDER}' for e in experiments if e.needs_older()]
        experiments = [e for e in experiments if not e.needs_older()]
    for why in without:
        say(f'left out      {why}')
    return Batch(experiments, options.keep, LAB_BUILD, ' '.join(options.what), options.at_a_time, options.by, older, without)


def older_program(path):
    if not path:
        return None
    path = os.path.abspath(path)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise Bad(f'--older {path}: is no program; give the matins of the version before')
    if os.path.samefile(path, MATINS_FOUND):
        raise Bad(f'--older {path}: is this very program; give the matins of the version before')
    return path


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


# What a folder may make a judge stumble over that was not written by the lab, or not whole.
UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, ArithmeticError, RecursionError)


def verify(options):
    """Judges again, and says what is not as it was. A single history is judged by itself."""
    if os.path.isfile(options.folder):
        return verify_history(options.folder)
    if not os.path.isdir(options.folder):
        raise Bad(f'{options.folder}: is no folder of a run, and no history')
    wrong = keep.tampered(options.folder)
    if options.seal and not wrong and keep.seal_of(options.folder) != options.seal:
        wrong.append(f'the seal is {keep.seal_of(options.folder)}, not {options.seal}')
    verdicts, deviations = {}, {}
    if os.path.exists(os.path.join(options.folder, 'soak.json')):
        try:
            verdicts, deviations, differ = soak_.verify(options.folder)
            wrong += differ
        except UNREADABLE as e:
            wrong.append(f'cannot be judged again: {type(e).__name__} {e}')
    for name in sorted(os.listdir(options.folder)):
        if not os.path.exists(os.path.join(options.folder, name, 'registered.json')):
            continue
        try:
            verdicts[name], deviations[name], differ = judged_again(os.path.join(options.folder, name))
            wrong += [f'{name}: {what}' for what in differ]
        except UNREADABLE as e:
            wrong.append(f'{name}: cannot be judged again: {type(e).__name__} {e}')
    wrong += missing_records(options.folder)
    for name, verdict in verdicts.items():
        print(f'{verdict:13} {name}')
        if deviations.get(name):
            print(f'{"":14}{told_deviation(deviations[name])}')
    for what in wrong:
        print(f'TAMPERED      {what}')
    if not wrong:
        print(f'the evidence is as it was sealed: {keep.seal_of(options.folder)}')
    return 1 if wrong or any(v == judge.INVALID for v in verdicts.values()) else 0


def told_deviation(d):
    where = f'in {d["sample"]}, ' if d.get('sample') else ''
    promise = f'{d["promise"]}: ' if d.get('promise') else ''
    return f'first deviation: {where}at {d["phase"]}, {promise}{d["what"]}: {json.dumps(d["event"], default=str)}'


def verify_history(path):
    try:
        events = judge.history.read(path)
        violations = judge.checker.check(events)['violations']
        print(f'{judge.INVALID if violations else judge.VALID:13} {path}')
        if violations:
            print(f'{"":14}{told_deviation(judge.deviation.first(events, violations))}')
            print(f'{"":14}broken: {", ".join(violations)}')
        return 1 if violations else 0
    except UNREADABLE as e:
        raise Bad(f'{path}: is no history: {type(e).__name__} {e}; write one JSON object a line (tools/checker/history.py)') from None


def judged_again(path):
    """-> (verdict, first deviation, what the record says otherwise)"""
    registered = keep.read_json(os.path.join(path, 'registered.json'))
    if not os.path.exists(os.path.join(path, 'record.json')):
        return 'no record', None, ['has no record']
    record, differ = keep.read_json(os.path.join(path, 'record.json')), [*registered_otherwise(path, registered)]
    result = record['observed_result']
    if record['execution']['digest'] != registered['digest']:
        differ.append('the record is of another registration')
    if not result.get('samples'):
        if any(os.path.exists(os.path.join(path, name, 'evidence.jsonl')) for name in ('baseline-1', 'baseline-2', 'candidate')) and \
                not result['why'].startswith('left out'):
            differ.append('the record has no samples, and the folder has')
        return result['verdict'], None, differ
    again = judge.judge(path, registered)
    if again['verdict'] != result['verdict']:
        differ.append(f'the record says {result["verdict"]}, the evidence {again["verdict"]}: {again["why"]}')
    elif not same_figures(result['samples'], again['samples']):
        differ.append('the figures of the record are not those of the evidence')
    elif json.dumps(again['first_deviation'], default=str) != json.dumps(record['first_deviation'], default=str):
        differ.append('the first deviation of the record is not that of the evidence')
    return again['verdict'], again['first_deviation'], differ


def registered_otherwise(path, registered):
    """What was registered holds together: its digest, and the file that it was read from."""
    told = {key: value for key, value in registered.items() if key not in ('digest', 'at')}
    if digest(told) != registered['digest']:
        yield 'what was registered is not what its digest says'
    with open(os.path.join(path, 'experiment.toml'), 'rb') as f:
        text = f.read()
    file = tomllib.loads(text.decode())
    for key in file.keys() | registered['experiment'].keys():
        mine, theirs = file.get(key), registered['experiment'].get(key)
        if key == 'pass_when':      # a recovering one has that of its normal one beside it
            theirs = {name: tests for name, tests in theirs.items() if name in mine}
        if mine != theirs:
            yield f'{key} of experiment.toml is not what was registered'


def missing_records(folder):
    """The report names each experiment of the run, with its record."""
    path = os.path.join(folder, 'report.json')
    if os.path.exists(os.path.join(folder, 'soak.json')):
        return
    try:
        for told in keep.read_json(path)['records']:
            record = os.path.join(folder, told['execution']['experiment'], 'record.json')
            if not os.path.exists(record):
                yield f'{told["execution"]["experiment"]}: is in report.json, and has no record'
            elif keep.read_json(record) != told:
                yield f'{told["execution"]["experiment"]}: report.json has another record of it'
    except UNREADABLE as e:
        yield f'report.json cannot be read: {type(e).__name__} {e}'


def same_figures(told, again):
    """Of all that the record has: a later lab may measure more."""
    told, again = (json.loads(json.dumps(samples, default=str)) for samples in (told, again))
    return told.keys() == again.keys() and all(
        told[name]['violations'] == again[name]['violations'] and bool(told[name]['measures']) and
        told[name]['measures'].items() <= again[name]['measures'].items() for name in told)


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
    return tell(Batch(failed, options.keep, LAB_BUILD, f'replay of {options.folder}', by=options.by, older=older_program(options.older)))


def findings(options):
    return findings_.show(options)


def close(options):
    return findings_.close(options)


def soak(options):
    return soak_.run(options)


def gate(options):
    return gate_.run(options)
