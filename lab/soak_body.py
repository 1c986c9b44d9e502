"""What the jobs of a soak (workload.py) run: steps into a business table, each fenced in its own transaction.

    soak_body.py FOLDER STEPS SECONDS

FOLDER has business.db and fence.sql, the text of `matins fence sql --dialect sqlite`. The table `entry` has no key of its
own, so that an effect that was applied twice is there twice.
"""
import json
import os
import socket
import sqlite3
import sys
import time

STALE = 3


def statements(folder, name='fence.sql'):
    with open(os.path.join(folder, name)) as f:
        lines = [line for line in f if not line.startswith('--')]
    return [' '.join(text.split()) for text in ''.join(lines).split(';')]


def statement(folder, beginning, name='fence.sql'):
    return next(text for text in statements(folder, name) if text.startswith(beginning))


def checkpoint(number, patience=None):
    """True when the store has it, None when nobody answered (in `patience` seconds)."""
    path, key = os.environ['MATINS_SOCKET'].split('?key=')
    with socket.socket(socket.AF_UNIX) as node:
        node.settimeout(patience)
        try:
            node.connect(path)
            node.sendall(json.dumps({'key': key, 'ask': 'checkpoint', 'number': number}).encode() + b'\n')
            answer = node.makefile().readline()
        except OSError:
            return None
    return json.loads(answer)['ok'] if answer else None


def main(folder, steps, seconds):
    me = {name: os.environ[f'MATINS_{name.upper()}'] for name in ('job', 'period', 'generation', 'fence')}
    me |= {name: int(me[name]) for name in ('generation', 'fence')}
    raise_, step_, once = (statement(folder, text) for text in ('INSERT INTO matins_fence', 'UPDATE matins_fence',
                                                                'INSERT INTO matins_effect'))
    db = sqlite3.connect(os.path.join(folder, 'business.db'), timeout=30, isolation_level=None)
    raised = db.execute(raise_, me).fetchall()
    if not raised:
        return STALE
    for step in range(raised[0][0] + 1, steps + 1):
        time.sleep(seconds)
        db.execute('begin immediate')
        if db.execute(step_, me | {'step': step}).rowcount != 1:
            return STALE
        if db.execute(once, me | {'step': step}).rowcount == 1:
            db.execute('insert into entry (job, period, step, generation, fence, at) '
                       'values (:job, :period, :step, :generation, :fence, :at)', me | {'step': step, 'at': time.time()})
        db.execute('commit')
        if checkpoint(step) is False:
            return STALE
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
