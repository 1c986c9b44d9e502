#!/usr/bin/env python3
"""Runs seeds and has their histories judged: python3 run.py SIMULATOR CHECKER FROM TO [--until-caught]

The simulator's own referee and the checker are two opinions that share no code; a seed must please both.  With
--until-caught, for mutants (MATINS_MUTANT in the environment), it is well when the checker finds one that is not valid.
"""
import os
import subprocess
import sys
import tempfile


def main(simulator, checker, first, last, until_caught=False):
    memory = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix='matins-seeds-', dir=os.environ.get('TMPDIR', memory)) as folder:
        seeds = [simulator, '--seeds', f'{first}..{last}', '--evidence', folder]
        judge = [sys.executable, '-B', os.path.join(here, 'judge.py'), checker, folder]
        if until_caught:
            # The referee may have seen it too, or not; with another exit code the seeds did not run.
            ran = subprocess.run(seeds + ['--alone'], stdout=subprocess.DEVNULL).returncode
            return ran if ran > 1 else subprocess.run(judge + ['--until-caught']).returncode
        ran = subprocess.run(seeds)
        judged = subprocess.run(judge)
    if ran.returncode or judged.returncode:
        print('a seed that broke a promise is told event by event by: matins_simulator --seed N')
    return ran.returncode or judged.returncode


if __name__ == '__main__':
    arguments = [word for word in sys.argv[1:] if word != '--until-caught']
    if len(arguments) != 4:
        sys.exit(__doc__)
    sys.exit(main(*arguments, until_caught='--until-caught' in sys.argv))
