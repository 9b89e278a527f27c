"""Daemon with its default settings and a new storage folder."""

import http.client
import json
import shutil
import socket
import subprocess
from pathlib import Path

from . import items, process, programs
from .folders import CACHE
from .server import wait_until

SOURCE, SINK = "demo:discovered", "demo:unseen"
PROCESSING = f"urlseen:{{{SOURCE}}}:processing"
OWN_KEYS = [SOURCE, SINK, PROCESSING, *(f"urlseen:{{{SOURCE}}}:{key}" for key in ("state", "lease"))]
CONFIG = """\
[redis]
url = "unix://{socket}"
[source]
batch = {batch}
[filter]
kind = "native"
capacity = {capacity}
error_rate = {error_rate}
threads = {threads}
[storage]
dir = "{folder}"
fsync = "{fsync}"
"""


class Filter:
    """Half-full filter in a storage folder. No item has one of its fingerprints.

    The folder is made once and kept for later runs.
    """

    def __init__(self, capacity=100_000_000, error_rate=1e-8, program=programs.URLSEEN):
        self.capacity, self.error_rate, self.program = capacity, error_rate, program
        self.held = capacity // 2

    def folder(self):
        made_by = f"{programs.version(self.program)}-{items.edition()}"
        if self.program != programs.URLSEEN:
            made_by += f"-{self.program.name}"
        name = f"filter-{self.capacity}-{self.error_rate:g}-{made_by}"
        folder = CACHE / name
        if not folder.exists():
            self.make(folder)
        return folder

    def make(self, folder):
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.parent.mkdir(parents=True, exist_ok=True)
        # The first run leaves a long log. The second run takes a snapshot because of this log.
        # Otherwise the daemon would take the snapshot during a measurement.
        for count in (self.held, 1):
            self.add(unfinished, count)
        unfinished.rename(folder)

    def add(self, folder, count):
        """Adds the first `count` of the fingerprints that no item has."""
        made = subprocess.Popen(
            [programs.build_bench("items"), "other", str(count)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        sizes = ["--capacity", str(self.capacity), "--error-rate", str(self.error_rate)]
        subprocess.run(
            [self.program, "filter", "--storage", folder, *sizes],
            stdin=made.stdout, stdout=subprocess.DEVNULL, check=True,
        )
        made.wait()


class Daemon:
    """Context with a running daemon, which has recovered its filter and waits for items."""

    def __init__(self, server, filter, folder, batch=1000, threads=0, fsync="interval"):
        self.server, self.filter = server, filter
        self.program = filter.program if filter else programs.URLSEEN
        self.folder = Path(folder) / "storage"
        self.config = Path(folder) / "config.toml"
        self.log = Path(folder) / "log"
        self.options = {"batch": batch, "threads": threads, "fsync": fsync}

    def __enter__(self):
        self.server.delete(*OWN_KEYS)
        shutil.rmtree(self.folder, ignore_errors=True)
        copy = ["cp", "-r", "--reflink=auto", self.filter.folder(), self.folder]
        subprocess.run(copy, check=True)
        # Otherwise the system would write the copy to the disk during a measurement.
        subprocess.run(["sync", "--file-system", self.folder], check=True)
        self.config.write_text(
            CONFIG.format(
                socket=self.server.socket, folder=self.folder, capacity=self.filter.capacity,
                error_rate=self.filter.error_rate, **self.options,
            )
        )
        return self.start()

    def start(self):
        with open(self.log, "wb") as log:
            command = [self.program, "run", "--config", self.config]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(self.is_ready, "the daemon is not ready", 120)
            self.server.wait_for_blocked()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self):
        return self.process.pid

    def is_ready(self):
        self.check()
        try:
            return self.ask("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def check(self):
        if self.process.poll() is not None:
            said = self.log.read_text(errors="replace")
            raise RuntimeError(f"urlseen ended with status {self.process.returncode}:\n{said}")

    def ask(self, path):
        """Asks the admin endpoint. Returns the status and the body of its answer."""
        connection = http.client.HTTPConnection("urlseen", timeout=10)
        connection.sock = socket.socket(socket.AF_UNIX)
        try:
            connection.sock.connect(str(self.folder / "admin.sock"))
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def filter_bytes(self):
        return json.loads(self.ask("/status")[1])["filter"]["bytes"]

    def memory(self):
        """Returns the memory of the process in bytes: the peak, and the part without files."""
        sizes = process.memory(self.pid)
        return {"peak": sizes["VmHWM"], "anonymous": sizes["RssAnon"]}

    def run(self, stock):
        """Filters a copy of the stock.

        Returns the seconds, and the processor nanoseconds of the server and of each thread.
        """
        self.server.client.copy(stock, "waiting")
        process.forget_peak(self.pid)
        served, used = self.server.processor_time(), process.processor_time(self.pid)
        seconds = self.server.time_until_gone(SOURCE, "waiting", PROCESSING, watch=self.check)
        served = self.server.processor_time() - served
        used = process.processor_time(self.pid) - used
        return seconds, served, used


class Shared(Daemon):
    """Context with a daemon whose filter is in Redis. It has no storage folder and no socket."""

    def __init__(self, server, folder, filter):
        super().__init__(server, None, folder)
        self.settings = filter

    def __enter__(self):
        lines = ["[redis]", f'url = "unix://{self.server.socket}"', "[filter]", 'place = "redis"']
        for name, value in self.settings.items():
            lines.append(f"{name} = {json.dumps(value)}")
        self.config.write_text("\n".join(lines) + "\n")
        return self.start()

    def is_ready(self):
        self.check()
        return "the lease is taken" in self.log.read_text(errors="replace")
