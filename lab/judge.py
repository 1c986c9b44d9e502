"""The verdict on an experiment, from its folder alone. The checker judges each sample's history; here it is put beside what was
registered. Nothing here asks the store, the program or the clock.
"""
import os
import sys
from collections import Counter, defaultdict

import deviation
import keep
import nodes
from experiment import holds
from program import checker_folder

sys.path.insert(0, checker_folder())
import checker  # noqa: E402
import history  # noqa: E402

NEEDED = ('conditions.json', 'actions.jsonl', 'business.json', 'effects.jsonl', 'demands.jsonl', 'metrics.jsonl', 'plans.json', 'stop.json',
          'rows.json', 'evidence.jsonl')
VALID, INVALID, INCONCLUSIVE = 'valid', 'invalid', 'inconclusive'
# In these two baselines must be equal; of the others each run has its own.
EXACT = 'settled', 'broken', 'done', 'skipped', 'failed', 'effects', 'doubled', 'missing', 'stopped'
GRACE = 0.2     # seconds, of the lab's job where its conditions have none yet


class Sample:
    """One phase of an experiment, read from its folder."""

    def __init__(self, folder):
        self.folder, self.name, self.gives_up = folder, os.path.basename(folder), ()
        self.missing = [name for name in NEEDED if not os.path.exists(os.path.join(folder, name))]
        if self.missing:
            return
        self.conditions = keep.read_json(self.path('conditions.json'))
        self.actions = keep.read_lines(self.path('actions.jsonl'))
        self.business = keep.read_json(self.path('business.json'))
        self.stop = keep.read_json(self.path('stop.json'))
        self.plans = keep.read_json(self.path('plans.json'))
        self.events = history.read(self.path('evidence.jsonl'))
        self.verdict = checker.check(self.events)
        self.measures = self.measure()

    def path(self, name):
        return os.path.join(self.folder, name)

    def histories(self):
        return [self.path(name) for name in sorted(os.listdir(self.folder)) if name.startswith('history-')]

    def answers(self):
        count = Counter()
        for path in self.histories():
            count.update(f"{e['type']} {e['res']}" for e in history.read(path))
        return count

    def measure(self):
        of, stats, answers = history.by_type(self.events), Counter(self.verdict['stats']), self.answers()
        final = [e['state'] for e in of['final']]
        reasons = Counter(e.get('reason') for e in of['jr'] if e['op'] == 'skip')
        c = self.conditions['conditions']
        entries = Counter((e['job'], e['period'], e['step']) for e in self.business['entry'])
        done = {(row[0], row[1]) for row in self.done_rows()}
        found = dict(
            settled=self.actions[-1]['settled'], seconds=round(self.actions[-1]['at'] - self.actions[0]['at'], 3),
            broken=len(self.verdict['violations']),
            done=final.count('DONE'), skipped=final.count('SKIPPED'), failed=final.count('FAILED'), rows=len(final),
            claims=stats['claims'], commits=stats['commits'], lost=stats['lost'], reopened=stats['reopened'],
            re_executions=stats['re_executions'],
            refusals=nodes.refusals(answers), unknown=nodes.unknowns(answers),
            resolved_yes=answers['resolve yes'], resolved_no=answers['resolve no'],
            stopped_themselves=self.actions_of_guards(), attempts_failed=sum(e['op'] == 'fail' for e in of['jr']), attempt_rows=len(self.raw('job_run')),
            leased_past_time_out=past_time_out(of['jr'], float(c['job.timeout'].rstrip('s')) + c.get('job.grace', GRACE)),
            heartbeats=sum(e['op'] == 'hb' for e in of['jr']),
            starts=len(self.business['alive']), resumed_at=max((row['resume'] for row in self.business['alive']), default=0), effects=len(self.business['entry']),
            doubled=sum(n > 1 for n in entries.values()),
            missing=sum((job, period, step) not in entries for job, period in done for step in range(1, c['job.steps'] + 1)),
            stale_writes=sum(any(row['fence'] > e['fence'] and (row['job'], row['period']) == (e['job'], e['period']) and row['began'] < e['at']
                                 for row in self.business['alive']) for e in self.business['entry']),
            at_once=most_at_once(self.business, lambda row: 0),
            same_period_at_once=most_at_once(self.business, lambda row: (row['job'], row['period'])),
            plan_changed=self.plans['before'] != self.plans['after'],
            dated_before_lock=self.dated_before_lock(), at_once_again=most_at_once(self.business, lambda row: 0, self.shut_at()),
            ahead_of_others=self.ahead_of_others(), audit_alarms=self.told_of('audited', 'alarms'),
            audit_expected=self.told_of('audited', 'expected'), messages=self.told_of('messages', 'n'), lived=self.told_of('a body is gone', 'lived'),
            early_retries=early_retries(of['jr'], shortest(c['job.backoff'])), audits_missed=self.audits_missed(),
            ended_badly=sum(bool(a.get('badly')) for a in self.actions), starts_too_old=self.starts_too_old(), left_behind=self.left_behind(),
            stopped=self.stop.get('condition', 'no'), written_after_stop=sum(self.stop.get('written_afterwards', {}).values()),
            stop_seconds=self.stop.get('seconds_to_stop', 0))
        for reason, n in reasons.items():
            found[f'skipped_{reason}'] = n
        for reason in ('missed', 'superseded', 'cap', 'expired'):
            found.setdefault(f'skipped_{reason}', 0)
        codes = [a['more'].split() for a in self.actions if a['what'] == 'exit codes']
        if codes:
            found['callers_ok'] = codes[0].count('0')
            found['duplicates'] = len(codes[0]) - len(self.business['alive'])       # that came and did no work
        return found

    def logged(self):
        """The lines of the nodes' logs."""
        for name in sorted(os.listdir(self.folder)):
            if name.startswith('node-'):
                with open(self.path(name), encoding='utf-8', errors='replace') as f:
                    yield from f

    def actions_of_guards(self):
        """How many runs were ended because their lease was over, or nearly so."""
        return sum(' run_ended ' in line and 'stopped: lease' in line for line in self.logged())

    def audits_missed(self):
        """How often an audit told that the other one was not made."""
        return sum('audit_finding' in line and 'was not made' in line for line in self.logged())

    def starts_too_old(self):
        """How many runs began after the store was of a newer program, until it was right again."""
        at = {a['what']: a['at'] for a in self.actions}
        begun = at.get('newer_schema: done', float('inf'))
        return sum(begun < row['began'] < at.get('right_schema', float('inf')) for row in self.business['alive'])

    def dated_before_lock(self):
        """How many changes were made behind a lock that was held from outside, and dated before it was let go."""
        return sum(e['ver'] > a['ver'] and e['db'] < a['clock'] for a in self.actions if a['what'] == 'rows are let go'
                   for e in self.events if e['type'] == 'jr')

    def told_of(self, what, figure):
        return sum(a[figure] for a in self.actions if a['what'] == what)

    def shut_at(self):
        """When the gates were shut again."""
        return max((a['at'] for a in self.actions if a['what'] == 'shut'), default=0)

    def ahead_of_others(self):
        """How many runs of the first job began before the first one of each other."""
        jobs = [row['job'] for row in sorted(self.business['alive'], key=lambda row: row['began'])]
        return max((jobs[:jobs.index(job)].count('work') for job in set(jobs) - {'work'}), default=0)

    def broken(self):
        """The promises that are found broken, but for those that the experiment gives up."""
        return {promise: told for promise, told in self.verdict['violations'].items() if promise not in self.gives_up}

    def left_behind(self):
        """How much a replica lacked of its primary at the last fault before which both could be asked."""
        known = [a['before']['replication']['behind'] for a in self.actions if a.get('before', {}).get('replication')]
        return ([0] + [n for n in known if n is not None])[-1]

    def done_rows(self):
        """(job, period's key), as the store names them."""
        for row in self.raw('job_watermark'):
            if 'DONE' in row:
                yield row

    def raw(self, table):
        return keep.read_json(self.path('rows.json'))[table]

    def broken_chain(self):
        """Witnesses that say different things of one sample: evidence that was changed, whatever the manifest says."""
        effects = keep.read_lines(self.path('effects.jsonl'))
        told = Counter((e['job'], e['period'], e['step'] - 1) for e in self.business['entry'])
        if effects and Counter((e['job'], e['period'], e['step']) for e in effects) != told:
            yield 'effects.jsonl and business.json differ'
        of = history.by_type(self.events)
        if sum(1 for _ in of['effect']) != len(effects):
            yield 'effects.jsonl and evidence.jsonl differ'
        if len(of['jr']) < len(self.raw('job_journal')):
            yield f'the journal has {len(self.raw("job_journal"))} entries, evidence.jsonl {len(of["jr"])}'
        else:
            yield from self.other_journal(of)
        if len(of['final']) != len(self.raw('job_watermark')):
            yield 'the rows of rows.json and evidence.jsonl differ'
        answered = Counter((e['res'], int(e.get('token') or 0)) for path in self.histories() for e in history.read(path)
                           if e['type'] == 'commit' and e['res'] in ('ok', 'refused', 'info'))
        if answered != Counter((e['res'], int(e['token'])) for e in of['commit']):
            yield f'the nodes saw {answered.total()} answers to a commit, evidence.jsonl has {len(of["commit"])}, or others'

    def other_journal(self, of):
        """Each entry of the store's table is in the history as it stands there."""
        columns = self.raw('columns') if 'columns' in keep.read_json(self.path('rows.json')) else None
        if not columns:
            return
        at = {name: columns['job_journal'].index(name) for name in ('job_name', 'ver', 'op', 'fence', 'nonce', 'generation')}
        told = Counter((e['job'], e['gen'], e['ver'], e['op'], int(e.get('token') or 0), str(e.get('nonce') or '')) for e in of['jr'])
        for row in self.raw('job_journal'):
            job, ver, op, fence, nonce, generation = (row[at[name]] for name in at)
            owned = op in ('claim', 'hb', 'ckpt', 'commit', 'fail')
            want = (job, int(generation), int(ver), op, int(fence or 0), nonce if owned else '')
            if not told[want] and not (not owned and told[(*want[:4], 0, '')]):
                yield f'the journal has {op} of {job}, version {ver}, fence {fence}, which evidence.jsonl has not so'
                return

    def first_deviation(self, failed=()):
        """-> {event, phase, promise, what}: the first event of the history from which on a promise is broken; where no promise is, the
        first pass condition that did not hold."""
        violations = self.broken()
        if violations:
            return deviation.first(self.events, violations) | dict(sample=self.name)
        if failed:
            late = next((a for a in self.actions if a['what'] == 'gave up'), None)
            if late:
                return dict(sample=self.name, event=late, phase='waiting', promise='I20', what=late['more'])
            at, event, phase = min((self.told_by(test.split()[0]) for test in failed), key=lambda found: found[0])
            return dict(sample=self.name, event=event or dict(condition=failed[0]), phase=phase, promise=None,
                        what='; '.join(f'{test} did not hold: {self.measures.get(test.split()[0])}' for test in failed))
        return None

    def told_by(self, measure):
        """-> (instant, event, phase): the first event that counts for a measure."""
        op = dict(lost='reclaim', failed='fail', attempts_failed='fail', done='commit', commits='commit').get(measure, 'skip' if 'skipped' in measure else None)
        if op:
            found = [(e['db'], e, op) for e in self.events if e['type'] == 'jr' and e['op'] == op]
        elif measure in ('effects', 'doubled', 'stale_writes'):
            seen = set()
            again = [e for e in self.business['entry'] if (e['job'], e['period'], e['step']) in seen or seen.add((e['job'], e['period'], e['step']))]
            found = [(e['at'], e, 'effect') for e in again or self.business['entry']]
        elif measure in ('starts', 're_executions', 'at_once', 'at_once_again', 'same_period_at_once', 'resumed_at', 'ahead_of_others'):
            found = [(row['began'], row, 'start') for row in self.business['alive'][1:]]
        else:
            found = []
        return min(found, key=lambda f: f[0], default=(float('inf'), None, 'end'))


