#!/usr/bin/env python3
"""What the documents name is there: links, source files, fault points. Run in ctest."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / name for name in ('README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md')]
LINK = re.compile(r'\]\(([^)#:]+)(?:#[^)]*)?\)')
SOURCE = re.compile(r'`((?:src|include|tests|tools|model|docs|fuzz|bench|examples)/[\w./-]+)`')
POINT = re.compile(r'`([a-z]+\.[a-z]+_[a-z_]+)`')


def fault_points():
    points = set()
    for source in (ROOT / 'src').rglob('*.cc'):
        points |= set(re.findall(r'MATINS_FAULT_POINT\("([^"]+)"\)', source.read_text()))
    return points


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


def main():
    points = fault_points()
    found = [f'{document.relative_to(ROOT)}: {what}, which is not there'
             for document in DOCUMENTS + sorted((ROOT / 'docs').rglob('*.md')) for what in missing(document, points)]
    print('\n'.join(found) or 'every link, file and fault point is there')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
