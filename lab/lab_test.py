#!/usr/bin/env python3
"""The lab's own rules, through the command as people type it. MATINS_BINARY names the program."""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
MATINS = os.environ['MATINS_BINARY']

import commands  # noqa: E402
import judge  # noqa: E402
import keep  # noqa: E402
import mutants  # noqa: E402
from experiment import FOLDER, STORES, Bad, Experiment, shipped  # noqa: E402
from nemesis import Nemesis  # noqa: E402
from nodes import state_of, tell  # noqa: E402
from program import stay_clear_of_midnight  # noqa: E402
from right_histories import plain  # noqa: E402
from wrong_histories import WRONG  # noqa: E402

stay_clear_of_midnight(300)  # longer than nearly every ctest of these takes
GOOD = '''
name = "t.good"
topic = "a topic"
kind = "normal"
selected_chapter = "docs/lab.md"
claim_from_article = "It is DONE."
promises = ["I1"]
changed = "job.seconds"
actions = ["node", "status DONE"]
stop_when = ["doubled", "lost", "inconsistent"]
[baseline]
job.seconds = 0.0
topology.nodes = 1
[candidate]
job.seconds = 0.1
topology.nodes = 1
[pass_when]
baseline = ["done == 1", "broken == 0"]
candidate = ["done == 1", "doubled == 0"]
'''
# A shell, the lab that it begins, and a node of that, which is stopped when the shell ends.
SHELL = """
import os, signal, sys, time
from unittest import mock
sys.path.insert(0, {here!r})
from nodes import Member, state_of
from program import eventually
if os.fork() == 0:
    member = Member(mock.Mock(folder={folder!r}, **{{'env.return_value': dict(os.environ)}}), 0, program={node!r})
    member.start()
    os.kill(member.process.pid, signal.SIGSTOP)
    eventually('a stop', lambda: state_of(member.process.pid) == 'T')
    print(os.getpid(), member.process.pid, flush=True)
    os.close(1)
    time.sleep(600)
sys.stdin.read()
"""
RECORD = ['topic', 'selected_chapter', 'claim_from_article', 'baseline_version', 'changed_condition', 'execution', 'evidence', 'pass_when', 'stop_when',
          'observed_result', 'first_deviation', 'recovery_replay']


def lines(events):
    return ''.join(json.dumps(e) + '\n' for e in events)


