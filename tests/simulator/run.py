#!/usr/bin/env python3
"""Runs seeds and has their histories judged: python3 run.py SIMULATOR CHECKER FROM TO

The simulator's own referee and the checker are two opinions that share no code; a seed must please both.
"""
import os
import subprocess
import sys
import tempfile


def main(simulator, checker, first, last):
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix='matins-seeds-', dir=os.environ.get('TMPDIR', memory)) as folder:
        ran = subprocess.run([simulator, '--seeds', f'{first}..{last}', '--evidence', folder])
        judged = subprocess.run([sys.executable, '-B', os.path.join(here, 'judge.py'), checker, folder])
    if ran.returncode or judged.returncode:
        print('a seed that broke a promise is told event by event by: matins_simulator --seed N')
    return ran.returncode or judged.returncode


if __name__ == '__main__':
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
