#!/usr/bin/env python3
"""Drains N due no-op jobs with another scheduler, tuned as its documentation advises; one line of JSON (bench/README.md).
From the first start of a handler to the last one: what comes before and after that is not held against it."""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import peers  # noqa: E402
import processes  # noqa: E402

PATIENCE = 240


class Worker:
    """A worker process: what it says of itself, read as it comes."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.ready, self.count, self.first, self.last = threading.Event(), 0, 0.0, 0.0
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            if not line.startswith('{'):
                continue
            said = json.loads(line)
            if 'ready' in said:
                self.ready.set()
            else:
                self.first, self.last, self.count = said['first'], said['last'], said['count']

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wait_for(what, true, workers):
    until = time.monotonic() + PATIENCE
    while not true():
        for worker in workers:
            if worker.process.poll() is not None:
                sys.exit(f'a worker ended with exit code {worker.process.returncode}')
        if time.monotonic() > until:
            sys.exit(f'waited {PATIENCE} s for {what}')
        time.sleep(0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('peer', choices=sorted(peers.PEERS))
    parser.add_argument('--store', required=True)
    parser.add_argument('--runs', type=int, default=20000)
    parser.add_argument('--processes', type=int, default=1)
    options = parser.parse_args()
    peer, store = peers.PEERS[options.peer], options.store
    command = peer.command()
    subprocess.run([*command, 'enqueue', store, str(options.runs)], check=True, stdout=sys.stderr, timeout=PATIENCE)
    peer.settle(store)
    server = int(os.environ.get('MATINS_BENCH_STORE_PID', 0))
    store_cpu = processes.cpu_seconds(server, True)
    workers = [Worker([*command, 'work', store, str(options.runs)]) for _ in range(options.processes)]
    try:
        wait_for('the workers', lambda: all(w.ready.is_set() for w in workers), workers)
        cpu_began = sum(processes.cpu_seconds(w.process.pid) for w in workers)
        wait_for('the last run', lambda: sum(w.count for w in workers) >= options.runs, workers)
        wait_for('the last end', lambda: peer.left(store) == 0, workers)
        cpu = sum(processes.cpu_seconds(w.process.pid) for w in workers) - cpu_began
        store_cpu = processes.cpu_seconds(server, True) - store_cpu
    finally:
        for worker in workers:
            worker.stop()
    count = sum(w.count for w in workers)
    if count != options.runs:
        sys.exit(f'{count} handlers were started for {options.runs} jobs')
    seconds = (max(w.last for w in workers) - min(w.first for w in workers if w.count)) / 1000
    print(json.dumps({'bench': options.peer, 'store': peer.store, 'processes': options.processes, 'runs': options.runs,
                      'seconds': round(seconds, 4), 'per_second': round(options.runs / seconds, 1),
                      'node_cpu_us_per_run': round(cpu * 1e6 / options.runs, 2),
                      'store_cpu_us_per_run': round(store_cpu * 1e6 / options.runs, 2)}))


if __name__ == '__main__':
    main()
