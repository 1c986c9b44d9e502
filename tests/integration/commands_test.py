"""Every command, as a person types it, on each store."""
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest
from datetime import datetime, timedelta, timezone

from support import KEEP_ALL, MATINS, StoreCase, eventually, for_each_store, main

TODAY = datetime.now(timezone.utc).date()


def day(back):
    return str(TODAY - timedelta(days=back))


def daily(name='daily', shell='echo hello', misfire='each', more=''):
    """Due at midnight UTC, for the day before."""
    return f"""
  - name: {name}
    schedule: "0 0 * * *"
    period: day
    biz_date: -1d
    misfire: {misfire}
{more}
    run: {{ shell: '{shell}' }}
"""


def jobs(*texts):
    return KEEP_ALL + 'jobs:' + ''.join(texts)


@for_each_store
class Commands(StoreCase):

    def test_apply_list_show_and_what_changed(self):
        self.assertIn('added: daily', self.apply(jobs(daily())))
        self.assertIn('unchanged: daily', self.apply(jobs(daily())))
        self.assertIn('changed: daily', self.apply(jobs(daily(shell='echo other'))))
        listed = self.json('job', 'list')
        self.assertEqual([job['name'] for job in listed], ['daily'])
        self.assertIsNone(listed[0]['last_success'])
        self.assertEqual(listed[0]['gaps'], 0)  # nothing is owed before first sight
        self.assertIn('echo other', self.ok('job', 'show', 'daily'))
        self.assertIn('NEXT FIRE', self.ok('job', 'list'))

    def test_a_superseded_file_is_refused_without_force(self):
        self.apply(jobs(daily()))
        self.apply(jobs(daily(shell='echo other')))
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(jobs(daily()))
        self.refused(4, 'job', 'apply', path, says=['--force'])
        self.ok('job', 'apply', path, '--force')

    def test_a_job_of_another_source_is_taken_over_only_when_asked(self):
        self.apply(jobs(daily()))
        path = os.path.join(self.folder, 'other.yaml')
        with open(path, 'w') as f:
            f.write(jobs(daily('new'), daily(shell='echo theirs')))
        self.refused(4, 'job', 'apply', path, says=["'daily' (of jobs.yaml)", '--source', '--take-over'])
        self.refused(4, 'job', 'apply', path, '--force', says=['--take-over'])
        done = self.run_matins('serve', path, '--runtime-dir', self.folder)
        self.assertEqual((done.returncode, 'of jobs.yaml' in done.stderr), (4, True), done.stderr)
        self.assertEqual([(job['name'], job['source']) for job in self.json('job', 'list')], [('daily', 'jobs.yaml')])
        self.ok('job', 'apply', path, '--take-over')
        self.assertEqual({job['source'] for job in self.json('job', 'list')}, {'other.yaml'})
        self.refused(4, 'job', 'apply', os.path.join(self.folder, 'jobs.yaml'), says=['of other.yaml'])
        self.ok('job', 'apply', path, '--source', 'other.yaml')

    def test_a_node_that_could_not_serve_changes_nothing(self):
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(jobs(daily()))
        for wrong, says in ((['--runtime-dir', '/tmp/' + 60 * 'x'], '48 bytes'), (['--label', 'a b'], "--label 'a b'"),
                            (['--history', '/no/such/folder/file'], '/no/such/folder'), (['--label', ''], '--label')):
            self.assertIn(says, self.refused(2, 'serve', path, '--runtime-dir', self.folder, *wrong[:2])
                          if wrong[0] != '--runtime-dir' else self.refused(2, 'serve', path, *wrong))
            self.assertEqual(self.json('job', 'list'), [], wrong)

    def test_a_job_waits_for_a_node_that_can_run_it_and_the_list_says_what_is_missing(self):
        start = f'    backfill: {{ start: {day(1)} }}\n'
        handler = daily('inside', more=start).replace("{ shell: 'echo hello' }", '{ handler: settle }')
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(jobs(handler, daily('east', more=start + '    nodes: [db-east]'), daily('any', more=start)))
        node = self.node(path)
        self.assertIn("this node has no handlers; its runs wait for a program that embeds Matins and has 'settle'", node.text())
        eventually('the job for any node', lambda: self.status_of('any', day(1)) == 'DONE')
        listed = {job['name']: job for job in self.json('job', 'list')}
        self.assertEqual({name: job['unserved'] for name, job in listed.items()},
                         {'any': [], 'inside': ['handler:settle'], 'east': ['db-east']})
        self.assertEqual(listed['inside']['state'], 'no living node has handler:settle')
        # Nobody tried: it is not a failure of the job that this node has no such handler.
        self.assertEqual((self.status_of('inside', day(1)), self.json('runs', 'inside')), ('PLANNED', []))
        self.node('--label', 'db-east')
        eventually('the job of the other node', lambda: self.status_of('east', day(1)) == 'DONE')
        self.assertEqual({job['name']: job['unserved'] for job in self.json('job', 'list')}['east'], [])

    def test_a_reload_tells_each_mistake_of_the_file_on_a_line(self):
        path = os.path.join(self.folder, 'jobs.yaml')
        with open(path, 'w') as f:
            f.write(jobs(daily()))
        node = self.node(path)
        with open(path, 'w') as f:
            f.write(jobs(daily(misfire='sometimes', more='    timeout: soon')))
        node.signal(signal.SIGHUP)
        eventually('the refusal', lambda: 'not reloaded' in node.text() and 'soon' in node.text())
        lines = [line for line in node.text().splitlines() if ' error ' in line]
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(lines[1], r'error   .*jobs.yaml:\d+:\d+: ')
        self.assertNotIn('\ufffd', node.text())

    def test_what_a_check_prints_that_is_no_figure_is_told(self):
        more = '    check: { shell: "echo rows=7; echo oops; echo sum=many" }'
        self.apply(jobs(daily(more=more), daily('good', more='    check: { shell: "echo rows=7" }')))
        self.node()
        for name in ('daily', 'good'):
            self.ok('run', name, '--date', day(1), '--wait')
        self.assertIn("check: 2 lines are no figures (name=number, each name once), the first: 'oops'",
                      self.json('runs', 'daily')[0]['message'])
        self.assertIn('check: 2 lines', self.ok('runs', 'daily'))
        self.assertEqual(self.json('runs', 'good')[0]['message'], '')
        self.assertEqual(self.sql("select job_name, name, value from job_figure order by 1"), self.sql(
            "select 'daily', 'rows', value from job_figure where job_name = 'daily' union all "
            "select 'good', 'rows', value from job_figure where job_name = 'good'"))

    def test_jobs_missing_from_the_file_go_only_with_prune(self):
        self.apply(jobs(daily('one'), daily('two')))
        self.assertIn('two', self.apply(jobs(daily('one'))))
        self.assertEqual(len(self.json('job', 'list')), 2)
        self.apply(jobs(daily('one', shell='echo x')), '--prune')
        self.assertEqual([job['name'] for job in self.json('job', 'list')], ['one'])

    def test_run_by_hand_waits_and_tells_how_it_went(self):
        self.apply(jobs(daily(shell='echo for $MATINS_BIZ_DATE; echo $MATINS_PARAM_region'), daily('bad', shell='exit 3')))
        self.node()
        self.ok('run', 'daily', '--date', day(1), '--param', 'region=eu', '--wait')
        row = self.rows('daily')[day(1)]
        self.assertEqual((row['status'], row['manual']), ('DONE', True))
        self.assertEqual(self.ok('logs', row['run']), f'for {day(1)}\neu\n')
        run = self.json('runs', 'daily')[0]
        self.assertEqual((run['status'], run['exit_code']), ('DONE', 0))
        for phase in ('planned_at', 'claimed_at', 'started_at', 'finished_at'):
            self.assertIsNotNone(run[phase], phase)
        self.refused(1, 'run', 'bad', '--date', day(1), '--wait')
        self.assertEqual(self.json('runs', 'bad')[0]['exit_code'], 3)
        self.ok('wait', 'daily', day(1), '--timeout', '5s')
        self.refused(1, 'wait', 'bad', day(1), '--timeout', '5s')

    def test_a_done_date_runs_again_only_with_again_and_a_reason(self):
        self.apply(jobs(daily()))
        self.node()
        self.ok('run', 'daily', '--date', day(1), '--wait')
        self.refused(4, 'run', 'daily', '--date', day(1), says=['--again'])
        self.refused(2, 'run', 'daily', '--date', day(1), '--again', says=['--reason'])
        self.ok('run', 'daily', '--date', day(1), '--again', '--reason', 'late statement', '--wait')
        self.assertEqual(self.rows('daily')[day(1)]['generation'], 2)

    def test_a_date_whose_row_was_removed_below_the_floor_is_done(self):
        self.apply(jobs(daily()))
        self.node()
        old = day(200)
        self.ok('run', 'daily', '--date', old, '--wait')
        # The removal of history, which comes once a minute and after 90 days.
        floor = f"'{day(100)}'" if self.kind == 'postgresql' else f"strftime('%s', '{day(100)}') * 1000000"
        self.sql(f'UPDATE job SET floor = {floor}')
        self.sql(f"DELETE FROM job_watermark WHERE period = '{old}'")
        self.refused(4, 'run', 'daily', '--date', old, says=['--again', '--reason'])
        self.refused(4, 'run', 'daily', '--date', old, '--again', says=['--reason'])
        self.refused(4, 'skip', 'daily', old, '--reason', 'x', says=['settled'])
        found = self.json('backfill', 'daily', '--from', old, '--to', old)
        self.assertEqual((found['run'], found['left']), ([], [old]))
        self.ok('run', 'daily', '--date', old, '--again', '--reason', 'an auditor asks', '--wait')
        self.assertEqual(self.rows('daily')[old]['generation'], 2)

    def test_a_running_date_is_refused_naming_the_runner_and_cancelled(self):
        self.apply(jobs(daily(shell='echo up; sleep 600')))
        self.node()
        self.ok('run', 'daily', '--date', day(1))
        row = eventually('the run', lambda: (lambda r: r if r and r['status'] == 'RUNNING' else None)(self.rows('daily').get(day(1))))
        self.refused(4, 'run', 'daily', '--date', day(1), says=[row['run'], row['node']])
        self.ok('cancel', row['run'], '--reason', 'not needed')
        eventually('the cancelled run', lambda: self.status_of('daily', day(1)) == 'FAILED')
        self.assertIn('cancelled', json.dumps(self.json('runs', 'daily')))

    def test_logs_follow_a_run_to_its_end(self):
        gate = os.path.join(self.folder, 'gate')
        self.apply(jobs(daily(shell=f'echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo last')))
        self.node()
        self.ok('run', 'daily', '--date', day(1))
        run = eventually('the run', lambda: (self.rows('daily').get(day(1)) or {}).get('run', '0') != '0' and self.rows('daily')[day(1)]['run'])
        follow = subprocess.Popen([MATINS, 'logs', run, '-f'], env=self.env(), stdout=subprocess.PIPE, text=True)
        self.assertEqual(follow.stdout.readline(), 'first\n')
        open(gate, 'w').close()
        self.assertEqual(follow.communicate(timeout=60)[0], 'last\n')

    def test_backfill_shows_then_runs_in_order(self):
        self.apply(jobs(daily()))
        shown = self.json('backfill', 'daily', '--from', day(4), '--to', day(2), '--dry-run')
        self.assertEqual(shown['run'], [day(4), day(3), day(2)])
        self.assertEqual(self.rows('daily'), {})
        self.node()
        self.ok('backfill', 'daily', '--from', day(4), '--to', day(2), '--reason', 'new source')
        eventually('three dates', lambda: [r['status'] for r in self.rows('daily').values()] == ['DONE'] * 3)
        runs = [run['period'] for run in reversed(self.json('runs', 'daily'))]
        self.assertEqual(runs, [day(4), day(3), day(2)])
        self.refused(2, 'backfill', 'daily', '--from', day(2), '--to', day(4))
        ahead = self.ok('backfill', 'daily', '--from', day(-5), '--to', day(-9))
        self.assertIn('is due yet', ahead)

    def test_a_backfill_tells_what_the_source_no_longer_has(self):
        self.apply(jobs(daily(more='    backfill: { source_window: 3d }')))
        answer = self.json('backfill', 'daily', '--from', day(6), '--to', day(2), '--dry-run')
        self.assertEqual((answer['run'], answer['left']), ([day(2)], []) if day(3) in answer['unfillable'] else ([day(3), day(2)], []))
        self.assertEqual(answer['unfillable'][:3], [day(6), day(5), day(4)])
        text = self.ok('backfill', 'daily', '--from', day(6), '--to', day(2))
        self.assertIn(f'cannot be filled, {day(6)} to ', text)
        self.assertIn('the source keeps 3d (backfill.source_window)', text)
        self.assertEqual(self.rows('daily')[day(6)]['reason'], 'unfillable')
        # A second time they are still that, and not "already planned".
        again = self.json('backfill', 'daily', '--from', day(6), '--to', day(2))
        self.assertEqual((again['unfillable'], len(again['left'])), (answer['unfillable'], len(answer['run'])))

    def test_a_failed_date_blocks_until_it_is_skipped_with_a_reason(self):
        start = f'    backfill: {{ start: {day(3)} }}'
        self.apply(jobs(daily(shell=f'test $MATINS_BIZ_DATE != {day(3)}', more=start)))
        self.node()
        eventually('the failure', lambda: self.status_of('daily', day(3)) == 'FAILED')
        self.assertEqual({self.status_of('daily', day(2)), self.status_of('daily', day(1))}, {'PLANNED'})
        self.refused(2, 'skip', 'daily', day(3))
        self.ok('skip', 'daily', day(3), '--reason', 'no data that day')
        eventually('the later dates', lambda: self.status_of('daily', day(1)) == 'DONE')
        self.assertEqual(self.json('watermark', 'daily')['high_water_mark'], day(1))
        calendar = self.ok('watermark', 'daily', '--calendar')
        self.assertIn('Mo  Tu', calendar)

    def test_what_is_past_its_deadline_is_late(self):
        start = f'    backfill: {{ start: {day(4)} }}'
        for done_by, late in (('1m', 3), ('1000d', 0), ('"00:01"', 3)):
            self.apply(jobs(daily(more=f'{start}\n    done_by: {done_by}')))
            listed = self.json('job', 'list')[0]
            # The newest of the four may be due since this very minute.
            self.assertEqual((listed['gaps'], min(listed['late'], 3)), (4, late), done_by)
        self.assertIn('LATE', self.ok('job', 'list'))

    def test_a_file_switches_the_journal_and_the_suspension_only_as_it_says(self):
        self.apply('journal: full\n' + jobs(daily(more='    suspend: true')))
        self.assertEqual(self.json('status')['journal'], 'full')
        self.assertTrue(self.json('job', 'list')[0]['suspended'])
        self.ok('job', 'resume', 'daily', '--reason', 'a person decides')
        self.apply('journal: full\n' + jobs(daily(more='    suspend: true')))
        self.assertFalse(self.json('job', 'list')[0]['suspended'])
        self.apply(jobs(daily()))
        self.assertEqual(self.json('status')['journal'], 'full')
        self.apply('journal: runs\n' + jobs(daily()), '--force')
        self.assertEqual(self.json('status')['journal'], 'runs')

    def test_suspend_takes_back_and_resume_asks_what_of_the_missed(self):
        start = f'    backfill: {{ start: {day(3)} }}'
        self.apply(jobs(daily(more=start)))
        self.refused(2, 'job', 'suspend', 'daily')
        self.ok('job', 'suspend', 'daily', '--reason', 'migration')
        self.refused(4, 'job', 'suspend', 'daily', '--reason', 'again', says=['migration'])
        self.assertIn('suspended: migration', self.json('job', 'list')[0]['state'])
        self.node()
        self.refused(4, 'job', 'resume', 'daily', says=['3 period(s)', '--missed'])
        self.ok('job', 'resume', 'daily', '--missed', 'skip', '--reason', 'not needed')
        self.assertEqual({row['status'] for row in self.rows('daily').values()}, {'SKIPPED'})
        self.refused(4, 'job', 'resume', 'daily')

    def test_rename_keeps_history_and_delete_keeps_runs(self):
        self.apply(jobs(daily()))
        self.node()
        self.ok('run', 'daily', '--date', day(1), '--wait')
        self.ok('job', 'rename', 'daily', 'nightly', '--reason', 'clearer')
        self.assertEqual(self.status_of('nightly', day(1)), 'DONE')
        self.refused(3, 'job', 'show', 'daily', says=['nightly'])
        self.refused(2, 'job', 'rename', 'nightly', 'a/b')
        self.ok('job', 'delete', 'nightly', '--reason', 'gone')
        self.refused(3, 'job', 'show', 'nightly')
        self.assertEqual(len(self.json('runs')), 1)
        self.assertEqual(len(self.json('runs', 'nightly')), 1)  # a deleted job's runs stay to be seen

    def test_checkpoint_result_and_fence_speak_to_the_node(self):
        script = (f'set -e; {MATINS} fence; {MATINS} checkpoint 1 half; {MATINS} result "{{\\"rows\\": 7}}"; '
                  f'! {MATINS} checkpoint 1 again')
        path = os.path.join(self.folder, 'steps.sh')
        with open(path, 'w') as f:
            f.write(script)
        self.apply(jobs(daily(shell=f'sh {path}')))
        self.node()
        self.ok('run', 'daily', '--date', day(1), '--wait')
        run = self.json('runs', 'daily')[0]
        self.assertEqual(run['result'], {'rows': 7})
        self.assertIn(run['run'], self.ok('logs', run['run']))
        self.assertEqual(self.rows('daily')[day(1)]['checkpoint'], 1)
        self.apply(jobs(daily(shell=f'! {MATINS} checkpoint 1 "$(head -c 70000 /dev/zero | tr "\\0" a)" && {MATINS} checkpoint 1 ok')))
        self.ok('run', 'daily', '--date', day(2), '--wait')
        self.refused(2, 'checkpoint', '1', says=['MATINS_SOCKET'])
        for wrong in ('0', 'half', '99999999999999999999', '1.5'):
            self.refused(2, 'checkpoint', wrong, says=[f"NUMBER: '{wrong}'", 'whole number from 1'])

    def test_status_tells_nodes_and_what_waits(self):
        node = self.node('--label', 'db-east')
        nodes = eventually("the node's first tick", lambda: self.json('status')['nodes'])
        self.assertEqual([n['labels'] for n in nodes], [['db-east']])
        self.assertEqual(node.stop(), 0)
        self.assertTrue(self.json('status')['nodes'][0]['left'])
        self.assertIn('NODE', self.ok('status'))

    def test_an_epoch_bump_raises_every_later_fence(self):
        self.apply(jobs(daily()))
        self.node()
        self.ok('run', 'daily', '--date', day(1), '--wait')
        before = int(self.json('runs')[0]['run'])
        self.ok('epoch', 'bump', '--reason', 'failover')
        self.ok('run', 'daily', '--date', day(2), '--wait')
        self.assertGreaterEqual(int(self.json('runs')[0]['run']), before + (1 << 40) - (1 << 20))

    def test_limits_are_shown_set_and_cleared_and_a_files_word_is_kept(self):
        head = 'limits: { global: 9, tenant: { payments: 2 } }\n'
        self.apply(head + jobs(daily(more='    tenant: payments\n    limits: { key: bank-a }')))
        shown = self.json('limits')
        self.assertEqual([(one['limit'], one['most']) for one in shown['limits']], [('global', 9), ('tenant/payments', 2)])
        self.assertIn('tenant/payments is 5', self.ok('limits', 'set', 'tenant/payments', '5', '--reason', 'more of them'))
        self.ok('limits', 'set', 'backfill_share', '50%')
        self.apply(head + jobs(daily(more='    tenant: payments\n    limits: { key: bank-a }')))
        self.assertEqual([one['most'] for one in self.json('limits')['limits']], [9, 5, 50])
        self.assertIn('tenant/payments', self.ok('limits'))
        self.refused(4, 'limits', 'clear', 'global', says=['backfill_share'])
        self.refused(3, 'limits', 'clear', 'key/bank-a', says=['matins limits'])
        self.refused(2, 'limits', 'set', 'tenant/payments', '0', says=['from 1'])
        self.refused(2, 'limits', 'set', 'tenants/payments', '1', says=["did you mean 'tenant'"])
        self.ok('limits', 'clear', 'backfill_share')
        self.ok('limits', 'clear', 'tenant/payments')
        self.assertEqual([one['limit'] for one in self.json('limits')['limits']], ['global'])
        self.apply(jobs(daily()))
        self.assertEqual(self.json('limits')['limits'], [])

    def test_db_check_clock_accept_and_backup(self):
        self.assertEqual(self.json('db', 'check')['problems'], [])
        self.ok('clock', 'accept', '--reason', 'looked at it')
        self.apply(jobs(daily()))
        copy = os.path.join(self.folder, 'copy.db')
        if self.kind == 'postgresql':
            self.refused(4, 'db', 'backup', copy, says=['pg_dump'])
            return
        self.ok('db', 'backup', copy)
        self.ok('job', 'delete', 'daily', '--reason', 'by mistake')
        epoch = self.json('status')['epoch']
        for name, content, says in (('junk', 'no database', 'it is no database'), ('noise', 4096 * '\x07', 'it is no database'),
                                    ('empty', '', 'no tables of a store')):
            path = os.path.join(self.folder, name)
            with open(path, 'w') as f:
                f.write(content)
            self.refused(4, 'db', 'restore', path, says=[says, 'matins db backup'])
        self.refused(4, 'db', 'restore', self.folder, says=['it is no file', 'matins db backup'])
        self.refused(4, 'db', 'restore', self.store[len('sqlite:'):], says=['the store itself'])
        self.refused(3, 'db', 'restore', os.path.join(self.folder, 'nothing'), says=['matins db backup'])
        self.refused(2, 'status', '--store', f'sqlite:{self.folder}', says=['is no file', '/matins.db'])
        self.ok('db', 'restore', copy)
        self.assertEqual([job['name'] for job in self.json('job', 'list')], ['daily'])
        self.assertGreater(self.json('status')['epoch'], epoch)

    def test_what_is_not_there_is_told_by_code_and_mend(self):
        self.apply(jobs(daily()))
        self.refused(3, 'job', 'show', 'nobody', says=['nobody', 'daily'])
        self.refused(3, 'run', 'nobody', says=['nobody'])
        self.refused(3, 'logs', '12345')
        self.refused(3, 'cancel', '12345')
        self.refused(2, 'logs', 'abc', says=['matins runs'])
        self.refused(2, 'run', 'daily', '--date', 'yesterday')
        self.refused(2, 'run', 'daily', '--param', 'novalue')
        self.refused(2, 'watermark', 'daily', '--from', '2026-02-30', says=['--from: '])
        self.refused(2, 'watermark', 'daily', '--from', day(1), '--to', day(2), says=['is before --from'])
        self.refused(2, 'backfill', 'daily', '--from', day(1), '--to', 'x', says=["--to: 'x' is not a date"])
        self.refused(2, 'wait', 'daily', day(1), '--timeout', 'soon', says=["--timeout: 'soon'"])
        self.refused(2, 'run', says=['matins run: JOB', '`matins run --help`'])
        self.refused(2, 'job', 'show', says=['matins job show: JOB'])
        self.refused(2, 'frobnicate', says=["no command 'frobnicate'"])
        self.refused(2, 'run', 'daily', '--param', 'x=a\udcff', says=['UTF-8'])
        self.refused(2, 'run', 'daily', '--param', 'x-y=1', says=["'x-y'", 'digits'])
        self.refused(2, 'run', 'daily', '--param', 'x=1', '--param', 'x=2', says=['twice'])
        self.refused(2, 'run', 'daily', '--timeout', '5s', says=['--wait'])
        self.assertEqual(self.rows('daily'), {})
        self.refused(3, 'runs', 'nobody', says=['nobody', 'daily'])
        self.assertEqual(self.json('runs', 'daily'), [])
        self.refused(7, 'wait', 'daily', day(1), '--timeout', '100ms')


