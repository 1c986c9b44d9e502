#!/usr/bin/env python3
"""Counts the instructions of the pure parts under callgrind and holds them to `stored.json`: more than a tenth above is a
failure. What was counted depends on compiler and processor, so values are stored for each; where there are none, the test
is skipped and says how to store them:

    STORE_INSTRUCTIONS=1 ./dev test -R instructions
"""
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

STORED = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stored.json')
TOLERANCE = 0.10
SKIPPED = 77


def counted(program):
    """name -> instructions an operation."""
    with tempfile.TemporaryDirectory(prefix='matins-instructions') as folder:
        done = subprocess.run(['valgrind', '--tool=callgrind', '--collect-atstart=no', f'--callgrind-out-file={folder}/out', program],
                              capture_output=True, text=True, env={'PATH': os.environ['PATH']})
        if done.returncode != 0:
            sys.exit(f'{program} under valgrind: exit code {done.returncode}\n{done.stderr}')
        totals = {}
        for name in os.listdir(folder):
            with open(f'{folder}/{name}') as f:
                text = f.read()
            if named := re.search(r'^desc: Trigger: Client Request: (\S+)$', text, re.M):
                totals[named[1]] = int(re.search(r'^totals: (\d+)$', text, re.M)[1])
    operations = dict(line.split() for line in done.stdout.splitlines())
    if totals.keys() != operations.keys():
        sys.exit(f'counted {sorted(totals)} of {sorted(operations)}')
    return {name: max(1, round(totals[name] / int(operations[name]))) for name in operations}


def changes(now, stored):
    """Lines of what differs, and whether any of it is a failure."""
    lines, failed = [], False
    for name, count in now.items():
        before = stored.get(name)
        if before is None:
            lines.append(f'{name}: {count} instructions, and no value is stored; store it')
            failed = True
            continue
        change = count / before - 1
        verdict = ''
        if change > TOLERANCE:
            verdict, failed = '  TOO MANY', True
        elif change < -TOLERANCE:
            verdict = '  fewer: store the new value, so that it stays so'
        lines.append(f'{name}: {count} instructions, {before} stored, {change:+.1%}{verdict}')
    return lines, failed


def main():
    program, compiler, version = sys.argv[1:]
    key = f'{platform.machine()} {compiler} {version.split(".")[0]}'
    with open(STORED) as f:
        stored = json.load(f)
    now = counted(program)
    if os.environ.get('STORE_INSTRUCTIONS'):
        stored[key] = now
        with open(STORED, 'w') as f:
            f.write(json.dumps(stored, indent=2, sort_keys=True) + '\n')
        print(f'stored for {key}')
        return 0
    if key not in stored:
        print(f'skipped: no counts are stored for {key}. Where the code is known to be good, store them and commit the file:\n'
              '  STORE_INSTRUCTIONS=1 ./dev test -R instructions')
        return SKIPPED
    lines, failed = changes(now, stored[key])
    print('\n'.join(lines))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
