"""Stream of generated URLs through `urlseen filter`, once with each of two kinds of filters.

The first kind is two-choice: it begins small and grows. The second is native, which is made for all
URLs from the start.
"""

import fcntl
import json
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from . import line, programs
from .process import memory

GROUP = "stream"
GROWING, FIXED = "two-choice", "native"
# Share of different URLs that the filters may drop when they have all of them. It is the default of
# the growing filter.
ERROR_RATE = 1e-7
# Size of the pipes, in bytes. It is the largest size that a user may choose.
PIPE = 1 << 20
# Largest number of samples of a run on the page.
SAMPLES = 500


@dataclass
class Stream:
    """Different URLs, followed by repeated ones."""

    distinct: int
    repeated: int
    # Number of URLs with which the growing filter begins.
    capacity: int
    # Seconds between two samples.
    interval: float = 1.0

    @property
    def lines(self):
        return self.distinct + self.repeated

    def filters(self):
        """Returns the options of both filters by the name of their kind."""
        rate = ["--error-rate", str(ERROR_RATE)]
        grow = ["--capacity", str(self.capacity), "--grow-to", str(self.distinct)]
        return {
            GROWING: ["--kind", GROWING, *grow, *rate],
            FIXED: ["--kind", FIXED, "--capacity", str(self.distinct), *rate],
        }

    @property
    def counts(self):
        return [str(self.distinct), str(self.repeated)]


FULL = Stream(distinct=1_000_000_000, repeated=300_000_000, capacity=10_000_000)
SHORT = Stream(distinct=2_000_000, repeated=600_000, capacity=20_000, interval=0.05)


@dataclass
class Run:
    """Figures of a run of one filter."""

    seconds: float
    processor_seconds: float
    peak: int
    # Number of different URLs that the filter dropped, and of repeated URLs that it printed.
    dropped: int
    again: int
    # Second since the start, bytes that were read, bytes of memory.
    samples: list


def measure(stream, program):
    """Runs the stream through both filters. Returns the runs by kind."""
    generator = programs.build_bench("stream")
    return {
        kind: run(stream, generator, [program, "filter", *options])
        for kind, options in stream.filters().items()
    }


def run(stream, generator, command):
    """Runs the stream through a filter, and checks the lines that the filter prints."""
    write = subprocess.Popen([generator, "write", *stream.counts], stdout=subprocess.PIPE)
    widen(write.stdout)
    # The filter warns that it is nearly full.
    said = tempfile.TemporaryFile("w+")
    begun = time.perf_counter()
    filter = subprocess.Popen(command, stdin=write.stdout, stdout=subprocess.PIPE, stderr=said)
    widen(filter.stdout)
    check = subprocess.Popen(
        [generator, "check", *stream.counts], stdin=filter.stdout, stdout=subprocess.PIPE
    )
    # The processes have these ends of the pipes now. If one of them ends, the others notice it.
    write.stdout.close()
    filter.stdout.close()
    samples = []
    sampler = threading.Thread(target=sample, args=(filter.pid, begun, stream.interval, samples))
    sampler.start()
    _, status, usage = os.wait4(filter.pid, 0)
    seconds = time.perf_counter() - begun
    filter.returncode = os.waitstatus_to_exitcode(status)
    sampler.join()
    counts = check.communicate()[0]
    for process in (filter, check, write):
        if process.wait() != 0:
            words = " ".join(map(str, process.args))
            said.seek(0)
            why = f"{words} ended with status {process.returncode}: {said.read()}"
            raise RuntimeError(why)
    counts = json.loads(counts)
    return Run(
        seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024,
        counts["dropped"], counts["printed again"], samples,
    )


def widen(pipe):
    """Makes a pipe as large as a user may make it."""
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)


def sample(pid, begun, interval, samples):
    """Takes samples until the process ends."""
    while True:
        try:
            read, used = bytes_read(pid), memory(pid)["VmRSS"]
        except (KeyError, OSError):
            # A process that has ended has no memory.
            return
        samples.append((time.perf_counter() - begun, read, used))
        time.sleep(interval)


def bytes_read(pid):
    """Returns the number of bytes that a process has read so far."""
    with open(f"/proc/{pid}/io", encoding="ascii") as counts:
        return next(int(row.split()[1]) for row in counts if row.startswith("rchar"))


def line_bytes():
    """Returns the length of every line of the stream."""
    command = [programs.build_bench("stream"), "write", "1", "0"]
    return len(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def expected(stream, program):
    """Returns the average number of URLs that each filter drops, as `urlseen plan` computes it."""
    sized = ["--capacity", str(stream.distinct), "--error-rate", str(ERROR_RATE)]
    command = [program, "plan", *sized, "--json"]
    plan = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return {
        kind["kind"]: kind["lost_urls"]
        for kind in plan["kinds"]
        if kind["kind"] == GROWING or kind["kind"] == FIXED and kind["chosen"]
    }


def lines(stream, program):
    """Measures both filters. Returns the lines of data for the page."""
    drops, length, found = expected(stream, program), line_bytes(), []
    for kind, it in measure(stream, program).items():
        for unit, value in (
            ("seconds", it.seconds), ("processor seconds", it.processor_seconds),
            ("lines/s", stream.lines / it.seconds), ("peak bytes", it.peak),
            ("different URLs dropped", it.dropped), ("expected", drops[kind]),
            ("repeated URLs printed", it.again),
        ):
            found.append(line.line(GROUP, kind, unit, [value]))
        # Several samples become one: the last of them.
        step = len(it.samples) // SAMPLES + 1
        samples = it.samples[::-step][::-1]
        for unit, column in zip(("seconds", "lines", "bytes"), zip(*samples)):
            if unit == "lines":
                # The process has also read some kilobytes of other files.
                column = [min(value // length, stream.lines) for value in column]
            found.append(line.line(GROUP, f"samples, {kind}", unit, column))
    return found


def faults(found):
    """Returns a text for each wrong count in the lines of data."""
    for kind in (GROWING, FIXED):
        count = lambda unit, kind=kind: line.values(found, GROUP, kind, unit)[0]
        if again := count("repeated URLs printed"):
            yield f"{kind} printed {again} repeated URLs, and must print none"
        # Random numbers of this mean are practically never larger than this.
        most = count("expected") + 6 * count("expected") ** 0.5 + 6
        if (dropped := count("different URLs dropped")) > most:
            yield f"{kind} dropped {dropped} different URLs, and at most {most:.0f} are expected"