class Files(unittest.TestCase):
    def refused(self, text, *says):
        with self.assertRaises(Bad) as told:
            Experiment('t.toml', text.encode())
        for word in says:
            self.assertIn(word, str(told.exception))

    def test_those_that_ship_are_good_and_complete(self):
        kinds = {}
        for e in shipped('full'):
            kinds.setdefault(e.topic, set()).add(e.kind)
            self.assertEqual(os.path.basename(e.path), e.name + '.toml')
        self.assertEqual(len(kinds), 6)
        for topic, found in kinds.items():
            self.assertEqual(found, {'normal', 'boundary', 'failing', 'recovering'}, topic)

    def test_a_second_difference_is_named(self):
        self.refused(GOOD.replace('topology.nodes = 1\n[pass', 'topology.nodes = 2\n[pass'), 'topology.nodes (1 and 2)')

    def test_no_difference_is_none(self):
        self.refused(GOOD.replace('0.1', '0.0'), 'do not differ')

    def test_words_that_nobody_knows_are_refused(self):
        self.refused(GOOD.replace('topic =', 'topics = 1\ntopic ='), "'topics'")
        self.refused(GOOD.replace('job.seconds = 0.0', 'job.second = 0.0'), "'job.second'")
        self.refused(GOOD.replace('"done == 1", "doubled', '"done is 1", "doubled'), 'MEASURE == VALUE')
        self.refused(GOOD.replace('"lost",', '"lots",'), "'lots'")
        self.refused(GOOD.replace('kind = "normal"', 'kind = "odd"'), "'odd'")

    def test_what_cannot_fail_is_refused(self):
        self.refused(GOOD.replace('candidate = ["done == 1", "doubled == 0"]', ''), 'cannot fail')

    def test_a_recovery_replays_the_sample_that_failed(self):
        with open(os.path.join(FOLDER, 'ownership.recovering.toml')) as f:
            self.refused(f.read().replace('[fixed]', '[fixed]\ndata.days = 2'), 'ownership.failing', 'data.days')

    def test_each_protection_is_taken_out_or_it_is_said_why_not(self):
        """On each kind of store, and not both."""
        source = os.path.join(HERE, '..', 'src', 'base', 'fault.cc')
        with open(source) as f:
            known = set(re.findall(r'\{"(\w+)", Mutant::', f.read())) - {'none'}
        shown, told = self.taken_out(), set(mutants.elsewhere())
        self.assertEqual({(name, store) for name in known for store in STORES}, shown | told)
        self.assertEqual(shown & told, set())

    def taken_out(self):
        """(protection, kind of store) of each that an experiment takes out."""
        return {(e.candidate['mutant'], store) for store in STORES for e in (e.on(store) for e in shipped('mutants')) if e.candidate['store'] == store}

    def test_the_table_of_the_docs_is_that_of_the_experiments(self):
        with open(os.path.join(HERE, '..', 'docs', 'reliability.md')) as f:
            rows = re.findall(r'^\| [IJ0-9, ]+ \| `(\w+)`: .* \| ([\w, ]+) \|$', f.read(), re.M)
        stores = {'SQLite': 'sqlite', 'PostgreSQL': 'postgresql', 'MariaDB': 'mariadb'}
        told = {(name, stores[store]) for name, where in rows for store in (stores if where == 'all three' else where.split(', '))}
        self.assertEqual(told, self.taken_out())

    def test_only_a_failing_experiment_gives_promises_up(self):
        self.refused(GOOD.replace('promises =', 'gives_up = ["I11"]\npromises ='), 'gives_up')

    def test_each_wrong_history_deviates_at_an_event(self):
        """The first of two, whichever promise has the lower number; what only the end shows comes last."""
        for promise, what, start, spoil in WRONG:
            events = start()
            spoil(events)
            violations = judge.checker.check(events)['violations']
            found = judge.deviation.first(events, violations)
            self.assertIn(found['promise'], violations, what)
            self.assertTrue(found['event'] and found['phase'] and found['what'], what)
        # A late one in the journal, and an earlier one that only the business table has, of a promise with a higher number.
        events = plain()
        last = [e for e in events if e['type'] == 'jr' and e['op'] == 'hb'][-1]
        last['token'] = 7
        self.assertEqual(self.deviation(events)['event']['db'], last['db'])
        twice = next(e for e in events if e['type'] == 'effect')
        events.append(dict(twice))
        found = self.deviation(events)
        self.assertEqual((found['promise'], found['phase'], found['event']['db']), ('I12', 'effect', twice['db']))

    def deviation(self, events):
        return judge.deviation.first(events, judge.checker.check(events)['violations'])

    def test_without_an_older_program_full_is_whole_and_says_what_it_lacks(self):
        options = argparse.Namespace(what=['full'], only=[], older=None, keep='kept', at_a_time=3, by='ann')
        batch = commands.batch_on(options, 'sqlite', on_that_alone=True)
        self.assertNotIn('faults.rolling_upgrade', [e.name for e in batch.experiments])
        self.assertEqual(batch.left_out, ['faults.rolling_upgrade: needs the program of the version before: --older PATH'])
        options.older = sys.executable
        batch = commands.batch_on(options, 'sqlite', on_that_alone=True)
        self.assertIn('faults.rolling_upgrade', [e.name for e in batch.experiments])
        self.assertEqual(batch.left_out, [])

    def test_secrets_are_masked(self):
        told = keep.masked('postgresql://ann:s3cret@db/x password=hunter2 {"api_key": "k9"} fence_token: 7')
        for secret in ('s3cret', 'hunter2', 'k9'):
            self.assertNotIn(secret, told)
        self.assertIn('ann:***@db', told)
        self.assertIn('fence_token: 7', told)


