"""Experiments as files. One says what it claims, under which conditions, what is done, what is looked at, and when it has passed
or is stopped; baseline and candidate differ in exactly one condition, the one that `changed` names. docs/lab.md has the keys.
"""
import hashlib
import json
import operator
import os
import re
import tomllib

from program import HERE

FOLDER = os.path.join(HERE, 'experiments')
KINDS = 'normal', 'boundary', 'failing', 'recovering'
STORES = 'sqlite', 'postgresql', 'mariadb'
# Every condition there is, with what it is where a file does not say.
CONDITIONS = {
    'store': 'sqlite', 'seed': 1, 'mutant': 'none',
    'topology.nodes': 1, 'topology.link': 'direct', 'topology.redis': 'none', 'topology.callers': 0,
    'topology.server': 'shared', 'topology.replication': 'none', 'topology.disk': 'roomy', 'topology.clock': "the machine's", 'topology.skew': 0,
    'topology.versions': 'one', 'topology.labels': 'none', 'topology.pager': 'none', 'topology.boot': "the machine's", 'topology.slept': 0,
    'topology.audits': 'usual',
    'client.ttl': '2s', 'client.door': 'serve', 'client.slots': 64, 'client.drain': '10s', 'client.at_once': 16,
    'data.days': 1, 'data.other_days': 0,
    'job.misfire': 'each', 'job.max_periods': 30, 'job.order': 'usual', 'job.max_parallel': 1, 'job.attempts': 5, 'job.backoff': '100ms..200ms',
    'job.recovery': 'rerun', 'job.timeout': '60s', 'job.grace': 0.2, 'job.guard': 'fence', 'job.gate': 'none', 'job.steps': 1, 'job.seconds': 0.0,
    'job.limit': 0, 'job.limit_of': 'job', 'job.copies': 1, 'job.lock': 'own', 'job.commit': 'node', 'job.source_days': 0,
    'job.marks': 'rising', 'job.overlap': 'usual', 'job.after': 'none', 'job.tenant': 'none',
    'fault.action': 'none', 'fault.point': 'none', 'fault.length': 1.6, 'fault.step': 0.0,
}
CHOICES = {
    'topology.versions': ('one', 'two'), 'topology.labels': ('none', 'own'), 'topology.pager': ('none', 'slow'),
    'topology.server': ('shared', 'own'), 'topology.replication': ('none', 'synchronous', 'asynchronous'), 'topology.disk': ('roomy', 'small', 'forgetful'),
    'topology.boot': ("the machine's", 'its own'), 'topology.audits': ('usual', 'often'),
    'topology.clock': ("the machine's", 'its own'), 'topology.link': ('direct', 'proxy'), 'topology.redis': ('none', 'quick door'), 'client.door': ('serve', 'exec', 'direct'), 'job.misfire': ('skip', 'latest', 'each'),
    'job.guard': ('fence', 'key', 'store', 'none'), 'job.gate': ('none', 'before', 'after'), 'job.order': ('usual', 'strict', 'none'),
    'job.lock': ('own', 'shared'), 'job.limit_of': ('job', 'key', 'tenant'), 'job.commit': ('node', 'job'), 'job.marks': ('rising', 'falling'), 'job.overlap': ('usual', 'replace'),
    'job.after': ('none', 'first'), 'job.tenant': ('none', 'own'), 'job.recovery': ('rerun', 'resume', 'hold'),
}
KEYS = {'name', 'topic', 'kind', 'selected_chapter', 'claim_from_article', 'promises', 'changed', 'fixed', 'baseline', 'candidate', 'actions',
        'minimum', 'pass_when', 'stop_when', 'noise', 'replays', 'keeps_normal', 'core', 'needs_lab_build', 'leaves_open', 'catches', 'at_most',
        'only_on', 'gives_up'}
NEEDED = 'name', 'topic', 'kind', 'selected_chapter', 'claim_from_article', 'promises', 'changed', 'baseline', 'candidate', 'actions', 'pass_when'
STOPS = 'doubled', 'lost', 'plan', 'deadlock', 'lock wait', 'inconsistent'
SIGNS = {'==': operator.eq, '!=': operator.ne, '>=': operator.ge, '<=': operator.le, '<': operator.lt, '>': operator.gt}
TEST = re.compile(r"^([a-z_]+) (==|!=|>=|<=|<|>) (-?\d+(?:\.\d+)?|true|false|'[^']*')$")


class Bad(Exception):
    """An experiment that must not start; the text says where and why."""


def digest(value):
    text = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(text).hexdigest()


def flat(table, before=''):
    found = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f'{before}{key}.')
        else:
            found[before + key] = value
    return found


