"""Processor time of the threads and functions of the daemon and of Redis during their work."""

import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from ..daemon import Daemon, Filter
from ..items import TAB, URL
from ..line import line, missing
from ..measured import STOCK, Measured, stocks

UNSEEN = 30
# Number of samples a second. An odd number also samples work with a period of a millisecond evenly.
FREQUENCY = 1999
SHOWN = 20


def run(settings):
    kinds = [(TAB, UNSEEN), (URL, UNSEEN)]
    if not shutil.which("perf"):
        why = "perf is not installed (Debian: apt-get install linux-perf)"
        return {"lines": [missing("profile", "all of it", why)]}
    filter = Filter(settings.capacity, settings.error_rate)
    lines = []
    with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as folder:
        for bench in stocks(settings, Measured(), kinds):
            with Daemon(bench.server, filter, folder) as daemon:
                samples = Path(folder) / "perf.data"
                with recording(samples, daemon.pid, bench.server.process.pid):
                    daemon.run(STOCK)
            lines += folded(samples, bench.stock.group)
    return {"lines": lines}


class recording:
    """Context in which perf samples all running threads of some processes."""

    def __init__(self, samples, *pids):
        pids = ",".join(map(str, pids))
        self.command = [
            "perf", "record", "--quiet", "-e", "cpu-clock", "-F", str(FREQUENCY), "-p", pids,
            "-o", samples,
        ]

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        # perf does not report its start.
        time.sleep(1)
        if self.process.poll() is not None:
            raise RuntimeError(f"perf: {self.process.stderr.read().decode(errors='replace')}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=60)


def folded(samples, group):
    """Makes a line for each thread, and for the functions with the largest shares."""
    rows = [*report(samples, "comm"), *report(samples, "comm,symbol")]
    threads = [(share, thread) for share, thread, function in rows if not function]
    # The variants of a function for several types count as one.
    functions = Counter()
    for share, thread, function in rows:
        if function:
            # Debian's Redis lacks the names of most functions.
            name = "functions without a name" if function.startswith("0x") else function
            functions[f"{thread}: {name}"] += share
    lines = [line(group, thread, "% of samples", [share]) for share, thread in threads]
    for function, share in functions.most_common(SHOWN):
        lines.append(line(group, function, "% of samples", [share]))
    return lines


def report(samples, sort):
    """Returns shares with thread and function, the largest share first."""
    done = subprocess.run(
        [
            "perf", "report", "--stdio", "--quiet", "--no-children", "-g", "none", "-t", "|",
            "--sort", sort, "--percent-limit", "0.02", "-i", samples,
        ],
        capture_output=True, text=True, check=True, errors="replace",
    )
    rows = []
    for row in done.stdout.splitlines():
        share, _, rest = row.partition("|")
        if rest:
            thread, _, function = rest.partition("|")
            # The name follows the object, and empty columns follow the name.
            function = re.sub(r"^\s*\[.\]\s*|[\s|-]+$", "", function)
            rows.append((float(share.strip().rstrip("%")), thread.strip(), function))
    return rows