class WithoutStore(unittest.TestCase):

    def matins(self, *args, **more):
        env = {k: v for k, v in os.environ.items() if k != 'MATINS_STORE'}
        return subprocess.run([MATINS, *args], env=env, capture_output=True, text=True, timeout=60, **more)

    def test_next_in_a_zone_and_in_batches(self):
        done = self.matins('next', '--tz', 'America/New_York', '--from', '2026-03-07T12:00:00Z', '-n', '2', '30 2 * * *', '-o', 'json')
        self.assertEqual(json.loads(done.stdout)['next'], ['2026-03-08T07:00:00Z', '2026-03-09T06:30:00Z'])
        lines = ['{"expr": "0 0 * * *", "from": "2026-11-29T00:00:00Z", "n": 2}', 'not json', '{"expr": "0 0 30 2 *"}']
        done = self.matins('next', '--batch', input='\n'.join(lines) + '\n')
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(answers[0], {'next': ['2026-11-30T00:00:00Z', '2026-12-01T00:00:00Z']})
        self.assertIn('error', answers[1])
        self.assertTrue('error' in answers[2] or answers[2] == {'next': []})
        self.assertEqual(self.matins('next', '61 * * * *').returncode, 2)

    def test_options_that_would_do_nothing_are_refused(self):
        for words in (['demo', '--story', '--once'], ['demo', '--story', '--days', '3'], ['serve', '--source', 'x'],
                      ['next', '--batch', '@daily']):
            done = self.matins(*words, input='')
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(words[1], done.stderr)

    def test_lint_tells_line_reason_and_mend(self):
        text = 'jobs:\n  - name: a\n    schedule: "0 1 * * *"\n    run: { shell: "true" }\n'
        done = self.matins('lint', '-', input=text)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stdout, r':2:\d+: .*misfire')
        done = self.matins('lint', '-', '-o', 'json', input=text)
        self.assertEqual(json.loads(done.stdout)['errors'], 1)

    def test_no_store_and_a_store_without_a_schema_are_told(self):
        done = self.matins('job', 'list')
        self.assertEqual(done.returncode, 2)
        self.assertIn('MATINS_STORE', done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            open(f'{folder}/empty.db', 'w').close()
            done = self.matins('db', 'check', '--store', f'sqlite:{folder}/empty.db')
            self.assertEqual((done.returncode, 'matins db migrate' in done.stdout), (1, True), done.stdout + done.stderr)
        done = self.matins('job', 'list', '--store', 'sqlite:/tmp/does-not-exist-matins.db')
        self.assertIn('db migrate', done.stderr)
        self.assertFalse(os.path.exists('/tmp/does-not-exist-matins.db'))

    def test_an_unreachable_store_hides_the_password(self):
        done = self.matins('job', 'list', '--store', 'postgresql://me:s3cret@127.0.0.1:1/db?schema=x')
        self.assertEqual(done.returncode, 5)
        self.assertNotIn('s3cret', done.stderr)

    def test_version_completion_and_help_list_what_works(self):
        self.assertIn('matins ', self.matins('version').stdout)
        script = self.matins('completion', 'bash').stdout
        self.assertEqual(subprocess.run(['bash', '-n'], input=script, text=True).returncode, 0)
        self.assertIn('watermark', script)
        for shell in ('zsh', 'fish'):
            self.assertIn('watermark', self.matins('completion', shell).stdout)
        self.assertEqual(self.matins('completion', 'tcsh').returncode, 2)
        help_text = self.matins('--help').stdout
        for command in re.findall(r'^  ([a-z]+) ', help_text.split('Subcommands:')[1], re.M):
            self.assertEqual(self.matins(command, '--help').returncode, 0, command)

    def test_a_start_loads_no_client_library_that_its_store_does_not_need(self):
        needed = subprocess.run(['ldd', MATINS], capture_output=True, text=True, check=True).stdout
        self.assertIn('libsqlite3', needed)
        self.assertNotIn('libabsl', needed)  # in the program, since its archives are installed here
        for library in ('libpq', 'libmariadb', 'libcurl', 'libssl', 'libcrypto', 'libkrb5', 'libgnutls'):
            self.assertNotIn(library, needed)

    def test_fence_sql_runs_in_its_database(self):
        text = self.matins('fence', 'sql', '--dialect', 'sqlite').stdout
        self.assertIn('matins_fence', text)
        self.assertEqual(self.matins('fence', 'sql', '--dialect', 'oracle').returncode, 2)


if __name__ == '__main__':
    main()
