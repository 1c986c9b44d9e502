#!/usr/bin/env python3
"""Judges a history (history.py says what that is) by the numbered promises.  Shares no code with the scheduler.

    python3 checker.py history.jsonl         verdict as JSON on stdout; exit 0 valid, 1 invalid, 2 no such file
"""
import json
import sys
from collections import Counter, defaultdict

import evidence
import history
from demands import Demands
from limits import check_limits
from replay import replay


def check(events):
    """-> {valid, violations: {promise: [{what, ...}]}, stats}"""
    violations, stats = defaultdict(list), Counter()

    def bad(promise, what, **where):
        violations[promise].append({'what': what, **where})

    of = history.by_type(events)
    jobs, cut = {e['job']: e for e in of['job_def']}, of['cut'][0]
    runs = replay(of, jobs, bad)
    evidence.check_final_rows(of, runs, bad)
    evidence.check_fences(of, jobs, bad)
    evidence.check_answers(of, bad, stats)
    evidence.check_effects(of, jobs, runs, bad)
    for job in jobs.values():
        Demands(job, of, runs, cut, bad, stats).check()
    check_limits(of, jobs, runs, bad)
    evidence.check_auditors(of, cut, bad)
    every = [run for generations in runs.values() for run in generations]
    stats.update(periods=len(runs), reopened=len(of['reopened']), claims=sum(len(run.granted) for run in every),
                 lost=sum(run.lost for run in every), commits=sum(run.commits for run in every),
                 effects=len(of['effect']),
                 re_executions=sum(max(0, len(run.starts) - 1) for run in every))   # allowed (at least once), counted
    return {'valid': not violations, 'violations': dict(sorted(violations.items())), 'stats': dict(stats)}


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    verdict = check(history.read(arguments[0]))
    print(json.dumps(verdict, indent=1))
    return 0 if verdict['valid'] else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
