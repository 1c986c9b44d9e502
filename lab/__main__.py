"""matins lab: prove the promises on real processes and servers, and keep the evidence. docs/lab.md has the whole."""
import argparse
import os
import sys

if sys.version_info < (3, 11):
    sys.exit(f'matins lab: needs Python 3.11 or newer, and python3 is {sys.version.split()[0]}; apt-get install python3.11')

import commands  # noqa: E402
from experiment import Bad  # noqa: E402


def parser():
    top = argparse.ArgumentParser(prog='matins lab', description=__doc__.split('.')[0] + '.', epilog='docs/lab.md has the whole.')
    sub = top.add_subparsers(dest='command', required=True)
    run = sub.add_parser('run', help='run experiments: core, full, mutants, or files')
    run.add_argument('what', nargs='+', metavar='core|full|mutants|FILE', help='the shipped ones, the table of protections, or files')
    run.add_argument('--store', help='run all of them on this kind: sqlite, postgresql, mariadb')
    run.add_argument('--only', action='append', default=[], metavar='NAME', help='of those only these; may be repeated')
    keep_option(run)
    run.add_argument('--at-a-time', type=int, default=3, metavar='N', help='topics at a time; default 3')
    verify = sub.add_parser('verify', help='judge a run again from its folder alone')
    verify.add_argument('folder')
    verify.add_argument('--seal', help='the digest that was printed when the folder was made')
    again = sub.add_parser('replay', help='run what failed in a folder once more, with its seed and conditions')
    again.add_argument('folder')
    keep_option(again)
    sub.add_parser('list', help='the experiments that ship')
    return top


def keep_option(command):
    command.add_argument('--keep', default='matins-lab', metavar='FOLDER', help='where the evidence goes, a new folder a run; default ./matins-lab')


def main(arguments):
    options = parser().parse_args(arguments)
    try:
        return getattr(commands, options.command)(options)
    except Bad as e:
        print(f'matins lab: {e}', file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    os.environ.setdefault('PYTHONDONTWRITEBYTECODE', '1')
    sys.exit(main(sys.argv[1:]))
