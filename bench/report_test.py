#!/usr/bin/env python3
"""Medians, ratios within a round, goals, and what was written by hand: of made-up results. Measures nothing."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import measures  # noqa: E402
import report  # noqa: E402
import results as judge  # noqa: E402
import run  # noqa: E402
from measures import Goal, Measure  # noqa: E402

FLOOR = Measure('floor', 'floors/x', 'sqlite', 'g')
PEERS = [Measure(f'peer/{n}', f'versus/{n}', 'sqlite', 'g') for n in 'ab']
OURS = Measure('ours', 'drivers/x', 'sqlite', 'g', goals=(
    Goal('per_second', at_least=100), Goal('per_second', at_least=0.5, to='floor'), Goal('per_second', at_least=1.1, to='peers')))
TABLE = [FLOOR, *PEERS, OURS]


def measured(**figures):
    """name -> the figure of each round, None where the round failed."""
    return {'machine': {'processor': 'made up'}, 'versions': {}, 'missing': {'Quartz': 'no JDK here'}, 'measures': {
        name.replace('_', '/'): {'run': 'one', 'command': f'run {name}', 'rounds': [
            {'round': i, 'load1': 0.5, 'others': 0.1, 'at': 't', **({'failed': 'it fell'} if v is None else {'per_second': v})}
            for i, v in enumerate(values, 1)]}
        for name, values in figures.items()}}


class Judging(unittest.TestCase):
    def test_a_ratio_is_of_the_same_round(self):
        results = measured(floor=[100, 400, 200], ours=[50, 100, 150])
        self.assertEqual(judge.ratios(results, 'ours', 'floor', 'per_second'), [0.5, 0.25, 0.75])

    def test_a_round_that_failed_counts_for_nobody(self):
        results = measured(floor=[100, None, 200], ours=[50, 100, None])
        self.assertEqual(judge.ratios(results, 'ours', 'floor', 'per_second'), [0.5])

    def test_rounds_of_another_run_are_not_compared(self):
        results = measured(floor=[100], ours=[50])
        results['measures']['floor']['run'] = 'another'
        self.assertEqual(judge.ratios(results, 'ours', 'floor', 'per_second'), [])

    def test_the_best_peer_is_the_one_with_the_best_median(self):
        results = measured(peer_a=[10, 10, 900], peer_b=[20, 20, 20], ours=[22, 30, 30])
        found, reached, other = judge.judged(results, TABLE, OURS, OURS.goals[2])
        self.assertEqual(other, 'peer/b')
        self.assertEqual(found, (1.5, 1.1, 1.5))
        self.assertTrue(reached)

    def test_a_goal_is_held_against_the_median(self):
        results = measured(ours=[99, 100, 101], floor=[201, 201, 201])
        self.assertEqual(judge.judged(results, TABLE, OURS, OURS.goals[0])[:2], ((100, 99, 101), True))
        self.assertFalse(judge.judged(results, TABLE, OURS, OURS.goals[1])[1])

    def test_what_was_not_measured_is_not_judged(self):
        self.assertEqual(judge.judged(measured(), TABLE, OURS, OURS.goals[0])[:2], (None, None))
        self.assertEqual(judge.judged(measured(ours=[1]), TABLE, OURS, OURS.goals[2])[:2], (None, None))


class Document(unittest.TestCase):
    def written(self, results, before=None):
        with tempfile.TemporaryDirectory() as folder:
            path = f'{folder}/benchmarks.md'
            if before is not None:
                with open(path, 'w') as f:
                    f.write(before)
            report.write_document(path, results, TABLE)
            with open(path) as f:
                return f.read()

    def test_tells_missed_goals_peers_that_are_missing_and_commands(self):
        text = self.written(measured(ours=[50], floor=[100]))
        self.assertIn('ours, per_second ≥ 100, by 50%', text)
        self.assertIn('| ours | per_second ≥ 0.5 × floor | 0.5 [0.5–0.5] | 1.00 | reached |', text)
        self.assertIn('| Quartz | not measured: no JDK here |', text)
        self.assertIn('run ours', text)

    def test_tells_by_how_many_a_goal_of_none_is_missed(self):
        none = Measure('none', 'drivers/x', 'sqlite', 'g', goals=(Goal('per_second', at_most=0),))
        self.assertEqual(list(report.missed_goals(measured(none=[3]), [none], [none])), ['none, per_second ≤ 0, by 3'])

    def test_keeps_what_was_measured_before_and_is_not_now(self):
        before = self.written(measured(ours=[50], floor=[100]))
        self.assertEqual(self.written(measured(), before).split('## Goals')[1], before.split('## Goals')[1])
        text = self.written(measured(floor=[300]), before)
        self.assertIn('| floor | 300 [300–300] | 1 |', text)
        self.assertIn('| ours | 50 [50–50] | 1 |', text)
        self.assertIn('ours, per_second ≥ 100, by 50%', text)
        self.assertIn('Of 3 goals 1 are reached, 1 missed, 1 not known.', text)
        self.assertEqual(text.count('run ours'), 1)

    def test_keeps_no_verdict_on_a_goal_that_is_another_now(self):
        before = self.written(measured(ours=[50])).replace('| ours | per_second ≥ 100 |', '| ours | per_second ≥ 100.5 |')
        self.assertIn('| ours | per_second ≥ 100 | | | not measured |', self.written(measured(), before))

    def test_keeps_what_was_written_by_hand(self):
        first = self.written(measured(ours=[50]))
        told = first.replace('<!-- by hand: g -->\n', '<!-- by hand: g -->\nThe disk is slow.\n')
        again = self.written(measured(ours=[60]), told)
        self.assertIn('<!-- by hand: g -->\nThe disk is slow.\n<!-- end by hand -->', again)
        self.assertEqual(self.written(measured(ours=[60]), again), again)

    def test_keeps_it_when_its_group_is_not_measured(self):
        told = self.written(measured(ours=[50])).replace('<!-- by hand: g -->\n', '<!-- by hand: g -->\nThe disk is slow.\n')
        self.assertIn('The disk is slow.', self.written(measured(), told))

    def test_tells_each_goal_that_nothing_can_be_said_about(self):
        text = self.written(measured())
        self.assertIn('Of 3 goals 0 are reached, 0 missed, 3 not known.', text)
        self.assertIn('| ours | per_second ≥ 100 | | | not measured |', text)
        text = self.written(measured(ours=[50]))
        self.assertIn('| ours | per_second ≥ 0.5 × floor | | | floor was not measured beside it |', text)
        self.assertIn('| ours | per_second ≥ 1.1 × the best peer | | | no other scheduler was measured beside it |', text)
        self.assertIn('| | | no figure: it fell |', self.written(measured(ours=[None])))

    def test_says_of_each_round_that_failed_why(self):
        row = report.table_row(measured(ours=[None]), TABLE, OURS)
        self.assertEqual(row[1], ['no figure: it fell'])


class Durations(unittest.TestCase):
    def test_are_what_was_seen_here_else_what_is_supposed(self):
        seldom = Measure('seldom', 'drivers/x', 'sqlite', 'g', rounds=1, seconds=90)
        results = measured(ours=[1, 1])
        for round_ in results['measures']['ours']['rounds']:
            round_['took_seconds'] = 30
        lines = {words[0]: words[1:] for line in report.durations(results, [OURS, seldom], 4).splitlines() if (words := line.split())}
        self.assertEqual(lines['ours'], ['4', '30', '2.0'])
        self.assertEqual(lines['seldom'], ['1', '90', '1.5'])
        self.assertEqual(lines['all'], ['3.5'])


class Table(unittest.TestCase):
    def test_what_a_measure_is_held_against_is_measured_with_it(self):
        self.assertEqual(run.chosen(TABLE, ['our*']), [FLOOR, OURS])
        self.assertEqual(run.chosen(TABLE, ['ours', 'peer/b']), [FLOOR, PEERS[1], OURS])
        self.assertEqual(run.chosen(TABLE, None), TABLE)

    def test_names_are_told_once_and_goals_name_what_is_measured_beside(self):
        table = measures.all_measures()
        groups = {m.name: m.group for m in table}
        self.assertEqual(len(groups), len(table))
        for measure in table:
            for goal in measure.goals:
                self.assertIn(goal.figure, measure.figures, measure.name)
                self.assertNotEqual(goal.at_least is None, goal.at_most is None, measure.name)
                if goal.to and goal.to != 'peers':
                    self.assertEqual(groups.get(goal.to), measure.group, f'{measure.name} is held against {goal.to}')


if __name__ == '__main__':
    unittest.main()