class Evil(unittest.TestCase):
    def test_a_stopped_node_stays_so_when_the_shell_that_began_the_lab_ends(self):
        """Of a group that nobody is left to look after the kernel lets the stopped ones go on, with a SIGHUP before."""
        with tempfile.TemporaryDirectory(prefix='mtlab') as folder:
            node = os.path.join(folder, 'node')
            with open(node, 'w') as f:
                f.write('#!/bin/sh\nexec sleep 600\n')
            os.chmod(node, 0o700)
            shell = subprocess.Popen([sys.executable, '-B', '-c', SHELL.format(here=HERE, folder=folder, node=node)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True, process_group=0)
            lab, stopped = map(int, shell.stdout.readline().split())
            for pid in (lab, stopped):
                self.addCleanup(tell, pid, signal.SIGKILL)
            shell.communicate()
            self.assertEqual(state_of(stopped), 'T')

    def test_a_statement_may_wait_for_what_was_stopped(self):
        """A node that stands still within a transaction has its store's lock, and nobody but the nemesis lets it go on."""
        class Case:
            gone_on = threading.Event()

            def sql(self, statement):
                return self.gone_on.wait(60) and statement
        evil = Nemesis(Case(), [], random.Random(1))
        evil.at(0.1, Case.gone_on.set)
        self.assertEqual(evil.sql('delete'), 'delete')

    def test_a_guard_is_found_whichever_node_has_it(self):
        members = [unittest.mock.Mock(found=found, **{'alive.return_value': alive})
                   for found, alive in (((), True), ((7,), True), ((8,), False))]
        with unittest.mock.patch('nemesis.guards_and_bodies', lambda member: (member.found, ())):
            evil = Nemesis(None, members, random.Random(1))
            self.assertEqual([evil.process(0) for _ in range(20)], [7] * 20)
            self.assertIsNone(evil.process(1))


class Runs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='mtlab')
        self.addCleanup(shutil.rmtree, self.folder)
        self.root = os.path.join(self.folder, 'kept')

    def lab(self, *words, code=0, program=None):
        command, env = [MATINS, 'lab'], os.environ
        if program:                  # another one than that which brings the lab
            command, env = [sys.executable, '-B', HERE], {**env, 'MATINS_BINARY': program}
        done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL, check=False, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def write(self, text, name='t.toml'):
        path = os.path.join(self.folder, name)
        with open(path, 'w') as f:
            f.write(text)
        return path

    def kept(self, number, *more):
        return os.path.join(self.root, f'run-{number:03}', *more)

    def record(self, number, name):
        return keep.read_json(self.kept(number, name, 'record.json'))

    def test_a_run_can_be_judged_again_and_shows_what_was_changed(self):
        path = self.write(GOOD)
        seal = self.lab('run', path, '--keep', self.root).split()[-1]
        record = self.record(1, 't.good')
        self.assertEqual(list(record)[:len(RECORD)], RECORD)
        self.assertEqual(record['changed_condition'], dict(exactly_one='job.seconds', baseline=0.0, candidate=0.1))
        self.assertEqual((record['first_deviation'], record['recovery_replay']), ('', ''))
        registered = keep.read_json(self.kept(1, 't.good', 'registered.json'))
        self.assertLess(registered['at'], keep.read_lines(self.kept(1, 't.good', 'baseline-1', 'actions.jsonl'))[0]['at'])
        with open(self.kept(1, 'report.html')) as f:
            page = f.read()
        for words in ('Not covered', '<svg', 't.good', 'SQLite'):
            self.assertIn(words, page)
        self.assertIn('valid', self.lab('verify', self.kept(1), '--seal', seal))
        # A retry is another folder.
        before = keep.files(self.kept(1))
        self.lab('run', path, '--keep', self.root)
        self.assertEqual(keep.files(self.kept(1)), before)
        self.tamper(seal)

    def tamper(self, seal):
        evidence = self.kept(1, 't.good', 'candidate', 'evidence.jsonl')
        with open(evidence) as f:
            lines = f.readlines()
        with open(evidence, 'w') as f:
            f.writelines(line for line in lines if '"op": "commit"' not in line)
        self.assertIn('evidence.jsonl was changed', self.lab('verify', self.kept(1), code=1))
        # And who makes a new manifest is betrayed by the other witnesses, and by the seal.
        os.remove(self.kept(1, keep.MANIFEST))
        keep.seal(self.kept(1))
        told = self.lab('verify', self.kept(1), '--seal', seal, code=1)
        self.assertIn('the seal is', told)
        self.assertIn('broken chain of evidence', told)
        # So is who betters the record alone.
        record = self.kept(2, 't.good', 'record.json')
        with open(record) as f:
            text = f.read().replace('"heartbeats": 0', '"heartbeats": 7').replace('"rows": 1,', '"rows": 2,')
        with open(record, 'w') as f:
            f.write(text)
        os.remove(self.kept(2, keep.MANIFEST))
        keep.seal(self.kept(2))
        self.assertIn('the figures of the record are not those', self.lab('verify', self.kept(2), code=1))
        os.remove(evidence)
        self.assertIn('evidence is missing: candidate/evidence.jsonl', self.lab('verify', self.kept(1), code=1))

    def resealed(self, number, change, *parts):
        """Who changes a file and makes a new manifest. -> what verify says"""
        path = self.kept(number, *parts)
        with open(path) as f:
            before = f.read()
        after = change(before)
        self.assertNotEqual(before, after)
        with open(path, 'w') as f:
            f.write(after)
        os.remove(self.kept(number, keep.MANIFEST))
        keep.seal(self.kept(number))
        told = self.lab('verify', self.kept(number), code=1)
        with open(path, 'w') as f:
            f.write(before)
        os.remove(self.kept(number, keep.MANIFEST))
        keep.seal(self.kept(number))
        return told

    def test_a_folder_that_was_changed_and_sealed_anew_says_different_things(self):
        self.lab('run', self.write(GOOD), '--keep', self.root)
        sample = 't.good', 'candidate'

        def a_heartbeat_of_somebody_else(text):
            return ''.join(line.replace('"token": "', '"token": "9') if '"op": "commit"' in line else line for line in text.splitlines(True))
        told = self.resealed(1, a_heartbeat_of_somebody_else, *sample, 'evidence.jsonl')
        self.assertIn('the journal has commit of work', told)
        self.assertIn('first deviation: in candidate, at commit, I3: ZOMBIE ACCEPTED', told)       # it is said, whoever put it there
        self.assertIn('or others', self.resealed(1, lambda t: t.replace('"res":"ok"', '"res":"refused"'), *sample, 'history-0.jsonl'))
        self.assertIn('differ', self.resealed(1, lambda t: t.replace('"step": 0', '"step": 1'), *sample, 'effects.jsonl'))
        told = self.resealed(1, lambda t: t.replace('"doubled == 0"', '"doubled == 1"'), 't.good', 'registered.json')
        self.assertIn('is not what its digest says', told)
        self.assertIn('pass_when of experiment.toml is not what was registered', told)
        self.assertIn('report.json has another record', self.resealed(1, lambda t: t.replace('"by": ', '"by_": ').replace('a topic', 'b topic'), 'report.json'))
        self.assertIn('cannot be judged again', self.resealed(1, lambda t: '[[1]]\n' + t, *sample, 'evidence.jsonl'))
        self.assertIn('other conditions than registered', self.resealed(1, lambda t: t.replace('"job.seconds": 0.1', '"job.seconds": 0.2'), *sample,
                                                                        'conditions.json'))
        self.lab('verify', self.kept(1))
        os.rename(self.kept(1, 't.good'), os.path.join(self.folder, 'gone'))
        os.remove(self.kept(1, keep.MANIFEST))
        keep.seal(self.kept(1))
        self.assertIn('is in report.json, and has no record', self.lab('verify', self.kept(1), code=1))

    def test_a_single_history_is_judged_by_itself(self):
        good = plain()
        self.assertIn('valid', self.lab('verify', self.write(lines(good), 'good.jsonl')))
        beat = next(e for e in good if e['type'] == 'jr' and e['op'] == 'hb')
        beat['lease_until'] = beat['db']
        told = self.lab('verify', self.write(lines(good), 'bad.jsonl'), code=1)
        self.assertIn('first deviation: at hb, I5: heartbeat shortened the lease', told)
        self.assertIn('is no history', self.lab('verify', self.write('[1]\n', 'none.jsonl'), code=2))

    def test_two_versions_share_a_store(self):
        """A copy of this program stands for the one before."""
        self.assertIn('this very program', self.lab('run', 'full', '--store', 'sqlite', '--only', 'faults.rolling_upgrade', '--older', MATINS,
                                                    '--keep', self.root, code=2))
        words = 'run', 'full', '--store', 'sqlite', '--only', 'faults.rolling_upgrade', '--keep', self.root
        self.assertIn('--older PATH', self.lab(*words, code=1))
        older = os.path.join(self.folder, 'older')
        shutil.copy(MATINS, older)
        self.assertIn('1 of 1 valid', self.lab(*words, '--older', older))
        told = keep.read_json(self.kept(2, 'faults.rolling_upgrade', 'candidate', 'conditions.json'))['versions']
        self.assertEqual(told['older']['program'], told['program'])

    def test_a_node_whose_store_a_newer_program_has_migrated(self):
        self.lab('run', 'full', '--store', 'sqlite', '--only', 'faults.newer_program', '--keep', self.root)
        ends = [a for a in keep.read_lines(self.kept(1, 'faults.newer_program', 'candidate', 'actions.jsonl')) if a['what'] == 'a node ended']
        self.assertEqual([(a['code'], a['by_itself'], a['badly']) for a in ends], [(4, True, False), (0, False, False)])

    def test_after_a_failure_only_the_same_again(self):
        bad = self.write(GOOD.replace('"doubled == 0"', '"effects == 2"').replace('t.good', 't.bad'))
        self.assertIn('invalid', self.lab('run', bad, '--keep', self.root, code=1))
        record = self.record(1, 't.bad')
        self.assertEqual(record['first_deviation']['sample'], 'candidate')
        self.assertEqual((record['finding']['state'], record['finding']['root_cause']), ('observing', ''))
        other = self.write(GOOD.replace('0.1', '0.2'), 'o.toml')
        told = self.lab('run', other, '--keep', self.root, code=2)
        self.assertIn('a second changed variable is refused', told)
        self.assertIn('t.bad', told)
        self.assertFalse(os.path.exists(self.kept(2)))
        self.lab('replay', self.kept(1), '--keep', self.root, code=1)
        self.assertEqual(self.record(2, 't.bad')['execution']['digest'], record['execution']['digest'])
        self.lab('run', self.write(GOOD.replace('a topic', 'another topic')), '--keep', self.root)

    def test_a_finding_is_closed_by_a_replay_that_passes(self):
        """A program that serves nothing, and then the right one."""
        broken = self.write(f'#!/bin/sh\n[ "$1" = serve ] && {MATINS} job apply "$2" && exec sleep 60\nexec {MATINS} "$@"\n', 'broken')
        os.chmod(broken, 0o700)
        path = self.write(GOOD.replace('promises =', 'at_most = 2\npromises ='))
        self.lab('run', path, '--keep', self.root, code=1, program=broken)
        self.assertRegex(self.lab('findings', '--keep', self.root), r'observing +run-001 t\.good: baseline-1: ')
        words = 'close', self.kept(1), 't.good', '--root-cause', 'it served nothing', '--change', 'it serves'
        # The same again fails again.
        self.lab('replay', self.kept(1), '--keep', self.root, code=1, program=broken)
        self.assertIn('stays observing', self.lab(*words, '--replay', self.kept(2), code=2))
        self.assertIn('before the failure', self.lab('close', self.kept(2), *words[2:], '--replay', self.kept(1), code=2))
        # Another sample is no replay of this one, though it passes.
        self.lab('run', self.write(GOOD, 'o.toml'), '--keep', self.root + '2')
        self.assertIn('was not run as it was', self.lab(*words, '--replay', self.root + '2/run-001', code=2))
        self.assertIn('has no finding of t.other', self.lab(*words[:2], 't.other', *words[3:], '--replay', self.kept(2), code=2))
        self.assertIn('--change: is empty', self.lab(*words[:-1], ' ', '--replay', self.kept(2), code=2))
        self.lab('replay', self.kept(1), '--keep', self.root)
        self.lab(*words, '--replay', self.kept(3), '--by', 'eve')
        entries, = keep.read_json(os.path.join(self.root, 'findings.json'))
        self.assertEqual((entries['state'], entries['root_cause'], entries['change'], entries['by']), ('closed', 'it served nothing', 'it serves', 'eve'))
        self.assertTrue(entries['phenomenon'] and entries['first_deviation'])
        self.assertNotEqual(entries['replay']['program_before'], entries['replay']['program_after'])
        told = self.lab('findings', '--keep', self.root).splitlines()
        self.assertEqual([line.split()[:2] for line in told], [['closed', 'run-001'], ['observing', 'run-002']])
        self.assertIn('is closed', self.lab(*words, '--replay', self.kept(3), code=2))

    def test_too_little_is_inconclusive(self):
        path = self.write(GOOD.replace('[baseline]', 'minimum = { refusals = 30 }\n[baseline]', 1))
        self.assertIn('refusals 0 of 30', self.lab('run', path, '--keep', self.root, code=1))
        self.assertEqual(self.record(1, 't.good')['observed_result']['verdict'], 'inconclusive')

    def stopped(self, *words):
        """A run in which `locks.failing` was stopped within a second, and how. If the machine stood still just then, another one."""
        for attempt in range(5):
            self.root = os.path.join(self.folder, f'kept-{attempt}')
            wrong = None
            try:
                self.lab('run', 'core', '--only', 'locks.failing', *words, '--keep', self.root)
            except AssertionError as e:
                wrong = e
            stop = keep.read_json(self.kept(1, 'locks.failing', 'candidate', 'stop.json'))
            if stop and stop['seconds_to_stop'] > 1:
                continue
            if wrong:
                raise wrong
            return stop
        self.fail(f'never within a second: {stop}')

    def test_a_doubled_effect_stops_a_run_and_nothing_is_written_after(self):
        stop = self.stopped()
        self.assertEqual(stop['condition'], 'doubled')
        self.assertEqual(set(stop['written_afterwards'].values()), {0})
        with open(self.kept(1, 'report.html')) as f:
            self.assertIn('were written', f.read())

    def test_one_group_of_core(self):
        """The short form of `matins lab run core`."""
        names = [f'ownership.{kind}' for kind in ('normal', 'boundary', 'failing', 'recovering')]
        told = self.lab('run', 'core', '--store', 'sqlite', *(word for name in names for word in ('--only', name)), '--keep', self.root)
        self.assertIn('4 of 4 valid', told)

    def test_a_server_that_is_killed_and_a_clock_that_is_set_back(self):
        """Of what is not in core; the lab starts the server itself, and makes the clock."""
        if not shutil.which('cc'):
            self.skipTest('clocks need cc')
        self.assertIn('1 of 1 valid', self.lab('run', 'full', '--store', 'postgresql', '--only', 'faults.server_killed', '--keep', self.root))
        self.assertIn('1 of 1 valid', self.lab('run', 'full', '--store', 'sqlite', '--only', 'faults.clock_back', '--keep', self.root))

    def failover(self, store):
        """Both of the pair are the lab's own. That the candidate had its failover stands among the actions, with what each of the two had by then."""
        self.assertIn('1 of 1 valid', self.lab('run', 'full', '--store', store, '--only', 'faults.failover', '--keep', self.root))
        done = {a['what']: a for a in keep.read_lines(self.kept(1, 'faults.failover', 'candidate', 'actions.jsonl'))}
        self.assertEqual(done['kill_server']['before']['replication']['behind'], 0)
        self.assertIsNone(done['promote: done']['after']['replication']['primary'])
        self.assertIn('bump_epoch: done', done)

    def test_a_primary_of_postgresql_is_killed_and_its_replica_promoted(self):
        self.failover('postgresql')

    def test_a_primary_of_mariadb_is_killed_and_its_replica_promoted(self):
        self.failover('mariadb')

    def test_full_is_each_kind_of_store(self):
        self.lab('run', 'full', '--only', 'instances.normal', '--keep', self.root)
        stores = [keep.read_json(self.kept(n, 'instances.normal', 'registered.json'))['baseline']['store'] for n in (1, 2, 3)]
        self.assertEqual(stores, ['sqlite', 'postgresql', 'mariadb'])

    def test_release_gate(self):
        names = [f'locks.{kind}' for kind in ('normal', 'boundary', 'recovering')]
        self.stopped(*(word for name in names for word in ('--only', name)), '--by', 'ann')
        release = self.write('author = "ann"\n', 'release.toml')
        told = self.lab('gate', self.kept(1), '--release', release, code=1).splitlines()
        for what in ('owner', 'code', 'dependencies', 'configuration', 'data', 'not_covered', 'replay'):
            self.assertEqual(len([line for line in told if line.startswith(f'MISSING  {what}:')]), 1, (what, told))
        self.assertEqual(len(told), 7, told)
        release = self.write('author = "ann"\nowner = "eve"\ncode = "v1"\ndependencies = "lock 7"\nconfiguration = "c3"\ndata = "d9"\n'
                             'not_covered = ["networks"]\n', 'release.toml')
        told = self.lab('gate', self.kept(1), '--release', release, '--replay', self.kept(1), code=1)
        self.assertEqual(told, 'MISSING  replay: was run by ann, who is not somebody else\n')
        self.lab('replay', self.kept(1), '--all', '--by', 'bob', '--keep', self.root)
        self.assertIn('the gate is open', self.lab('gate', self.kept(1), '--release', release, '--replay', self.kept(2)))
        with open(self.kept(1, 'locks.normal', 'candidate', 'node-0.log'), 'a') as f:
            f.write('postgresql://ann:s3cret@db/x\n')
        told = self.lab('gate', self.kept(1), '--release', release, '--replay', self.kept(2), code=1)
        self.assertIn('node-0.log was changed', told)
        self.assertIn('node-0.log has a secret in it', told)

    def test_mutants_are_noticed(self):
        names = 'mutants.no_fence_bump', 'mutants.no_cap', 'mutants.silent_beat', 'mutants.no_fence_check', 'mutants.no_lease_check', \
            'mutants.clock_before_lock', 'mutants.unfenced_commit', 'mutants.resolve_burns_nothing', 'mutants.newest_version', 'mutants.no_canary'
        told = self.lab('run', 'mutants', '--store', 'sqlite', *(word for name in names for word in ('--only', name)), '--keep', self.root)
        self.assertIn('10 of 10 noticed', told)
        with open(self.kept(1, 'report.html')) as f:
            self.assertRegex(f.read(), r'<td>no_fence_bump</td><td>mutants.no_fence_bump</td><td>sqlite</td><td>I')

    def test_a_mutant_that_nobody_notices_is_told(self):
        """A scene in which the protection is not needed."""
        path = self.write(GOOD.replace('changed = "job.seconds"', 'changed = "mutant"\ncatches = ["I3"]').replace('job.seconds = 0.0', 'mutant = "none"')
                          .replace('job.seconds = 0.1', 'mutant = "no_fence_check"').replace('t.good', 'mutants.t'))
        self.assertIn('NOT NOTICED', self.lab('run', path, '--keep', self.root, code=1))

    def test_a_soak_of_a_moment(self):
        told = self.lab('soak', '--minutes', '0.2', '--shape', 'lonely', '--keep', self.root)
        self.assertIn('valid; evidence', told)
        self.assertIn('valid         lonely', self.lab('verify', self.kept(1)))
        figures = keep.read_json(self.kept(1, 'soak.json'))['figures'][0]
        self.assertEqual((figures['lost'], figures['doubled'], figures['violations']), (0, 0, {}))
        for what in ('fires', 'takeovers', 'refusals', 'faults'):
            self.assertGreater(figures[what], 0, what)
        # Who betters the figures and makes a new manifest is betrayed by the evidence.
        with open(self.kept(1, 'soak.json')) as f:
            text = f.read()
        with open(self.kept(1, 'soak.json'), 'w') as f:
            f.write(text.replace(f'"fires": {figures["fires"]}', '"fires": 1000000'))
        os.remove(self.kept(1, keep.MANIFEST))
        keep.seal(self.kept(1))
        self.assertIn(f'lonely: fires is {figures["fires"]} by the evidence, and 1000000 in soak.json', self.lab('verify', self.kept(1), code=1))


if __name__ == '__main__':
    unittest.main()
