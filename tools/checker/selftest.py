#!/usr/bin/env python3
"""The checker is tested too: right histories must pass, and every seeded anomaly must be caught by the promise it breaks.

    python3 selftest.py                  all of them; exit 0 when all is as it must be
    python3 selftest.py example          prints the plain history as JSON lines
"""
import json
import sys

from checker import check
from right_histories import RIGHT, plain
from wrong_histories import WRONG


def main():
    good = True
    for what, make in RIGHT:
        verdict = check(make())
        good &= verdict['valid']
        told = verdict['stats'] if verdict['valid'] else json.dumps(verdict['violations'])
        print(f'{"valid" if verdict["valid"] else "INVALID":7}      {what:60} {told}')
    for promise, what, start, spoil in WRONG:
        history = start()
        spoil(history)
        found = check(history)['violations']
        good &= promise in found
        print(f'{"caught" if promise in found else "MISSED":7} {promise:4} {what:60} all: {",".join(found)}')
    print('SELFTEST', 'PASS' if good else 'FAIL:', len(RIGHT), 'right histories,', len(WRONG), 'seeded anomalies')
    return 0 if good else 1


if __name__ == '__main__':
    if sys.argv[1:] == ['example']:
        print('\n'.join(json.dumps(event) for event in plain()))
    else:
        sys.exit(main())