def shortest(backoff):
    """Of '100ms..2s', in seconds."""
    text = backoff.partition('..')[0]
    return float(text[:-2]) / 1000 if text.endswith('ms') else float(text.rstrip('s'))


def early_retries(journal, backoff):
    """How many attempts began before the one that failed had been so long ago."""
    failed, found = {}, 0
    for e in sorted((e for e in journal if e['op'] in ('fail', 'claim')), key=lambda e: e['db']):
        key = e['job'], e['period'], e.get('gen', 1)
        if e['op'] == 'fail':
            failed[key] = e['db']
        else:
            found += e['db'] < failed.pop(key, 0) + backoff - 1e-3
    return found


def past_time_out(journal, timeout):
    """How many beats leased a run for longer than it may take, its grace included."""
    begun = {e['token']: e['db'] for e in journal if e['op'] == 'claim'}
    return sum(e['lease_until'] > begun.get(e['token'], float('inf')) + timeout + 1e-3 for e in journal if e['op'] == 'hb')


def most_at_once(business, key, since=0):
    """How many bodies of one key, begun since then, lived at an instant. One that was killed has no end: it lived until its last effect at least."""
    marks, last = defaultdict(list), {}
    for entry in business['entry']:
        last[entry['job'], entry['period'], entry['fence']] = entry['at']
    for row in (row for row in business['alive'] if row['began'] >= since):
        end = row['ended'] or last.get((row['job'], row['period'], row['fence']), row['began']) + 1e-6
        marks[key(row)] += [(row['began'], 1), (max(end, row['began'] + 1e-6), -1)]
    most = 0
    for found in marks.values():
        now = 0
        for _, step in sorted(found):
            now += step
            most = max(most, now)
    return most


