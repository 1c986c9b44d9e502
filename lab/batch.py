"""Runs experiments: registered first, the baseline twice, the candidate, and the record of what came of it."""
import concurrent.futures
import getpass
import os
import subprocess
import threading
import time

import collect
import judge
import keep
import report
from experiment import Bad, shipped
from servers import Missing, Servers
from stage import Anew, Stage

AT_A_TIME = 3        # mostly they wait for leases to end
TRIES = 8            # that a sample has to come to be what it was to be
NO_OLDER = 'needs the program of the version before: --older PATH'
print_lock = threading.Lock()


def say(text):
    with print_lock:
        print(text, flush=True)


class Batch:
    def __init__(self, experiments, root, lab_build, what, at_a_time=AT_A_TIME, by=None, older=None, left_out=()):
        """`older`: the program of the version before. `left_out`: a line for each experiment that was not to be had, and why."""
        self.older, self.left_out = older, list(left_out)
        self.experiments, self.root, self.lab_build, self.what, self.at_a_time = experiments, root, lab_build, what, at_a_time
        self.by = by or getpass.getuser()
        self.failed_topics = {}
        self.lock = threading.Lock()

    def run(self):
        """-> (folder, records)"""
        refuse_second_variable(self.root, self.experiments)
        self.fixed = collect.fixed(self.older)
        self.folder = keep.new_run(self.root)
        registered = {}
        for e in self.experiments:
            registered[e.name] = e.register()
            keep.write_json(os.path.join(self.folder, e.name, 'registered.json'), registered[e.name] | dict(at=time.time()))
            keep.write(os.path.join(self.folder, e.name, 'experiment.toml'), e.text.decode())
        self.servers = Locked()
        begun = time.time()
        try:
            topics = {}
            for e in self.experiments:       # those of one topic wait for each other's verdict; mutants are none of each other's
                topics.setdefault(e.name if e.told.get('catches') else e.topic, []).append(e)
            with concurrent.futures.ThreadPoolExecutor(self.at_a_time) as pool:
                records = [r for found in pool.map(lambda es: [self.one(e, registered[e.name]) for e in es], topics.values()) for r in found]
        finally:
            self.servers.stop()
        told = dict(what=self.what, by=self.by, begun=begun, ended=time.time(), lab_build=self.lab_build, at_a_time=self.at_a_time,
                    left_out=self.left_out)
        keep.write_json(os.path.join(self.folder, 'run.json'), told)
        report.write(self.folder, told, records)
        seal = keep.seal(self.folder)
        return self.folder, records, seal

    def one(self, experiment, registered):
        folder = os.path.join(self.folder, experiment.name)
        blocked = self.failed_topics.get(experiment.topic)
        if blocked:
            record = left_out(experiment, registered, f'{blocked} failed: a second changed variable is refused; run its baseline or `matins lab replay`')
        elif experiment.told.get('needs_lab_build') and not self.lab_build:
            record = left_out(experiment, registered, 'this program was built without the lab (-DMATINS_LAB=ON): it has no fault points and no mutants')
        elif experiment.needs_older() and not self.older:
            record = left_out(experiment, registered, NO_OLDER)
        else:
            try:
                self.phases(experiment, folder)
                record = make_record(folder, registered)
            except (Missing, Bad, RuntimeError, OSError, AssertionError, LookupError, TypeError, ValueError, subprocess.SubprocessError) as e:
                record = left_out(experiment, registered, f'{type(e).__name__}: {e}')
            if record['observed_result']['verdict'] == judge.INVALID and not experiment.told.get('catches'):
                with self.lock:
                    self.failed_topics[experiment.topic] = experiment.name
        keep.write_json(os.path.join(folder, 'record.json'), record)
        self.tell(experiment, record)
        return record

    def tell(self, experiment, record):
        result = record['observed_result']
        say(f'{result["verdict"]:13} {experiment.name:34} {result["why"]}')

    def phases(self, experiment, folder):
        for name, conditions in (('baseline-1', experiment.baseline), ('baseline-2', experiment.baseline), ('candidate', experiment.candidate)):
            self.still_the_same(experiment)
            self.sample(experiment, conditions, os.path.join(folder, name))
        if experiment.told.get('keeps_normal'):
            normal = experiment.beside(experiment.told['keeps_normal'])
            self.sample(normal, normal.baseline | dict(store=experiment.candidate['store']), os.path.join(folder, 'normal'))

    def still_the_same(self, experiment):
        """A second difference stops an experiment before it goes on: the program, the checker, the day that the data are of."""
        now = collect.fixed(self.older)
        for key, value in now.items():
            if value != self.fixed[key]:
                raise Bad(f'{experiment.name}: {key} changed while it ran ({self.fixed[key]} and {value}); run it again')

    def sample(self, experiment, conditions, folder):
        for last in (False,) * (TRIES - 1) + (True,):
            stage = Stage(experiment, conditions, self.servers, os.path.basename(folder), self.older)
            try:
                stage.play()
                stage.kill_all()
                collect.collect(stage, folder)
                return
            except Anew:
                if last:
                    raise RuntimeError('a node was stopped in a transaction, each time') from None
            finally:
                stage.end()


