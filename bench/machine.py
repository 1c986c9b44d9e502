"""What is measured on, for the report: no names of hosts or people."""
import os
import platform
import statistics
import subprocess
import time


def _first(path, key):
    try:
        with open(path) as f:
            for line in f:
                if line.startswith(key):
                    return line.split(':' if ':' in line else '=', 1)[1].strip().strip('"')
    except OSError:
        pass
    return 'unknown'


def _said(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return 'none'


def sync_ms(folder):
    """Median milliseconds of writing 8 KiB and fdatasync, on the disk where stores lie."""
    path, took = os.path.join(folder, 'sync'), []
    with open(path, 'wb', buffering=0) as f:
        for _ in range(200):
            f.write(b'x' * 8192)
            began = time.monotonic()
            os.fdatasync(f.fileno())
            took.append((time.monotonic() - began) * 1000)
    os.unlink(path)
    return round(statistics.median(took), 3)


def described(folder):
    memory = int(_first('/proc/meminfo', 'MemTotal').split()[0]) / 1024 / 1024
    return {
        'processor': f'{_first("/proc/cpuinfo", "model name")}, {os.cpu_count()} cores seen',
        'memory': f'{memory:.0f} GiB',
        'system': f'{_first("/etc/os-release", "PRETTY_NAME")}, Linux {platform.release().split("-")[0]} {platform.machine()}',
        'file system': _said('stat', '-f', '-c', '%T', folder),
        'fdatasync of 8 KiB': f'{sync_ms(folder)} ms (median of 200)',
        'compiler': _said('g++', '--version').split(') ')[-1] and f'g++ {_said("g++", "-dumpfullversion")}',
    }
