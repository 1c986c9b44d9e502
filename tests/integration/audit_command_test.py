#!/usr/bin/env python3
"""`matins audit` and the audits that a node makes by itself, on each store."""
import datetime
import json
import unittest

from support import StoreCase, eventually

DAYS = 5


def business_day(ago):
    return (datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=ago)).isoformat()


def jobs():
    return f'''
jobs:
  - name: recon
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    done_by: 1s
    backfill: {{ start: {business_day(DAYS)} }}
    run: {{ command: [/bin/true] }}
'''


class Audits:
    def audit(self, *args):
        done = self.run_matins('audit', *args, '-o', 'json')
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if report['alarms'] else 0, done.stdout)
        self.assertTrue(report['canary_found'])
        return report

    def missing(self):
        report = self.audit()
        return report if report['missing'] else None

    def beats(self):
        return {row[0] for row in self.sql('SELECT DISTINCT beat FROM job_audit WHERE finished_at IS NOT NULL')}

    def kinds(self, report):
        return {finding['kind'] for finding in report['findings']}

    def test_what_nobody_planned_is_found_and_what_a_node_did_is_not(self):
        self.apply(jobs())
        outside = self.run_matins('audit', '--check-age', '26h')
        self.assertEqual(outside.returncode, 1, outside.stdout)
        self.assertIn('no audit was ever made', outside.stdout)

        report = eventually('the deadline', lambda: self.missing())
        self.assertEqual(self.kinds(report), {'absent'})
        self.assertGreaterEqual(report['missing'], DAYS - 1)
        one = self.audit('--date', business_day(3), '--job', 'recon')
        self.assertEqual([(finding['period'], finding['count']) for finding in one['findings']], [(business_day(3), 1)])
        self.refused(3, 'audit', '--job', 'nobody', says=['nobody'])
        self.refused(2, 'audit', '--from', business_day(1), '--to', business_day(2), says=['before --from'])

        node = self.node()
        eventually('the node to make it all good', lambda: not self.audit()['missing'])
        eventually('the node to audit', lambda: self.run_matins('audit', '--check-age', '1h').returncode == 0)
        eventually('both of its audits', lambda: len(self.beats()) == 3)
        node.told('audited')
        self.assertEqual(node.stop(), 0)
        self.assertEqual(self.kinds(self.audit()), {'late'}, 'they were done after their deadline, and no more is wrong')

        self.sql(f"DELETE FROM job_watermark WHERE biz_date = '{business_day(2)}'")
        report = self.audit()
        self.assertEqual([finding['period'] for finding in report['findings'] if finding['alarm']], [business_day(2)])
        table = self.run_matins('audit', '--report', 'month')
        self.assertEqual(table.returncode, 1)
        self.assertIn('EXPECTED', table.stdout)
        self.assertEqual(self.beats(), {'hand', 'store', 'jobs 0 9 * * * UTC'})

    def test_why_names_the_first_missing_phase_and_what_is_in_its_way(self):
        self.apply(jobs().replace('/bin/true', '/bin/false'))
        oldest, newest = business_day(DAYS), business_day(2)
        never = self.json('why', 'recon', newest)
        self.assertEqual(never['missing'], 'planned')
        self.assertIn('nothing planned it', never['truths'][0])
        self.assertIn('no schedule in force', self.json('why', 'recon', business_day(-9))['truths'][0])
        node = self.node()
        eventually('the oldest to fail', lambda: self.json('why', 'recon', oldest)['status'] == 'FAILED')
        self.assertEqual(node.stop(), 0)
        failed = self.json('why', 'recon', oldest)
        self.assertEqual(failed['missing'], '')
        self.assertIn('FAILED: exit', failed['truths'][0])
        blocked = self.json('why', 'recon', newest)
        self.assertEqual((blocked['status'], blocked['missing']), ('PLANNED', 'dispatched'))
        self.assertIn(f'blocked by {oldest}', blocked['truths'][0])
        self.assertIn('no node is alive', blocked['truths'])
        self.refused(3, 'why', 'nobody', newest)

    def test_a_suspended_job_is_shown_and_not_alarmed(self):
        self.apply(jobs())
        self.ok('job', 'suspend', 'recon', '--reason', 'year end')
        report = self.audit()
        self.assertEqual(report['alarms'], 0)
        self.assertEqual(self.kinds(report), {'suspended'})
        self.assertIn('year end', report['findings'][0]['why'])


class OnSqlite(Audits, StoreCase):
    kind = 'sqlite'


class OnPostgresql(Audits, StoreCase):
    kind = 'postgresql'


class OnMariadb(Audits, StoreCase):
    kind = 'mariadb'


class Lint(StoreCase):
    kind = 'sqlite'

    def lint(self, text):
        return self.run_matins('lint', '-', input=text).stdout

    def test_an_audit_on_its_jobs_beat_or_on_the_other_audits_is_warned_of(self):
        job = '''
jobs:
  - name: nine
    schedule: "0 9 * * *"
    misfire: each
    run: { command: [/bin/true] }
'''
        self.assertIn('at the very fire of its job', self.lint(job))
        self.assertNotIn('warning:', self.lint(job.replace('0 9', '0 1')))
        self.assertIn('fall together', self.lint('audit: "0 * * * *"' + job.replace('0 9', '0 1')))
        self.assertIn('audit', self.lint('audit: "now and then"' + job))


if __name__ == '__main__':
    unittest.main()