class Experiment:
    def __init__(self, path, text=None):
        self.path = path
        if text is None:
            with open(path, 'rb') as f:
                text = f.read()
        self.text = text
        try:
            self.told = tomllib.loads(text.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise Bad(f'{path}: is no TOML: {e}') from None
        self.check_keys()
        self.name, self.topic, self.kind = (self.told[k] for k in ('name', 'topic', 'kind'))
        fixed = self.conditions('fixed')
        self.baseline, self.candidate = (CONDITIONS | fixed | self.conditions(which) for which in ('baseline', 'candidate'))
        self.check()

    def check_keys(self):
        for key in NEEDED:
            if key not in self.told:
                self.bad(f'{key} is missing')
        for key in self.told:
            if key not in KEYS:
                self.bad(f'{key!r} is no key of an experiment; these are: {", ".join(sorted(KEYS))}')

    def bad(self, what):
        raise Bad(f'{self.path}: {what}')

    def conditions(self, which):
        found = flat(self.told.get(which, {}))
        for key, value in found.items():
            if key not in CONDITIONS:
                self.bad(f'[{which}] {key!r} is no condition; these are: {", ".join(CONDITIONS)}')
            if not isinstance(value, type(CONDITIONS[key])) and not (isinstance(CONDITIONS[key], float) and isinstance(value, int)):
                self.bad(f'[{which}] {key} = {value!r} is not of the kind of {CONDITIONS[key]!r}')
            if value not in CHOICES.get(key, (value,)):
                self.bad(f'[{which}] {key} = {value!r}; write one of {", ".join(CHOICES[key])}')
        return found

    def check(self):
        if self.kind not in KINDS:
            self.bad(f'kind = {self.kind!r}; write one of {", ".join(KINDS)}')
        differ = [key for key in CONDITIONS if self.baseline[key] != self.candidate[key]]
        if differ != [self.told['changed']]:
            others = [f'{key} ({self.baseline[key]!r} and {self.candidate[key]!r})' for key in differ if key != self.told['changed']]
            self.bad(f'baseline and candidate must differ in {self.told["changed"]} and nothing else' +
                     (f'; they also differ in {", ".join(others)}' if others else '; they do not differ in it'))
        for which in ('baseline', 'candidate'):
            if not 0 <= getattr(self, which)['topology.nodes'] <= 6:
                self.bad(f'[{which}] topology.nodes: up to six')
            self.check_place(which, getattr(self, which))
            for test in self.told['pass_when'].get(which, ()) or self.bad(f'pass_when.{which} is missing: what is not said cannot fail'):
                if not TEST.match(test):
                    self.bad(f"pass_when: {test!r}; write MEASURE == VALUE, with ==, !=, <, <=, > or >=")
        if self.told.get('replays'):
            self.check_replay(self.beside(self.told['replays']))
        if self.told.get('gives_up') and self.kind != 'failing':
            self.bad('gives_up: only an experiment of kind = "failing" may give promises up')
        for stop in self.told.get('stop_when', ()):
            if stop not in STOPS:
                self.bad(f'stop_when: {stop!r}; these are: {", ".join(STOPS)}')

    def check_place(self, which, c):
        if c['topology.link'] == 'proxy' and c['store'] == 'sqlite':
            self.bad(f'[{which}] topology.link = "proxy": a SQLite store has no link; write store = "postgresql" or "mariadb"')
        if c['topology.server'] == 'own' and c['store'] == 'sqlite':
            self.bad(f'[{which}] topology.server = "own": a SQLite store has no server; write store = "postgresql" or "mariadb"')
        if c['topology.replication'] != 'none' and (c['topology.server'], c['topology.link']) != ('own', 'direct'):
            self.bad(f'[{which}] topology.replication: write topology.server = "own" and topology.link = "direct" beside it')

    def beside(self, name):
        """An experiment that lies beside this one, or ships."""
        near = os.path.join(os.path.dirname(self.path), name + '.toml')
        return Experiment(near if os.path.exists(near) else os.path.join(FOLDER, name + '.toml'))

    def check_replay(self, failed):
        """What is mended is the sample that failed, and no other."""
        differ = [key for key in CONDITIONS if self.baseline[key] != failed.candidate[key]]
        if differ:
            self.bad(f'its baseline is to be the sample that failed in {failed.name}, but differs from it in {", ".join(differ)}')

    def on(self, store):
        """The same experiment on another kind of store: both conditions alike, so it stays one changed variable."""
        if self.told['changed'] == 'store' or store not in self.told.get('only_on', (store,)):
            return self
        # A link that can be made worse and a process that can be killed are there with a server only.
        both = self.baseline, self.candidate
        served = any(c['topology.link'] == 'proxy' or c['topology.server'] == 'own' for c in both)
        ours = served or any(c['topology.clock'] == 'its own' for c in both)      # what is done there is done to nobody else's server
        if not (served if store == 'sqlite' else ours and '://' in store):
            for conditions in both:
                conditions['store'] = store
        return self

    def needs_older(self):
        return 'two' in (self.baseline.get('topology.versions'), self.candidate.get('topology.versions'))

    def changed(self):
        key = self.told['changed']
        return dict(exactly_one=key, baseline=self.baseline[key], candidate=self.candidate[key])

    def register(self):
        """What is written down, with its digest, before anything runs."""
        told = self.told
        if told.get('keeps_normal'):
            kept = self.beside(told['keeps_normal'])
            told = told | dict(pass_when=told['pass_when'] | dict(normal=kept.told['pass_when']['baseline']))
        told = dict(experiment=told, baseline=self.baseline, candidate=self.candidate, file_digest=digest(self.text))
        return told | dict(digest=digest(told))


def holds(test, measures):
    """Whether a pass condition holds; None where what it asks for was not measured."""
    name, sign, value = TEST.match(test).groups()
    have = measures.get(name)
    if have is None:
        return None
    want = value.strip("'") if value[0] == "'" else dict(true=True, false=False).get(value)
    if want is None:
        want = float(value)
    elif sign not in ('==', '!='):
        return False
    if isinstance(have, str) != isinstance(want, str):
        return sign == '!='
    return SIGNS[sign](have, want)


def shipped(which):
    """`core`, `full`, `mutants`, or files."""
    if which in ('core', 'full', 'mutants'):
        folder = os.path.join(FOLDER, 'mutants') if which == 'mutants' else FOLDER
        found = [Experiment(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith('.toml')]
        found.sort(key=lambda e: (e.topic, KINDS.index(e.kind), e.name))
        return [e for e in found if which != 'core' or e.told.get('core', True)]
    return [Experiment(which)]
