#!/usr/bin/env python3
"""One row of table.txt: with the mutant off the named tests are green, with it on each of them is red.

    python3 caught.py MUTANT PROGRAM TESTS

TESTS is a GoogleTest filter without wildcards, cases joined by ':'.  A test that is not there, was skipped, or ended
the program proves nothing, and neither does a mutant that the program does not know (exit code 64, src/base/fault.h).
"""
import json
import os
import subprocess
import sys
import tempfile

PATIENCE = 120  # seconds, for one run of a program
IN_VAIN = 6  # seconds, for what tests wait for and a mutant keeps from coming


def outcomes(program, tests, mutant):
    """{case: None where it passed, else what it said}, of one run of the program."""
    environment = {name: text for name, text in os.environ.items() if name != 'MATINS_MUTANT'}
    if mutant:
        environment.update(MATINS_MUTANT=mutant, MATINS_TEST_PATIENCE=str(IN_VAIN))
    with tempfile.TemporaryDirectory(prefix='matins-mutant-') as folder:
        report = os.path.join(folder, 'report.json')
        ran = subprocess.run([program, f'--gtest_filter={tests}', f'--gtest_output=json:{report}'], env=environment,
                             timeout=PATIENCE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode not in (0, 1) or not os.path.exists(report):
            sys.exit(f'{program} with {mutant or "no mutant"} ended with {ran.returncode}:\n{ran.stdout[-2000:]}')
        with open(report) as file:
            suites = json.load(file)['testsuites']
    cases = {f'{suite["name"]}.{case["name"]}': case for suite in suites for case in suite['testsuite']}
    for name in tests.split(':'):
        if name not in cases or cases[name]['result'] != 'COMPLETED':
            sys.exit(f'{name} did not run in {program}')
    return {name: '\n'.join(each['failure'] for each in case['failures']) if 'failures' in case else None
            for name, case in cases.items()}


def main(mutant, program, tests):
    for name, said in outcomes(program, tests, None).items():
        if said is not None:
            return f'{name} is red without any mutant:\n{said}'
    for name, said in outcomes(program, tests, mutant).items():
        if said is None:
            return f'{name} is green with {mutant}: it does not see that its protection is out'
        print(f'{name} catches {mutant}:\n{said}')
    return 0


if __name__ == '__main__':
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
