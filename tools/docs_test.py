#!/usr/bin/env python3
"""What the documents name is there: links, source files, fault points, tests and mutants; so are the documents that
sources name; the job files that documents show pass `matins lint`, and docs/commands.md has every command. Run in
ctest; MATINS_BINARY names the program (unset: what needs it is left out)."""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / name for name in ('README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md')]
LINK = re.compile(r'\]\(([^)#:]+)(?:#[^)]*)?\)')
SOURCE = re.compile(r'`((?:src|include|tests|tools|model|docs|fuzz|bench|examples)/[\w./-]+)`')
POINT = re.compile(r'`([a-z]+\.[a-z]+_[a-z_]+)`')
TEST = re.compile(r'`([A-Z]\w*\.[A-Z]\w+)`')
CITED = re.compile(r'docs/[\w-]+\.md')
MUTANT = re.compile(r'Red when: (.*)')
JOB_FILE = re.compile(r'```yaml\n(.*?)```', re.S)
PROMISES = ROOT / 'docs/promises.md'


def found_in(pattern, *suffixes):
    return {name for folder in ('src', 'tests') for suffix in suffixes for source in (ROOT / folder).rglob(suffix)
            for name in re.findall(pattern, source.read_text())}


def fault_points():
    return found_in(r'MATINS_FAULT_POINT\("([^"]+)"\)', '*.cc')


def tests():
    cases = found_in(r'(?:TEST\w*|RC_GTEST_\w+)\(\s*(\w+),\s*(\w+)', '*.cc')
    return {'.'.join(case) for case in cases} | found_in(r'\{"(I\d+\.\w+)"', 'checks.cc')


def mutants():
    return found_in(r'\{"(\w+)", Mutant::', 'fault.cc')


def missing(document, points):
    text = document.read_text()
    for link in LINK.findall(text):
        if not (document.parent / link).exists():
            yield f'links to {link}'
    for path in SOURCE.findall(text):
        if not (ROOT / path).exists():
            yield f'names {path}'
    for point in POINT.findall(text) if document.name == 'ARCHITECTURE.md' else ():
        if point not in points:
            yield f'names the fault point {point}'


def missing_in_promises(text):
    known = tests()
    for test in TEST.findall(text):
        if test not in known:
            yield f'names the test {test}'
    switches = mutants()
    for line in MUTANT.findall(text):
        for mutant in re.findall(r'`([a-z]+_[a-z_]+)`', line):
            if mutant not in switches and mutant not in ('not_before', 'wait_until'):
                yield f'names the mutant {mutant}'


def not_told():
    """Each event of the log stands in docs/operating.md, each crash window of the engine in ARCHITECTURE.md."""
    operating, architecture = (ROOT / 'docs/operating.md').read_text(), (ROOT / 'ARCHITECTURE.md').read_text()
    for event in re.findall(r'\[\] = "(\w+)"', (ROOT / 'src/engine/events.h').read_text()):
        if f'`{event}`' not in operating:
            yield f'docs/operating.md: says nothing of the event {event}'
    for source in (ROOT / 'src/engine').glob('*.cc'):
        for point in re.findall(r'MATINS_FAULT_POINT\("([^"]+)"\)', source.read_text()):
            if f'`{point}`' not in architecture:
                yield f'ARCHITECTURE.md: says nothing of the crash window {point}'


def missing_in_sources():
    for folder in ('src', 'include', 'tests', 'examples', 'tools'):
        for source in sorted((ROOT / folder).rglob('*.*')):
            if source.suffix in ('.h', '.cc', '.c', '.py'):
                for document in CITED.findall(source.read_text()):
                    if not (ROOT / document).exists():
                        yield f'{source.relative_to(ROOT)}: names {document}, which is not there'


def refused_job_files(binary, document):
    for text in JOB_FILE.findall(document.read_text()):
        lint = subprocess.run([binary, 'lint', '-'], input=text, capture_output=True, text=True)
        if lint.returncode != 0:
            yield f'{document.relative_to(ROOT)}: shows a job file that is refused:\n{lint.stdout}'


def commands_not_told(binary):
    told = (ROOT / 'docs/commands.md').read_text()
    top = subprocess.run([binary, '--help'], capture_output=True, text=True).stdout
    for name in re.findall(r'^  ([a-z]+) ', top[top.index('Subcommands:'):], re.M):
        if f'matins {name}' not in told:
            yield f'docs/commands.md: says nothing of the command {name}'


def main():
    points = fault_points()
    documents = DOCUMENTS + sorted((ROOT / 'docs').rglob('*.md'))
    wrong = [f'{document.relative_to(ROOT)}: {what}, which is not there'
             for document in documents for what in missing(document, points)]
    wrong += [f'docs/promises.md: {what}, which is not there' for what in missing_in_promises(PROMISES.read_text())]
    wrong += missing_in_sources()
    wrong += not_told()
    if binary := os.environ.get('MATINS_BINARY'):
        wrong += [what for document in documents for what in refused_job_files(binary, document)]
        wrong += commands_not_told(binary)
    print('\n'.join(wrong) or 'every link, file, fault point, test and mutant is there; every job file passes')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
