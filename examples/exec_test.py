"""What stands in examples/exec, as it stands there: a crontab line on two hosts, a systemd timer, a CronJob, a Java service.

Two hosts are two processes here, each with a host name and, where the kernel lets this user make one, a network of its own, so that
nothing but the store is between them; where it does not, two processes with homes of their own."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

MATINS = os.path.abspath(os.environ['MATINS_BINARY'])
HERE = Path(__file__).parent / 'exec'
PATIENCE = 120
OWN_NETWORK = ['unshare', '--map-root-user', '--uts', '--net']


def may_unshare():
    try:
        return subprocess.run([*OWN_NETWORK, 'true'], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def owed():
    """The days that recon.yaml owes: the newest thirty that are due, of those since its first."""
    newest = (datetime.now(timezone.utc) - timedelta(hours=1)).date() - timedelta(days=1)     # at 01:00 the day before falls due
    first = max(date(2026, 10, 1), newest - timedelta(days=29))
    return [str(first + timedelta(days=n)) for n in range((newest - first).days + 1)]


class Place(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='mx')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ('recon.yaml', 'recon.sh'):
            shutil.copy(HERE / name, self.folder)
        # Cron and systemd find it by this name.
        os.mkdir(f'{self.folder}/bin')
        os.symlink(MATINS, f'{self.folder}/bin/matins')
        self.store = f'sqlite:{self.folder}/ops.db'
        self.ledger = f'{self.folder}/ledger'

    def env(self, host='here'):
        home = f'{self.folder}/{host}'
        os.makedirs(home, exist_ok=True)
        return {'HOME': home, 'LOGNAME': 'batch', 'SHELL': '/bin/sh', 'TMPDIR': self.folder, 'MATINS_STORE': self.store,
                'LEDGER': self.ledger, 'MATINS': MATINS, 'PATH': f'{self.folder}/bin:/usr/local/bin:/usr/bin:/bin',
                **{name: value for name, value in os.environ.items() if name.startswith(('ASAN', 'TSAN', 'UBSAN'))}}

    def host(self, name, command):
        argv = ['sh', '-c', command]
        if may_unshare():
            argv = [*OWN_NETWORK, 'sh', '-c', f'hostname {name} && exec sh -c "$0"', command]
        return subprocess.Popen(argv, env=self.env(name), cwd='/', stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def matins(self, *args):
        return subprocess.run([MATINS, *args], env=self.env(), capture_output=True, text=True, check=True, timeout=PATIENCE).stdout

    def days(self):
        with open(self.ledger) as f:
            return [line.split()[0] for line in f]

    def text(self, name):
        return (HERE / name).read_text().replace('/srv/recon', self.folder).replace('/etc/matins', self.folder)


class Crontab(Place):
    def line(self):
        (line,) = [line for line in self.text('crontab').splitlines() if line and not line.startswith(('#', 'MATINS_STORE='))]
        minute, hour, day, month, weekday, command = line.split(None, 5)
        return ' '.join((minute, hour, day, month, weekday)), command

    def test_two_hosts_fire_at_once_and_each_night_is_booked_once_in_order(self):
        schedule, command = self.line()
        self.assertIn(f'schedule: "{schedule}"', self.text('recon.yaml'))
        hosts = [self.host(name, command) for name in ('db-east', 'db-west')]
        outs = [host.communicate(timeout=PATIENCE)[0] for host in hosts]
        self.assertEqual([host.returncode for host in hosts], [0, 0], outs)
        self.assertEqual(self.days(), owed())
        # The one that ran says what its command says, the other one nothing.
        self.assertEqual(sorted(''.join(outs).splitlines()), sorted(f'reconciled {day}' for day in owed()))

    def test_a_night_that_is_missing_is_made_good_by_the_next_host_that_fires(self):
        _, command = self.line()
        for name in ('db-east', 'db-west'):
            host = self.host(name, command)
            out = host.communicate(timeout=PATIENCE)[0]
            self.assertEqual(host.returncode, 0, out)
            if name == 'db-east':
                subprocess.run(['sqlite3', self.store[7:], f"DELETE FROM job_watermark WHERE biz_date = '{owed()[-2]}'"], check=True)
        self.assertEqual(self.days(), [*owed(), owed()[-2]])
        if may_unshare():
            with open(self.ledger) as f:
                self.assertTrue(f.read().rstrip().endswith('on db-west'))


class Timer(Place):
    def test_the_units_are_good_and_fire_when_the_job_is_due(self):
        (calendar,) = re.findall(r'^OnCalendar=(.*)$', self.text('matins-recon.timer'), re.M)
        (schedule,) = re.findall(r'schedule: "(.*)"', self.text('recon.yaml'))
        self.assertEqual(self.matins('next', calendar, '-n', '5'), self.matins('next', schedule, '-n', '5'))
        if not shutil.which('systemd-analyze'):
            self.skipTest('systemd-analyze is not here')
        for name in ('matins-recon.service', 'matins-recon.timer'):
            with open(f'{self.folder}/{name}', 'w') as f:
                f.write(self.text(name).replace('/usr/bin/matins', MATINS))
        done = subprocess.run(['systemd-analyze', 'verify', f'{self.folder}/matins-recon.service', f'{self.folder}/matins-recon.timer'],
                              capture_output=True, text=True, env={**os.environ, 'SYSTEMD_LOG_LEVEL': 'warning'})
        ours = [line for line in done.stderr.splitlines() if 'matins-recon' in line]
        self.assertEqual(ours, [])

    def test_what_the_service_starts_runs(self):
        (start,) = re.findall(r'^ExecStart=/usr/bin/(.*)$', self.text('matins-recon.service'), re.M)
        done = subprocess.run(['sh', '-c', start], env=self.env(), cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.days(), owed())


def seconds(text):
    number, unit = re.fullmatch(r'(\d+)([smh])', text).groups()
    return int(number) * {'s': 1, 'm': 60, 'h': 3600}[unit]


class CronJob(Place):
    def field(self, text, name):
        (value,) = re.findall(rf'^ *{name}: *"?(.*?)"?$', text, re.M)
        return value

    def test_the_manifest_fits_the_policy_and_its_container_runs(self):
        config, cron = self.text('cronjob.yaml').split('\n---\n')
        policy = textwrap.dedent(config.split('recon.yaml: |\n')[1])
        with open(f'{self.folder}/recon.yaml', 'w') as f:
            f.write(policy)
        self.matins('lint', f'{self.folder}/recon.yaml')
        for here, there in (('schedule', 'schedule'), ('timeZone', 'timezone')):
            self.assertEqual(self.field(cron, here), re.findall(rf'{there}: "?(.*?)"?$', policy, re.M)[0])
        self.assertEqual(self.field(cron, 'concurrencyPolicy'), 'Forbid')
        self.assertEqual(int(self.field(cron, 'startingDeadlineSeconds')), seconds(self.field(policy, 'start_deadline')))
        self.assertGreater(int(self.field(cron, 'terminationGracePeriodSeconds')), seconds(self.field(policy, 'grace')))
        self.assertEqual(self.field(cron, 'backoffLimit'), '0')
        self.assertIn('retry:', policy)
        command = json.loads(self.field(cron, 'command'))
        done = subprocess.run(command, env=self.env(), cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.days(), owed())

    def test_a_pod_that_is_evicted_gives_its_run_back(self):
        with open(f'{self.folder}/recon.sh', 'w') as f:
            f.write('#!/bin/sh\ntrap "exit 1" TERM\necho here > at-work\nwhile :; do sleep 0.05; done\n')
        pod = subprocess.Popen([MATINS, 'exec', 'recon', '--config', 'recon.yaml', '--', './recon.sh'], env=self.env(), cwd=self.folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(pod.kill)
        until = time.monotonic() + PATIENCE
        while not os.path.exists(f'{self.folder}/at-work') and time.monotonic() < until:
            time.sleep(0.02)
        pod.send_signal(signal.SIGTERM)
        self.assertEqual(pod.wait(PATIENCE), 1)
        shutil.copy(HERE / 'recon.sh', self.folder)
        subprocess.run([MATINS, 'exec', 'recon', '--', './recon.sh'], env=self.env(), cwd=self.folder, check=True, capture_output=True)
        self.assertEqual(self.days(), owed())


class Java(Place):
    def setUp(self):
        if not shutil.which('java'):
            self.skipTest('there is no java here')
        super().setUp()

    def fire(self):
        return subprocess.Popen(['java', str(HERE / 'java/Nightly.java'), 'now'], env=self.env(), cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_of_two_instances_one_does_the_work(self):
        instances = [self.fire() for _ in range(2)]
        outs = [instance.communicate(timeout=PATIENCE)[0] for instance in instances]
        self.assertEqual([instance.returncode for instance in instances], [0, 0], outs)
        self.assertEqual(self.days(), owed())


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
