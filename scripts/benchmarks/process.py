"""Resources that a process uses: processor time of each thread, and memory."""

import os
import time
from collections import Counter
from pathlib import Path

TICK = 1e9 / os.sysconf("SC_CLK_TCK")


def processor_time(pid):
    """Returns the processor nanoseconds of a process so far, by the names of its threads."""
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
        # A kernel without this file counts in ticks.
        user, system = (task / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) * TICK


def cpu_seconds(pid):
    """Returns the processor seconds of a process so far, including threads that have ended."""
    # The id of the clock of a process, as in clock_getcpuclockid(3).
    return time.clock_gettime(~pid << 3 | 2)


def memory(pid):
    """Returns numbers of bytes of memory, by their names in proc(5)."""
    sizes = {}
    for row in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = row.partition(":")
        if value.endswith(" kB"):
            sizes[name] = int(value.split()[0]) * 1024
    return sizes


def forget_peak(pid):
    """Resets the peak of the memory of a process to the present value."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
