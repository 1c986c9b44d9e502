#!/usr/bin/env python3
"""Runs the measures of measures.py, tells and keeps what they gave. Called by `./dev bench`, which builds them first."""
import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import machine
import measures
import peers
import processes
import report
import servers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = f'{ROOT}/build/bench'


class Failed(Exception):
    """A measure gave no figure; the message says why."""


def command_of(measure, quick):
    options = {**measure.options, **(measure.quick if quick else {})}
    if measure.store == 'none':
        time_each = 0.05 if quick else 0.3
        return [f'{BUILD}/{measure.program}', f'--benchmark_filter=^{options["benchmark"]}$', '--benchmark_format=json',
                f'--benchmark_min_time={time_each}']
    if measure.program.startswith('versus/'):
        argv = [sys.executable, '-B', f'{ROOT}/bench/versus/peer.py', measure.program.removeprefix('versus/')]
    else:
        argv = [f'{BUILD}/{measure.program}']
    for name, value in options.items():
        argv += [f'--{name}'] if value is True else [f'--{name}', str(value)]
    return argv


def shown(argv):
    """As a person types it, from the repository's folder."""
    words = [w.replace(f'{ROOT}/', '') for w in argv if w not in (sys.executable, '-B')]
    return ' '.join(words)


def run_program(argv, folder, environment, patience):
    """Its standard output; what it leaves behind is ended with its process group."""
    with open(f'{folder}/stderr', 'w+') as errors:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                   text=True, start_new_session=True)
        try:
            out, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f'gave no answer in {patience} s') from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        errors.seek(0)
        said = errors.read().strip().splitlines()
    if process.returncode != 0:
        raise Failed(f'exit code {process.returncode}: {" ".join(said[-3:]) or "it says nothing"}')
    return out


def figures_of(measure, out):
    try:
        if measure.store != 'none':
            return json.loads(out.strip().splitlines()[-1])
        [benchmark] = json.loads(out)['benchmarks']
        return {'ns': benchmark['per_operation'] * 1e9, 'label': benchmark['label']}
    except (ValueError, IndexError, KeyError) as error:
        raise Failed(f'its answer is not as bench/README.md says: {error!r}') from None


def others_cores():
    """Cores that everything on the machine uses, just before a measure begins."""
    before = processes.busy_seconds()
    time.sleep(0.25)
    return round((processes.busy_seconds() - before) / 0.25, 2)


class Stage:
    """The servers, each started when it is first needed."""

    def __init__(self, wait=0):
        self.wait = wait
        os.makedirs(f'{BUILD}/tmp', exist_ok=True)
        self.folder = tempfile.mkdtemp(dir=f'{BUILD}/tmp')
        os.chmod(self.folder, 0o755)
        self.servers = {}
        self.count = 0

    def server(self, kind):
        if kind not in self.servers:
            self.servers[kind] = servers.KINDS[kind](f'{self.folder}/{kind}')
        return self.servers[kind]

    def wait_for_quiet(self):
        until = time.monotonic() + self.wait
        while others_cores() > 0.3 and time.monotonic() < until:
            pass

    def once(self, measure, quick):
        """One round's result: figures, or why there are none; and what else the machine did."""
        self.count += 1
        folder = f'{self.folder}/{self.count}'
        os.makedirs(folder)
        if self.wait:
            self.wait_for_quiet()
        round_ = {'at': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()), 'load1': round(os.getloadavg()[0], 2), 'others': others_cores()}
        began = time.monotonic()
        try:
            figures = self.measured(measure, quick, folder)
            return {**figures, **round_, 'took_seconds': round(time.monotonic() - began, 1)}
        except (Failed, servers.NoServer) as failed:
            return {'failed': str(failed), **round_}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def measured(self, measure, quick, folder):
        environment = {**os.environ, 'TMPDIR': folder, 'MATINS_BINARY': f'{BUILD}/matins'}
        argv = command_of(measure, quick)
        if measure.store == 'none':
            return figures_of(measure, run_program(argv, folder, environment, measure.patience))
        server = self.server(measure.store)
        store = server.fresh()
        environment['MATINS_BENCH_STORE_PID'] = str(server.pid)
        try:
            return figures_of(measure, run_program([*argv, '--store', server.url(store)], folder, environment, measure.patience))
        finally:
            server.drop(store)

    def versions(self):
        return {kind: server.version() for kind, server in self.servers.items()}

    def close(self):
        for server in self.servers.values():
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def chosen(table, only):
    """The measures that `only` names, and those that they are held against; peers alone when they are named themselves."""
    if not only:
        return table
    named = [m for m in table if any(part in m.name or fnmatch.fnmatchcase(m.name, part) for part in only)]
    beside = {goal.to for m in named for goal in m.goals}
    return [m for m in table if m in named or m.name in beside]


