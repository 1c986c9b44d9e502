"""CPU time of processes, and what else the machine does meanwhile."""
import os

TICKS = os.sysconf('SC_CLK_TCK')


def _stat(pid):
    with open(f'/proc/{pid}/stat') as f:
        return f.read().rsplit(')', 1)[1].split()


def cpu_seconds(pid, with_children=False):
    """User and system time of a process; with its living and waited-for children where asked."""
    try:
        fields = _stat(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    total = sum(map(int, fields[11:15 if with_children else 13])) / TICKS
    if with_children:
        for name in os.listdir('/proc'):
            if name.isdigit():
                try:
                    child = _stat(name)
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if int(child[1]) == pid:
                    total += sum(map(int, child[11:13])) / TICKS
    return total


def busy_seconds():
    """CPU seconds of the whole machine since it started."""
    with open('/proc/stat') as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS
