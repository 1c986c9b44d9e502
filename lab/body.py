"""What the job of an experiment runs: steps into a business table, guarded or not, and gates at which it waits to be told.

    body.py FOLDER GUARD GATE STEPS SECONDS MARKS

GUARD  fence: raise, then each step under the fence, in its own transaction; key: each step once by a unique key;
       store: the steps in the scheduler's own database, in the transaction that writes DONE (`commit: job`);
       none: nothing, as a job that trusts its lock
GATE   before or after the effect, or none. The nth start of all makes FOLDER/ran.n and waits there for go.n, whose text is
       its exit status, or for `go`, which lets all of them end well
MARKS  rising: the checkpoint is the number of the step; falling: it goes down, as no good job's does
What it does stands in business.db (with `store`, in the store): `entry` has no key of its own, so that what was done twice is there
twice; `alive` has when each start began and ended.
"""
import os
import re
import signal
import sqlite3
import sys
import time

from soak_body import STALE, checkpoint, statement

ENTRY = 'create table entry (job varchar(99), period varchar(99), step int, generation int, fence bigint, at double precision)'
TABLES = ('create table if not exists entry (job text, period text, step int, generation int, fence int, at real)',
          'create table if not exists once (job text, period text, step int, primary key (job, period, step))',
          'create table if not exists alive (n int, job text, period text, fence int, pid int, began real, ended real, resume int)')


def number(folder):
    n = 1
    while True:
        try:
            os.mkdir(os.path.join(folder, f'number.{n}'))
            return n
        except FileExistsError:
            n += 1


def wait(folder, n):
    mine, all_ = os.path.join(folder, f'go.{n}'), os.path.join(folder, 'go')
    while True:
        if os.path.exists(mine):
            with open(mine) as f:
                return int(f.read())
        if os.path.exists(all_):
            return 0
        time.sleep(0.01)


def main(folder, guard, gate, steps, seconds, marks):
    me = dict(job=os.environ.get('MATINS_JOB', 'work'), period=os.environ.get('MATINS_PERIOD', os.environ.get('LAB_PERIOD', '')),
              generation=int(os.environ.get('MATINS_GENERATION', 1)), fence=int(os.environ.get('MATINS_FENCE', 0)))
    db = sqlite3.connect(os.path.join(folder, 'business.db'), timeout=30, isolation_level=None)
    first = 1
    if guard == 'fence':
        raised = db.execute(statement(folder, 'INSERT INTO matins_fence'), me).fetchall()
        if not raised:
            return STALE
        first = raised[0][0] + 1
    n = number(folder)
    db.execute('insert into alive values (?, ?, ?, ?, ?, ?, null, ?)',
               (n, me['job'], me['period'], me['fence'], os.getpid(), time.time(), int(os.environ.get('MATINS_CHECKPOINT_NUMBER') or 0)))
    os.mkdir(os.path.join(folder, f'ran.{n}'))     # only now: who sees it may stop this process, which must not hold the database
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))   # so that its end stands in `alive`
    try:
        status = wait(folder, n) if gate == 'before' else 0
        if status == 0:
            status = with_done(folder, me, steps) if guard == 'store' else effects(db, folder, guard, me, first, steps, seconds, marks)
        if status == 0 and gate == 'after':
            status = wait(folder, n)
        return status
    finally:
        if db.in_transaction:
            db.execute('rollback')
        db.execute('update alive set ended = ? where n = ?', (time.time(), n))


def effects(db, folder, guard, me, first, steps, seconds, marks):
    for step in range(first, steps + 1):
        time.sleep(seconds)
        at = me | dict(step=step, at=time.time())
        db.execute('begin immediate')
        new = True
        if guard == 'fence':
            if db.execute(statement(folder, 'UPDATE matins_fence'), at).rowcount != 1:
                return STALE
            new = db.execute(statement(folder, 'INSERT INTO matins_effect'), at).rowcount == 1
        elif guard == 'key':
            new = db.execute('insert or ignore into once values (:job, :period, :step)', at).rowcount == 1
        if new:
            db.execute('insert into entry values (:job, :period, :step, :generation, :fence, :at)', at)
        db.execute('commit')
        if guard == 'fence' and 'MATINS_SOCKET' in os.environ:
            taken = checkpoint(step if marks == 'rising' else steps + 1 - step, 2)
            if taken is False and marks == 'rising':
                return STALE
    return 0


def with_done(folder, me, steps):
    """As `matins fence sql` says: the job's own writes, the fence and DONE, COMMIT at once; where another owns the period, nothing."""
    store, ours = written(folder, me, steps)
    store.ask('commit' if ours else 'rollback')
    store.end()
    return 0 if ours else STALE


def written(folder, me, steps):
    """All of it but the COMMIT. -> (the connection, whether this owner has the period)"""
    import prompt       # here alone: each start of each body would pay for what it imports
    with open(os.path.join(folder, 'store.url')) as f:
        store = prompt.open_prompt(f.read())
    told = {name: f"'{value}'" if isinstance(value, str) else str(value) for name, value in me.items()}

    def text(beginning):
        return re.sub(r':(\w+)', lambda m: told[m.group(1)], statement(folder, beginning, 'commit.sql'))
    store.ask(store.begin)
    for step in range(1, steps + 1):
        store.ask(f'insert into entry values ({told["job"]}, {told["period"]}, {step}, {told["generation"]}, {told["fence"]}, {time.time()!r})')
    store.ask(text('SELECT 1 FROM job_watermark'))
    ours = store.changed(text('UPDATE job_watermark')) == 1
    if ours:
        store.ask(text('INSERT INTO job_run'))
    return store, ours


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5]), sys.argv[6]))
