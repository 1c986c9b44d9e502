"""Whole processes under faults: a seeded workload with a business table, a nemesis, then peace, then a verdict.

The verdict is the checker's (tools/checker), over the store's journal, what the nodes saw, and the rows of the business
table. A run by hand, longer than the tests':

    MATINS_FAULT_SEED=7 MATINS_FAULT_SECONDS=600 MATINS_FAULT_KEEP=/tmp/evidence ctest -R fault_run.busy
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

from support import PATIENCE, free_port

# What the lab does to nodes too is there, and only there.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'lab'))
from nemesis import Nemesis  # noqa: E402,F401
from nodes import Member, guards_and_bodies, refusals, seen, tell  # noqa: E402,F401
from workload import Evidence, Work  # noqa: E402,F401


def seed():
    return int(os.environ.get('MATINS_FAULT_SEED') or random.SystemRandom().randrange(10**6))


def fault_seconds(usual):
    return float(os.environ.get('MATINS_FAULT_SECONDS') or usual)


class Proxy:
    """tests/support's fault_proxy before PostgreSQL or, with `wire`, before MariaDB."""

    def __init__(self, case, server_port, *wire):
        self.process = subprocess.Popen([os.environ['MATINS_FAULT_PROXY'], str(server_port), *wire], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.end)
        self.port = int(self.process.stdout.readline().split()[1])

    def ask(self, command):
        self.process.stdin.write(command + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer.startswith('no such'):
            raise ValueError(answer)
        return answer

    def end(self):
        self.process.communicate(timeout=PATIENCE)


class Pool:
    """A pgbouncer in transaction mode before PostgreSQL."""

    def __init__(self, case, server_port):
        program = shutil.which('pgbouncer', path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')
        folder = tempfile.mkdtemp(prefix='mtpool')
        case.addCleanup(shutil.rmtree, folder)
        self.port = free_port()
        config = os.path.join(folder, 'pgbouncer.ini')
        with open(config, 'w') as f:
            f.write(f'[databases]\n* = host=127.0.0.1 port={server_port} user=postgres\n[pgbouncer]\n'
                    f'listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n'
                    'pool_mode = transaction\ndefault_pool_size = 10\n')
        user = {}
        if os.getuid() == 0:              # it does not run as root
            os.chmod(folder, 0o755)
            user = dict(user='nobody')
        with open(os.path.join(folder, 'log'), 'wb') as log:
            self.process = subprocess.Popen([program, config], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **user)
        case.addCleanup(self.end)

    def end(self):
        self.process.kill()
        self.process.wait(PATIENCE)


def keep(folder, name):
    """Evidence of a run that failed, or that was asked for, goes where MATINS_FAULT_KEEP says."""
    to = os.environ.get('MATINS_FAULT_KEEP')
    if to:
        shutil.copytree(folder, os.path.join(to, name), dirs_exist_ok=True,
                        ignore=lambda _, names: [n for n in names if n.startswith('matins')])
