"""The program under test, the checker, and waiting. MATINS_BINARY names the program."""
import os
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MATINS = os.environ.get('MATINS_BINARY') or 'matins'
PATIENCE = 60  # seconds that anything may take on a busy machine before it is given up


def checker_folder():
    """Installed it lies in this folder, in the source tree among the tools."""
    installed = os.path.join(HERE, 'checker')
    return installed if os.path.isdir(installed) else os.path.join(HERE, '..', 'tools', 'checker')


def stay_clear_of_midnight(seconds):
    """For tests that count days, which fall due at midnight UTC: returns at once, or behind the midnight that comes within so many seconds."""
    left = 86400 - time.time() % 86400
    if left < seconds:
        time.sleep(left + 1)


def eventually(what, probe, patience=PATIENCE):
    """Asks `probe` until it answers something true; that is the answer."""
    until = time.monotonic() + patience
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > until:
            raise AssertionError(f'waited {patience} s for {what}')
        time.sleep(0.02)
