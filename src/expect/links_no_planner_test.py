#!/usr/bin/env python3
"""The audit does not trust the planner (I13): nothing of its folders, and nothing that they include, is of src/plan or
of the engine, and no target that they link is theirs.

    links_no_planner_test.py SRC FOLDER "TARGET;TARGET;..."
"""
import re
import sys
from pathlib import Path

FORBIDDEN = ('plan', 'engine', 'execute', 'ops')
INCLUDE = re.compile(r'^#include "([\w/.]+)"', re.M)


def included(src, folder):
    """Each header that the folder's own files reach, with the way to it."""
    ways = {path: [str(path.relative_to(src))] for path in (src / folder).iterdir()
            if path.suffix in ('.h', '.cc') and '_test' not in path.name}
    open_files = list(ways)
    while open_files:
        path = open_files.pop()
        for name in INCLUDE.findall(path.read_text()):
            header = src / name
            if header.exists() and header not in ways:
                ways[header] = ways[path] + [name]
                open_files.append(header)
    return ways


def main(src, folder, linked):
    src = Path(src)
    ways = included(src, folder)
    if src / 'job/job.h' not in ways or 'matins_job' not in linked.split(';'):
        return 'the test looks at the wrong folder or target: it found no way to job.h or matins_job'
    wrong = [' -> '.join(way) for path, way in ways.items() if path.relative_to(src).parts[0] in FORBIDDEN]
    wrong += [f'matins_{folder} links {target}' for target in linked.split(';')
              if target in {f'matins_{name}' for name in FORBIDDEN}]
    return '\n'.join(wrong)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]) or 0)
