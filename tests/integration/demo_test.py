"""The demo on each store: a gap is filled, day by day, and every count in the ledger is right."""
import json
import os
import unittest

from support import MATINS, StoreCase, for_each_store, mariadb_port


class Demo(StoreCase):
    def test_fills_the_gap_and_counts(self):
        said = self.ok('demo', '--once', '--days', '2', '--store', self.store, '--dir', os.path.join(self.folder, 'demo'))
        self.assertIn('DONE: 2 day(s)', said)

        report = self.json('drill', 'recon', '--here', '--days', '2')
        self.assertTrue(report['passed'])
        self.assertEqual([p['figures'] == p['old_figures'] != {} for p in report['periods']], [True, True])
        for period in report['periods']:
            self.assertRegex(period['evidence'], 'result .*"steps"')

        # The same job with a body that leaves all as it is, and with one that books what is booked.
        report = self.drill_with('exit 0')
        self.assertFalse(report['passed'])
        for period in report['periods']:
            self.assertIn('nothing says that it did any work', period['problem'])
            self.assertEqual(period['figures'], period['old_figures'])
        report = self.drill_with(f'{MATINS} demo-run recon && ' + self.book("""INSERT INTO difference VALUES
            ('$MATINS_BIZ_DATE', 'amount', 1, 2, 3, 'working', '', 0, $MATINS_FENCE)"""))
        self.assertFalse(report['passed'])
        for period in report['periods']:
            self.assertRegex(period['problem'], 'figure (amount|differences) is ')

    def drill_with(self, body):
        path = os.path.join(self.folder, 'demo', 'demo-jobs.yaml')
        with open(path) as f:
            text = f.read()
        command = f'run: {{ command: ["{MATINS}", demo-run, recon] }}'
        self.assertIn(command, text)
        other = os.path.join(self.folder, 'other', 'demo-jobs.yaml')
        os.makedirs(os.path.dirname(other), exist_ok=True)
        with open(other, 'w') as f:
            f.write(text.replace(command, f'run: {{ shell: {json.dumps(body)} }}'))
        self.ok('job', 'apply', other, '--source', 'demo')
        done = self.run_matins('drill', 'recon', '--here', '--days', '2', '-o', 'json')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def book(self, statement):
        """A line of the shell that has the ledger's own database take a statement."""
        statement = ' '.join(statement.split())
        if self.kind == 'sqlite':
            return f'sqlite3 "${{LEDGER#sqlite:}}" "{statement}"'
        if self.kind == 'mariadb':
            return f'mariadb --no-defaults -h 127.0.0.1 -P {mariadb_port()} -u root "${{LEDGER##*/}}" -e "{statement}"'
        return f'psql -qX "${{LEDGER%%\\?schema=*}}" -c "set search_path = ${{LEDGER##*schema=}}" -c "{statement}"'


for_each_store(Demo, kinds=('sqlite', 'postgresql', 'mariadb'))

if __name__ == '__main__':
    unittest.main()
