"""Resources of a process: processor time by thread, memory."""

import os
import time
from collections import Counter
from pathlib import Path

TICK = 1e9 / os.sysconf("SC_CLK_TCK")


def processor_time(pid):
    """Nanoseconds on a processor so far, by thread name. Threads of one name are summed."""
    times = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            times[name] += thread_time(task)
        except FileNotFoundError:
            pass
    return times


def thread_time(task):
    try:
        return int((task / "schedstat").read_text().split()[0])
    except FileNotFoundError:
        # Without this file the kernel counts in ticks.
        user, system = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * TICK


def cpu_seconds(pid):
    """Processor seconds of a process so far, with those of ended threads."""
    # The clock id that clock_getcpuclockid(3) makes of a process.
    return time.clock_gettime(~pid << 3 | 2)


def memory(pid):
    """Bytes of memory by the names that proc(5) gives them."""
    sizes = {}
    for row in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = row.partition(":")
        if value.endswith(" kB"):
            sizes[name] = int(value.split()[0]) * 1024
    return sizes


def forget_peak(pid):
    """Resets the peak of memory to the current value."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