def agree(first, second, noise):
    """The two baselines, and what their own spread is. -> (why they do not agree or None, spread in seconds)"""
    a, b = first.measures, second.measures
    differ = [f'{name} {a[name]} and {b[name]}' for name in EXACT if a[name] != b[name]]
    spread = abs(a['seconds'] - b['seconds'])
    if spread > noise:
        differ.append(f'seconds {a["seconds"]} and {b["seconds"]}, more than {noise} apart')
    return ', '.join(differ) or None, spread


def judge(folder, registered):
    """-> what the record has of the result. `folder` is the experiment's."""
    told = registered['experiment']
    names = ['baseline-1', 'baseline-2', 'candidate'] + (['normal'] if os.path.isdir(os.path.join(folder, 'normal')) else [])
    samples = [Sample(os.path.join(folder, name)) for name in names]
    samples[2].gives_up = told.get('gives_up', ())      # what is not promised under this one condition, said beforehand
    gaps = [f'{s.name}/{name}' for s in samples for name in s.missing]
    if gaps:
        return result(INCONCLUSIVE, f'evidence is missing: {", ".join(gaps)}', samples)
    broken = [f'{s.name}: {what}' for s in samples for what in s.broken_chain()]
    if broken:
        better = samples[2].measures['seconds'] < min(s.measures['seconds'] for s in samples[:2])
        deviates = next((s.first_deviation() for s in samples if s.broken()), None)      # it is said, whoever put it there
        return result(INCONCLUSIVE, ('better figure, broken chain of evidence: ' if better else 'broken chain of evidence: ') + '; '.join(broken), samples,
                      deviates)
    drift = [f'{s.name}: {what}' for s in samples for what in other_conditions(s, registered)] + list(drifted(samples))
    if drift:
        return result(INCONCLUSIVE, f'other conditions than registered: {"; ".join(drift)}', samples)
    for sample in samples:
        trouble = [a['more'] for a in sample.actions if a['what'] == 'the lab could not go on']
        if trouble and not sample.broken():
            return result(INCONCLUSIVE, f'{sample.name}: the lab could not go on: {trouble[0]}', samples)
        failed = failing(sample, told)
        alone = sample in samples[:2] and sum(bool(failing(s, told)) for s in samples[:2]) == 1
        if failed and alone and not any(s.broken() for s in samples):
            return result(INCONCLUSIVE, f'the baseline does not agree with itself: in {sample.name} alone {"; ".join(failed)} did not hold', samples)
        if sample.broken() or any(holds(t, sample.measures) is False for t in failed):
            why = ', '.join(sample.broken()) or '; '.join(f'{t} ({sample.measures.get(t.split()[0])})' for t in failed)
            words = 'new sample passes, original fails: ' if sample.name == 'normal' or (sample.name.startswith('baseline') and told.get('replays')) else ''
            return result(INVALID, f'{words}{sample.name}: {why}', samples, sample.first_deviation(failed))
        if failed:
            return result(INCONCLUSIVE, f'{sample.name}: not measured: {"; ".join(failed)}', samples)
    why, spread = agree(*samples[:2], told.get('noise', 10.0))
    if why:
        return result(INCONCLUSIVE, f'the baseline does not agree with itself: {why}', samples)
    few = [f'{name} {samples[2].measures.get(name, 0)} of {least}' for name, least in told.get('minimum', {}).items()
           if samples[2].measures.get(name, 0) < least]
    if few:
        return result(INCONCLUSIVE, f'too little happened to judge by: {", ".join(few)}', samples)
    given_up = ', '.join(promise for promise in samples[2].verdict['violations'] if promise in samples[2].gives_up)
    return result(VALID, 'every pass condition holds, and the checker finds no promise broken' + (f' but {given_up}, which is given up here' if given_up else ''),
                  samples, spread=spread)


def failing(sample, told):
    """The pass conditions that do not hold, or were not measured."""
    which = 'baseline' if sample.name.startswith('baseline') else sample.name
    tests = told['pass_when'].get(which, told['pass_when']['baseline'] if which == 'normal' else ())
    return [test for test in tests if not holds(test, sample.measures)]


def other_conditions(sample, registered):
    if sample.name == 'normal':
        return
    want = registered['baseline' if sample.name.startswith('baseline') else 'candidate']
    have = sample.conditions['conditions']
    for key in want:
        if key != 'store' and have.get(key) != want[key]:
            yield f'{key} {have.get(key)!r}, not {want[key]!r}'


def drifted(samples):
    """Between samples nothing changes that is not a condition: the program, the store's version, the checker, the data of the two baselines."""
    first = samples[0].conditions
    for sample in samples[1:]:
        for key in ('program', 'store', 'checker'):
            if sample.conditions['versions'][key] != first['versions'][key] and (key != 'store' or sample.name != 'candidate'):
                yield f'{sample.name}: {key} is another version'
    if samples[1].conditions['snapshot'] != first['snapshot']:
        yield 'baseline-2: other data than baseline-1'


def result(verdict, why, samples, deviation=None, spread=None):
    whole = [s for s in samples if not s.missing]
    found = dict(verdict=verdict, why=why, first_deviation=deviation or '',
                 samples={s.name: dict(measures=s.measures, violations=s.verdict['violations']) for s in whole})
    if spread is not None and len(whole) >= 3:
        base = [s.measures['seconds'] for s in whole[:2]]
        by = whole[2].measures['seconds'] - max(base) if whole[2].measures['seconds'] > max(base) else whole[2].measures['seconds'] - min(base)
        outside = not min(base) <= whole[2].measures['seconds'] <= max(base) and abs(by) > spread
        found['seconds'] = dict(baseline=base, spread=round(spread, 3), candidate=whole[2].measures['seconds'],
                                difference=round(by, 3) if outside else 'none: within the spread of the baseline')
    return found


def caught(record):
    """Of a protection taken out: the promise that was found broken first, where that is what this mutant breaks; else None. The baselines have to be good."""
    result, catches = record['observed_result'], record['execution'].get('catches', ())
    if result['verdict'] != INVALID or record['first_deviation']['sample'] != 'candidate':
        return None
    found = set(result['samples']['candidate']['violations'])
    if found & set(catches):
        return ', '.join(sorted(found & set(catches)))
    deviation = record['first_deviation']
    return deviation['what'] if not found and deviation['promise'] in (None, *catches) else None
