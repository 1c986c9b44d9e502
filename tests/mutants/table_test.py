#!/usr/bin/env python3
"""The mutants of src/base/fault.h, the rows of table.txt and the table of docs/promises.md say the same: each mutant is
caught by something, each promise of this version has a mutant, and the document names what catches it."""
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_IN_THIS_VERSION = set()
PROMISES = {f'I{n}' for n in range(25)} - NOT_IN_THIS_VERSION | {'J'}
DOCUMENTED = re.compile(r'^\| ([^|]*) \| [^|]* \| `(\w+)` \| (.*) \|$', re.M)


def switches():
    header = (ROOT / 'src/base/fault.h').read_text()
    names = re.findall(r'^  k(\w+),', header[header.index('enum class Mutant'):header.index('};')], re.M)
    return {re.sub(r'(?<!^)(?=[A-Z])', '_', name).lower() for name in names} - {'none'}


def rows():
    for line in (ROOT / 'tests/mutants/table.txt').read_text().splitlines():
        if line and not line.startswith('#'):
            yield [cell.strip() for cell in line.split('|')]


def catchers(program, tests):
    """As docs/promises.md names them."""
    if program == 'matins_simulator':
        return ['the simulator']
    if program == 'checker':
        return ['the checker']
    names = [re.sub(r'^Each/Promise.Holds/(\w+?)_', r'\1.', test) for test in tests.split(':')]
    return [re.sub(r'^Each/(\w+\.\w+)/(?:sqlite|postgresql|mariadb)$', r'\1', name) for name in names]


def wrong():
    known = switches()
    parsed = set(re.findall(r'\{"(\w+)", Mutant::', (ROOT / 'src/base/fault.cc').read_text())) - {'none'}
    for name in known ^ parsed:
        yield f'src/base/fault.h and fault.cc do not both have {name}'
    promised, caught = {}, defaultdict(set)
    for mutant, promises, program, tests in rows():
        if mutant not in known:
            yield f'table.txt: there is no mutant {mutant}'
        if promised.setdefault(mutant, promises) != promises:
            yield f'table.txt: {mutant} is said to break {promises} and {promised[mutant]}'
        caught[mutant].update(catchers(program, tests))
    for mutant in known - set(promised):
        yield f'table.txt: nothing catches {mutant}'
    broken = {promise for promises in promised.values() for promise in promises.split(', ')}
    for promise in broken ^ PROMISES:
        yield f'table.txt: {promise} ' + ('has no mutant' if promise in PROMISES else 'is not promised')
    told = {mutant: (promises, by) for promises, mutant, by in
            DOCUMENTED.findall((ROOT / 'docs/promises.md').read_text())}
    for mutant in known ^ set(told):
        yield f'docs/promises.md: its table and the switches do not both have {mutant}'
    for mutant, (promises, by) in told.items():
        if promises != promised.get(mutant):
            yield f'docs/promises.md: {mutant} breaks {promised.get(mutant)}, not {promises}'
        for each in caught[mutant]:
            if each not in by:
                yield f'docs/promises.md: {mutant} is caught by {each} too'


if __name__ == '__main__':
    found = list(wrong())
    print('\n'.join(found) or f'{len(switches())} mutants, each caught')
    sys.exit(1 if found else 0)
