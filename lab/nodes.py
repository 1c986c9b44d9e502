"""Nodes as processes, and what can be done to them. A `case` is whoever has a folder, env() and addCleanup()."""
import json
import os
import re
import signal
import subprocess
from collections import Counter

from program import MATINS, PATIENCE, eventually


class Member:
    """A place for a node: its life ends and begins again; its history goes on in one file."""

    def __init__(self, case, number, store=None, env=None, program=MATINS, drain='10s', more=()):
        self.program, self.drain, self.more = program, drain, more
        self.env = {**case.env(), **(env or {})}
        if store:
            self.env['MATINS_STORE'] = store
        self.folder = case.folder
        self.jobs = [os.path.join(case.folder, 'jobs.yaml')]
        self.history = os.path.join(case.folder, f'history-{number}.jsonl')
        self.log = os.path.join(case.folder, f'node-{number}.log')
        self.process = self.ended = None        # ended: the one whose end is told
        self.lives = 0
        case.addCleanup(self.kill)

    def start(self):
        self.lives += 1
        # In a session of its own: where the shell that began the lab ends, the kernel lets its group's stopped processes go on.
        with open(self.log, 'ab') as log:
            self.began = log.tell()             # of this life's words
            self.process = subprocess.Popen([self.program, 'serve', *self.jobs, '--runtime-dir', self.folder, '--history', self.history,
                                             '--drain', self.drain, *self.more], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
            self.process.wait(PATIENCE)

    def serves(self):
        with open(self.log, 'rb') as log:
            log.seek(self.began)
            return b' serves ' in log.read()

    def stop(self):
        """In peace: one that has just begun is not yet ready for the signal, and would die of it."""
        self.process.send_signal(signal.SIGCONT)
        eventually('the node to serve', lambda: self.serves() or not self.alive())
        self.process.terminate()
        return self.process.wait(PATIENCE)


def label(n):
    """Of the nth node, where each has one of its own, and of the nth job, which runs there alone."""
    return f'node{n}'


def children():
    """pid -> pids of its children"""
    found = {}
    for name in os.listdir('/proc'):
        if name.isdigit():
            try:
                with open(f'/proc/{name}/stat') as f:
                    parent = int(f.read().rpartition(')')[2].split()[1])
            except OSError:
                continue
            found.setdefault(parent, []).append(int(name))
    return found


def state_of(pid):
    """A letter as in proc(5); None: no such process."""
    try:
        with open(f'/proc/{pid}/stat') as f:
            return f.read().rpartition(')')[2].split()[0]
    except OSError:
        return None


def guards_and_bodies(member):
    """The processes under a node: the guards are its children, the bodies theirs."""
    family = children()
    guards = family.get(member.process.pid, [])
    return guards, [body for guard in guards for body in family.get(guard, [])]


def tell(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def seen(members):
    """How often the nodes saw which answer, 'hb refused' for instance."""
    count = Counter()
    for member in members:
        if os.path.exists(member.history):
            with open(member.history) as f:
                count.update(f"{e['type']} {e['res']}" for e in map(json.loads, f))
    return count


def unknowns(count):
    """Ends of runs whose answer did not come."""
    return sum(n for what, n in count.items() if re.fullmatch('(commit|complete|fail) info', what))


def refusals(count):
    """Of old owners."""
    return sum(n for what, n in count.items() if re.fullmatch('(hb|ckpt|commit|fail) refused', what))
