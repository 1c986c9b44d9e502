"""From a stage that is over into the folder of its sample: everything that the verdict needs, and nothing that is judged here."""
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from datetime import datetime, timezone

import keep
from program import HERE, MATINS, PATIENCE, checker_folder

TABLES = ('job_watermark', 'job_run', 'job_event', 'job_journal')
AHEAD = 60          # what is planned ahead is due before the cut
FOREVER = 10**9


def collect(stage, folder):
    conditions = stage.conditions
    keep.write_json(os.path.join(folder, 'conditions.json'), dict(conditions=conditions, snapshot=stage.snapshot(), inputs=inputs(stage),
                                                                  versions=versions(stage)))
    keep.write_lines(os.path.join(folder, 'actions.jsonl'), [dict(at=stage.begun, what='begin'), *stage.told,
                                                            dict(at=stage.ended, what='end', settled=stage.settled)])
    entries, starts = stage.entries(), stage.starts()
    keep.write_json(os.path.join(folder, 'business.json'), dict(
        entry=[dict(zip(('job', 'period', 'step', 'at', 'fence'), row)) for row in entries],
        alive=[dict(zip(('n', 'job', 'period', 'fence', 'pid', 'began', 'ended', 'resume'), row)) for row in starts]))
    fenced = conditions['job.guard'] in ('fence', 'store')     # that each effect has its DONE is asked of a sample that came to its end
    keep.write_lines(os.path.join(folder, 'effects.jsonl'), [dict(job=job, period=period, step=step - 1, db=at)
                                                            for job, period, step, at, _ in entries] if fenced else [])
    keep.write_lines(os.path.join(folder, 'demands.jsonl'), [dict(job=name, steps=conditions['job.steps'] if fenced else 0, same_tx=fenced and bool(stage.settled), race=0.5)
                                                            for name in job_names(conditions) if conditions['client.door'] != 'direct'])
    for name in sorted(os.listdir(stage.folder)):
        if name.startswith(('history-', 'node-', 'caller-')) and name.endswith(('.jsonl', '.log')):
            with open(os.path.join(stage.folder, name), encoding='utf-8', errors='replace') as f:
                keep.write(os.path.join(folder, name), f.read())
    for name, path, begun in stage.logs:       # slow queries, lock waits and deadlocks, of all that ran on that server meanwhile
        with open(path, 'rb') as f:
            f.seek(begun)
            keep.write(os.path.join(folder, name), f.read().decode(errors='replace'))
    keep.write_lines(os.path.join(folder, 'metrics.jsonl'), stage.watch.metrics)
    keep.write_json(os.path.join(folder, 'plans.json'), dict(before=stage.watch.plans, after=stage.watch.plans_after))
    keep.write_json(os.path.join(folder, 'stop.json'), stage.watch.stopped or {})
    keep.write_json(os.path.join(folder, 'rows.json'), {table: stage.sql(f'select * from {table}') for table in TABLES} | dict(
        columns={table: stage.store.columns(table) for table in TABLES}))
    keep.write_json(os.path.join(folder, 'settings.json'), stage.store.settings())
    keep.write_json(os.path.join(folder, 'check.json'), looked_over(stage))
    export(stage, folder)


def looked_over(stage):
    """`matins db check`: schema, indexes, triggers, settings, rows that cannot be."""
    done = stage.matins('db', 'check', '-o', 'json', check=False)
    try:
        return dict(json.loads(done.stdout), exit_code=done.returncode)
    except ValueError:
        return dict(exit_code=done.returncode, said=done.stdout + done.stderr)


def job_names(conditions):
    return ['work', *(f'work{n}' for n in range(2, conditions['job.copies'] + 1))]


def export(stage, folder):
    """The three witnesses merged into one history, by the checker's own exporter."""
    quiet = 30 + AHEAD if stage.settled and not stage.experiment.told.get('leaves_open') else FOREVER
    command = [sys.executable, '-B', os.path.join(checker_folder(), 'export.py'), stage.store.url, '--effects', os.path.join(folder, 'effects.jsonl'),
               '--jobs', os.path.join(folder, 'demands.jsonl'), '--quiet', str(quiet), '--cut', str(time.time() + AHEAD)]
    for name in sorted(os.listdir(folder)):
        if name.startswith('history-'):
            command += ['--history', os.path.join(folder, name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode == 0:
        keep.write(os.path.join(folder, 'evidence.jsonl'), done.stdout)
    else:
        keep.write(os.path.join(folder, 'export.log'), done.stderr)


def inputs(stage):
    """Digests of what goes in: the job file, what the job runs, the fence's statements."""
    found = {name: digest_of(os.path.join(HERE, name)) for name in ('body.py', 'pager.py', 'prompt.py', 'soak_body.py')}
    return dict(found, snapshot=hashlib.sha256(stage.snapshot().encode()).hexdigest(), **{'fence.sql': digest_of(stage.path('fence.sql'))})


def versions(stage):
    older = dict(older=dict(matins=told_version(stage.older), program=digest_of(stage.older))) if stage.older else {}
    return dict(**older, matins=told_version(), program=digest_of(MATINS), store=stage.store.version(), python=platform.python_version(),
                kernel=platform.release(), processors=os.cpu_count(), checker={
                    name: digest_of(os.path.join(checker_folder(), name)) for name in sorted(os.listdir(checker_folder())) if name.endswith('.py')})


_known = {}


def told_version(program=MATINS):
    if program not in _known:
        done = subprocess.run([program, 'version', '-o', 'json'], capture_output=True, text=True, timeout=PATIENCE, check=False)
        _known[program] = json.loads(done.stdout) if done.returncode == 0 else done.stderr
    return _known[program]


def digest_of(path):
    with open(path, 'rb') as f:
        return hashlib.file_digest(f, 'sha256').hexdigest()


def fixed(older=None):
    """What must not change while an experiment runs, cheap enough to be asked before each sample."""
    def state(path):
        told = os.stat(path)
        return f'{told.st_size} bytes of {told.st_mtime_ns}'
    return dict(program=state(MATINS), older=state(older) if older else '', day=str(datetime.now(timezone.utc).date()))
