"""matins lab: prove the promises on real processes and servers, and keep the evidence. docs/lab.md has the whole."""
import argparse
import os
import signal
import sys

if sys.version_info < (3, 11):
    sys.exit(f'matins lab: needs Python 3.11 or newer, and python3 is {sys.version.split()[0]}; apt-get install python3.11')

import commands  # noqa: E402
from experiment import Bad  # noqa: E402


def parser():
    top = argparse.ArgumentParser(prog='matins lab', description=__doc__.split('.')[0] + '.', epilog='docs/lab.md has the whole.')
    sub = top.add_subparsers(dest='command', required=True)
    run = sub.add_parser('run', help='run experiments: core, full, mutants, or files')
    run.add_argument('what', nargs='+', metavar='core|full|mutants|FILE', help='the shipped ones, those on each kind of store, the table of protections, or files')
    run.add_argument('--store', help='run all of them on this kind: sqlite, postgresql, mariadb; or on this server, postgresql://... or mariadb://..., in schemas of their own')
    run.add_argument('--only', action='append', default=[], metavar='NAME', help='of those only these; may be repeated')
    keep_option(run)
    by_option(run)
    older_option(run)
    run.add_argument('--at-a-time', type=int, default=3, metavar='N', help='topics at a time; default 3')
    verify = sub.add_parser('verify', help='judge a run again from its folder alone')
    verify.add_argument('folder')
    verify.add_argument('--seal', help='the digest that was printed when the folder was made')
    again = sub.add_parser('replay', help='run what failed in a folder once more, with its seed and conditions')
    again.add_argument('folder')
    keep_option(again)
    by_option(again)
    older_option(again)
    again.add_argument('--all', action='store_true', help='all of it, not only what failed: what the release gate wants of somebody else')
    soak = sub.add_parser('soak', help='faults at random for minutes or hours, busy and lonely, ending in the checker')
    soak.add_argument('--minutes', type=float, required=True, metavar='N', help='of faults, for each shape')
    soak.add_argument('--shape', choices=('busy', 'lonely', 'both'), default='both', help='six nodes, one node, or both in turn')
    soak.add_argument('--nodes', type=int, default=6, help='of the busy shape; default 6')
    soak.add_argument('--store', choices=('sqlite', 'postgresql', 'mariadb'), default='sqlite')
    soak.add_argument('--seed', type=int, help='of the faults; default: another one each time, and printed')
    keep_option(soak)
    by_option(soak)
    gate = sub.add_parser('gate', help='the release gate: each missing item a line, and exit code 1')
    gate.add_argument('folder', help='the run that the release rests on')
    gate.add_argument('--release', required=True, metavar='FILE', help='TOML: author, owner, code, dependencies, configuration, data, not_covered')
    gate.add_argument('--replay', metavar='FOLDER', help="somebody else's run of the same experiments")
    findings = sub.add_parser('findings', help='what was found invalid, and whether that is closed')
    keep_option(findings)
    close = sub.add_parser('close', help='close a finding, by its cause, what was changed, and a replay of the original sample that passed')
    close.add_argument('folder', help='the run that found it')
    close.add_argument('experiment', help='the name of the experiment')
    close.add_argument('--root-cause', required=True, metavar='TEXT', help='what was the matter')
    close.add_argument('--change', required=True, metavar='TEXT', help='what was changed, a commit for instance')
    close.add_argument('--replay', required=True, metavar='FOLDER', help='of `matins lab replay`, in which the same sample is valid')
    by_option(close)
    sub.add_parser('list', help='the experiments that ship')
    return top


def keep_option(command):
    command.add_argument('--keep', default='matins-lab', metavar='FOLDER', help='where the evidence goes, a new folder a run; default ./matins-lab')


def older_option(command):
    command.add_argument('--older', metavar='PATH', help='the matins of the version before, for the experiments in which nodes of both share a store')


def by_option(command):
    command.add_argument('--by', metavar='NAME', help='who runs it; default: your name on this machine')


def main(arguments):
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))      # so that what was started is ended
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
