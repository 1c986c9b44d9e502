#!/usr/bin/env python3
"""Fires of cron.py and targets.py against instants worked out by hand."""
import json
import unittest
from datetime import datetime
from pathlib import Path

import cron
import targets


def at(text):
    return datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def fires(expression, zone, after, count):
    until = at(after) + 86400 * 20
    return [cron.instant_text(t) for t, _ in cron.fires(expression, zone, at(after) + 1, until)][:count]


class Fires(unittest.TestCase):
    def test_a_missing_time_fires_at_the_end_of_the_gap(self):
        self.assertEqual(fires('30 2 * * *', 'America/New_York', '2026-03-07T12:00:00Z', 2),
                         ['2026-03-08T07:00:00Z', '2026-03-09T06:30:00Z'])

    def test_several_missing_times_fire_once(self):
        self.assertEqual(fires('15,45 2 * * *', 'America/New_York', '2026-03-07T12:00:00Z', 3),
                         ['2026-03-08T07:00:00Z', '2026-03-09T06:15:00Z', '2026-03-09T06:45:00Z'])

    def test_a_repeated_time_fires_at_its_first_pass(self):
        self.assertEqual(fires('30 1 * * *', 'America/New_York', '2026-10-31T12:00:00Z', 2),
                         ['2026-11-01T05:30:00Z', '2026-11-02T06:30:00Z'])

    def test_an_interval_follows_the_wall_clock(self):
        self.assertEqual(fires('*/15 * * * *', 'America/New_York', '2026-11-01T05:40:00Z', 5),
                         ['2026-11-01T05:45:00Z', '2026-11-01T06:00:00Z', '2026-11-01T06:15:00Z',
                          '2026-11-01T06:30:00Z', '2026-11-01T06:45:00Z'])
        self.assertEqual(fires('*/15 2 * * *', 'America/New_York', '2026-03-07T12:00:00Z', 1), ['2026-03-09T06:00:00Z'])

    def test_two_day_fields_mean_either_unless_one_is_starred(self):
        self.assertEqual(fires('0 0 13 * 5', 'UTC', '2026-03-01T00:00:00Z', 3),
                         ['2026-03-06T00:00:00Z', '2026-03-13T00:00:00Z', '2026-03-20T00:00:00Z'])
        self.assertEqual(fires('0 0 */2 * 1', 'UTC', '2026-03-05T00:00:00Z', 2),
                         ['2026-03-09T00:00:00Z', '2026-03-23T00:00:00Z'])

    def test_every_counts_from_1970(self):
        self.assertEqual(fires('@every 90s', 'UTC', '2026-03-01T00:00:00Z', 2), ['2026-03-01T00:01:30Z', '2026-03-01T00:03:00Z'])

    def test_what_is_no_cron_is_refused(self):
        for text in ('0 0 * *', '60 0 * * *', '0 5-1 * * *', '@every soon'):
            with self.assertRaises(ValueError):
                list(cron.fires(text, 'UTC', 0, 86400))


class Golden(unittest.TestCase):
    """Instants on which many cron programs agree; the scheduler's own tests read the same file."""
    FILE = Path(__file__).parents[2] / 'src/schedule/testdata/fires_vixie5.jsonl'
    DAYS = 60           # a slow enumeration: lines that reach further are left out

    def test_a_sample(self):
        compared = 0
        for line in self.FILE.read_text().splitlines()[::7]:
            case = json.loads(line)
            for after, want in case['next'].items():
                if not want or at(want[-1]) - at(after) > self.DAYS * 86400 or self.unknown(case['expr']):
                    continue
                found = cron.fires(case['expr'], case['tz'], at(after) + 1, at(want[-1]))
                self.assertEqual([cron.instant_text(t) for t, _ in found], want, (case['expr'], case['tz'], after))
                compared += 1
        self.assertGreater(compared, 300)

    @staticmethod
    def unknown(expression):
        try:
            return not cron.Cron(expression)
        except ValueError:
            return True                 # forms beyond Vixie's, such as L or 22-5


class Periods(unittest.TestCase):
    def key(self, due, kind, shift=None, zone='UTC'):
        return cron.period_key(at(due), cron.local(at(due), zone), kind, shift, zone)

    def test_keys(self):
        self.assertEqual(self.key('2026-10-31T01:00:00Z', 'day', '-1d'), '2026-10-30')
        self.assertEqual(self.key('2026-10-31T01:00:00Z', 'week'), '2026-W44')
        self.assertEqual(self.key('2026-01-31T01:00:00Z', 'month', '-1M'), '2025-12')
        self.assertEqual(self.key('2026-03-31T01:00:00Z', 'month', '-1M'), '2026-02')
        self.assertEqual(self.key('2026-10-31T01:05:00Z', 'hour', '-1h'), '2026-10-31T00:00:00Z')
        self.assertEqual(self.key('2026-10-30T17:00:00Z', 'day', '-1d', 'Asia/Shanghai'), '2026-10-30')
        self.assertEqual(self.key('2026-10-31T01:05:07Z', 'fire'), '2026-10-31T01:05:07Z')

    def test_the_nominal_day_is_that_of_the_missing_time(self):
        # 23:30 in Nuuk on the 28th does not exist: the fire is on the 29th, the period is the 28th's.
        day = dict(schedule='30 23 * * *', timezone='America/Nuuk', start=at('2026-03-28T12:00:00Z'), period='day')
        self.assertEqual(targets.periods(day, at('2026-03-29T12:00:00Z')), [(at('2026-03-29T01:00:00Z'), '2026-03-28')])


class Targets(unittest.TestCase):
    def test_the_first_of_several_fires_names_the_period(self):
        job = dict(schedule='0 1,13 * * *', start=0, period='day')
        self.assertEqual(targets.targets(job, 2 * 86400), [3600, 90000])

    def test_suspensions_and_the_end_are_left_out(self):
        job = dict(every=60, start=0, until=300, paused=[[60, 180]])
        self.assertEqual(targets.targets(job, 900), [0, 180, 240, 300])

    def test_each_version_is_in_force_until_the_next(self):
        job = dict(start=0, versions=[{'from': 0, 'schedule': '0 * * * *'}, {'from': 7201, 'schedule': '30 * * * *'}])
        self.assertEqual(targets.targets(job, 4 * 3600), [0, 3600, 7200, 9000, 12600])


if __name__ == '__main__':
    unittest.main()
