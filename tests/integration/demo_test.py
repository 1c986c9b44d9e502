"""The demo on each store: a gap is filled, day by day, and every count in the ledger is right."""
import os
import unittest

from support import StoreCase, for_each_store


class Demo(StoreCase):
    def test_fills_the_gap_and_counts(self):
        said = self.ok('demo', '--once', '--days', '2', '--store', self.store, '--dir', os.path.join(self.folder, 'demo'))
        self.assertIn('DONE: 2 day(s)', said)

        report = self.json('drill', 'recon', '--here', '--days', '2')
        self.assertTrue(report['passed'])
        self.assertEqual([p['figures'] == p['old_figures'] != {} for p in report['periods']], [True, True])
        for period in report['periods']:
            self.assertRegex(period['evidence'], 'result .*"steps"')


for_each_store(Demo, kinds=('sqlite', 'postgresql', 'mariadb'))

if __name__ == '__main__':
    unittest.main()
