"""Limits of a tenant and a key, with two nodes and real processes: what is alive at a time is counted by the runs themselves,
and judged by the checker from the journal."""
import json
import os
import subprocess
import sys
from pathlib import Path

from cases_run_test import Cases, day, job, jobs
from support import eventually, for_each_store, main

CHECKER = Path(__file__).parents[2] / 'tools/checker'
sys.path.insert(0, str(CHECKER))

DAYS = 12
BEGIN_AND_END = 'echo "+ $MATINS_TENANT" >> runs; sleep 0.05; echo "- $MATINS_TENANT" >> runs'


@for_each_store
class Limits(Cases):

    def test_two_nodes_never_pass_them_and_leave_nobody_out(self):
        more = (f'dir: {self.folder}', 'overlap: allow',
                f'backfill: {{ start: {day(DAYS)}, max_periods: 60, max_parallel: unlimited, order: none }}')
        names = {'a': 'payments', 'b': 'payments', 'c': 'reports'}
        head = 'journal: full\nlimits: { tenant: { payments: 2, "*": 3 }, key: { bank: 3 } }\n'
        self.apply(head + jobs(*(job(name, BEGIN_AND_END, *more, f'tenant: {tenant}', 'limits: { key: bank }')
                                 for name, tenant in names.items())))
        self.node()
        self.node()
        for name in names:
            eventually(f'all of {name}', lambda: sum(row['status'] == 'DONE' for row in self.rows(name).values()) >= DAYS)
        alive, most = {'payments': 0, 'reports': 0}, {'payments': 0, 'reports': 0, 'all': 0}
        with open(os.path.join(self.folder, 'runs')) as lines:
            for step, tenant in map(str.split, lines):
                alive[tenant] += 1 if step == '+' else -1
                most[tenant] = max(most[tenant], alive[tenant])
                most['all'] = max(most['all'], sum(alive.values()))
        self.assertLessEqual(most['payments'], 2)
        self.assertLessEqual(most['all'], 3)
        self.assertGreaterEqual(most['reports'], 1)
        self.assertEqual(sum(alive.values()), 0)
        uses = {one['limit']: one for one in self.json('limits')['uses']}
        self.assertEqual((uses['tenant/payments']['taken'], uses['key/bank']['taken']), (0, 0))
        self.assertEqual(self.judged(), [])

    def judged(self):
        """What the checker has against limits, from the store's own evidence."""
        told = subprocess.run([sys.executable, '-B', CHECKER / 'export.py', self.store], check=True, capture_output=True, text=True)
        events = [json.loads(line) for line in told.stdout.splitlines()]
        self.assertTrue(any(event['type'] == 'limit' for event in events))
        from checker import check
        return check(events)['violations'].get('I24', [])


if __name__ == '__main__':
    main()