class Locked(Servers):
    """For several threads."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()

    def of(self, kind):
        with self.lock:
            return super().of(kind)


def make_record(folder, registered):
    """The record of one experiment. What was not verified is empty."""
    result = judge.judge(folder, registered)
    told, sample = registered['experiment'], os.path.join(folder, 'candidate')
    known = keep.read_json(os.path.join(sample, 'conditions.json')) if os.path.exists(os.path.join(sample, 'conditions.json')) else None
    key = told['changed']
    mends = told.get('replays')
    return dict(
        topic=told['topic'], selected_chapter=told['selected_chapter'], claim_from_article=told['claim_from_article'],
        baseline_version=dict(conditions=registered['baseline'], versions=known['versions'] if known else ''),
        changed_condition=dict(exactly_one=key, baseline=registered['baseline'][key], candidate=registered['candidate'][key]),
        execution=dict(experiment=told['name'], kind=told['kind'], digest=registered['digest'], promises=told['promises'], gives_up=told.get('gives_up', []), actions=told['actions'],
                       **(dict(catches=told['catches']) if told.get('catches') else {}),
                       mutant=registered['candidate']['mutant'] if key == 'mutant' else '',
                       order=['baseline-1', 'baseline-2', 'candidate', *(['normal'] if told.get('keeps_normal') else [])]),
        evidence=sorted(name for name in keep.files(folder) if name not in ('record.json',)),
        pass_when=told['pass_when'], stop_when=told.get('stop_when', []),
        observed_result={k: v for k, v in result.items() if k != 'first_deviation'}, first_deviation=result['first_deviation'],
        recovery_replay=dict(of=mends, verdict=result['verdict'], normal=result['samples'].get('normal', '')) if mends else '',
        finding=finding(result) if result['verdict'] == judge.INVALID else '')


def finding(result):
    """Closed by five entries; the lab fills those that it knows, people the others."""
    return dict(state='observing', phenomenon=result['why'], first_deviation=result['first_deviation'], root_cause='', change='',
                replay_of_the_original_sample='')


def left_out(experiment, registered, why):
    told = registered['experiment']
    return dict(topic=told['topic'], selected_chapter=told['selected_chapter'], claim_from_article=told['claim_from_article'], baseline_version='',
                changed_condition=experiment.changed(), execution=dict(experiment=experiment.name, kind=experiment.kind, digest=registered['digest'],
                                                                       promises=told['promises'], actions=[], order=[]),
                evidence=[], pass_when=told['pass_when'], stop_when=told.get('stop_when', []),
                observed_result=dict(verdict=judge.INCONCLUSIVE, why=f'left out: {why}', samples={}), first_deviation='', recovery_replay='', finding='')


def open_findings(root):
    """(topic) -> (experiment, its digest, folder) of what failed last and was not replayed with success."""
    found = {}
    for folder in keep.runs(root):
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name, 'record.json')
            if not os.path.exists(path):
                continue
            record = keep.read_json(path)
            result, execution = record['observed_result'], record['execution']
            if result['verdict'] == judge.INVALID and not execution.get('mutant'):
                found[record['topic']] = (execution['experiment'], execution['digest'], folder)
            elif result['verdict'] == judge.VALID and found.get(record['topic'], ('', '', ''))[1] == execution['digest']:
                del found[record['topic']]
    return found


def refuse_second_variable(root, experiments):
    findings = open_findings(root)
    for e in experiments:
        if e.topic in findings and e.register()['digest'] != findings[e.topic][1]:
            name, _, folder = findings[e.topic]
            raise Bad(f'{e.name}: {name} of the same topic failed in {folder}, and a second changed variable is refused until that is mended; '
                      f'run {name} again as it was, or `matins lab replay {folder}`')


def experiments_of(words, store):
    found = [e for word in words for e in shipped(word)]
    names = [e.name for e in found]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise Bad(f'{", ".join(sorted(twice))}: named twice')
    return [e.on(store) for e in found] if store else found