def keep(results, path):
    with open(f'{path}.new', 'w') as f:
        f.write(json.dumps(results, indent=1) + '\n')
    os.replace(f'{path}.new', path)


def run_all(table, options, results, path):
    """Group by group, round by round; every second round the other way round, so that no measure always follows another.
    Each round is kept when it ends."""
    run = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
    stage = Stage(options.wait)
    try:
        results['machine'] = machine.described(stage.folder)
        for group in dict.fromkeys(m.group for m in table):
            together = [m for m in table if m.group == group]
            for measure in together:
                results['measures'][measure.name] = {'run': run, 'command': shown(command_of(measure, options.quick)), 'rounds': []}
            for number in range(1, options.rounds + 1):
                for measure in together if number % 2 else reversed(together):
                    if measure.rounds and number > measure.rounds:
                        continue
                    result = {'round': number, **stage.once(measure, options.quick)}
                    results['measures'][measure.name]['rounds'].append(result)
                    print(report.progress(measure, result), flush=True)
                results['versions'].update(stage.versions())
                keep(results, path)
    finally:
        stage.close()


def without_missing(table, results):
    """Leaves out the peers that cannot be had here, and says so in the results."""
    wanted = list(dict.fromkeys(m.program.removeprefix('versus/') for m in table if m.program.startswith('versus/')))
    if not wanted:
        return table
    print('fetching and building other schedulers into build/bench/versus', flush=True)
    missing = peers.prepare(wanted)
    for name in wanted:
        title = peers.PEERS[name].title
        if name in missing:
            results['missing'][title] = missing[name]
            print(f'{title} is not measured: {missing[name]}', flush=True)
        else:
            results['missing'].pop(title, None)
            results['versions'][title] = f'{title} {peers.PEERS[name].version()}'
    return [m for m in table if m.program.removeprefix('versus/') not in missing]


def main():
    parser = argparse.ArgumentParser(prog='./dev bench', description='Measures Matins, its floors and other schedulers.')
    parser.add_argument('--quick', action='store_true', help='small sizes, one round; nothing is kept')
    parser.add_argument('--only', action='append', metavar='NAME', help='measures whose name has this in it, or matches this pattern')
    parser.add_argument('--rounds', type=int, metavar='N', help='rounds of each measure (5)')
    parser.add_argument('--wait', type=int, default=0, metavar='SECS',
                        help='before each measure, waits up to SECS seconds for the rest of the machine to be quiet')
    parser.add_argument('--list', action='store_true', help='names the measures, says how long they take, and ends')
    parser.add_argument('--report', action='store_true', help='writes docs/benchmarks.md anew from what was kept, and ends')
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    table = chosen(measures.all_measures(), options.only)
    if not table:
        sys.exit(f'bench: no measure has {options.only} in its name; see ./dev bench --list')
    kept = f'{BUILD}/{"quick" if options.quick else "results"}.json'
    results = {'machine': {}, 'versions': {}, 'missing': {}, 'measures': {}}
    if not options.quick and os.path.exists(kept):
        with open(kept) as f:
            results = json.load(f)
    if options.list:
        print(report.durations(results, table, options.rounds))
        return
    if not options.report:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the servers are stopped on the way
        run_all(without_missing(table, results), options, results, kept)
        print(report.for_terminal(results, measures.all_measures(), table))
    if not options.quick:
        report.write_document(f'{ROOT}/docs/benchmarks.md', results, measures.all_measures())
        print(f'kept in {os.path.relpath(kept, ROOT)}; docs/benchmarks.md is written anew')


if __name__ == '__main__':
    main()
