"""Daemon that answers clients of Redis, for scripts that test it."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAID = re.compile(r"clients can use the Redis protocol at 127\.0\.0\.1:(\d+)")
START_SECONDS = 30


def build():
    """Builds the same debug program as `cargo test`. Returns its path."""
    return Path(subprocess.check_output([ROOT / "scripts/checks/program"], text=True).strip())


class Daemon:
    """`urlseen run` without a source, on a free port, with a new storage folder."""

    def __init__(self, program, *settings, password=None):
        self.folder = tempfile.TemporaryDirectory(prefix="urlseen-served-")
        storage = Path(self.folder.name, "storage")
        own = ["source.kind=none", "serve.listen=127.0.0.1:0", f"storage.dir={storage}"]
        sets = [word for setting in (*own, *settings) for word in ("--set", setting)]
        self.command = [program, "run", *sets]
        self.log = Path(self.folder.name, "log")
        self.password = password
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        self.folder.cleanup()

    def start(self):
        own = {"URLSEEN_SERVE_PASSWORD": self.password} if self.password else {}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.command, stderr=log, env=os.environ | own)
        deadline = time.monotonic() + START_SECONDS
        while not (said := SAID.search(self.log.read_text())):
            self.check_alive()
            if time.monotonic() > deadline:
                raise AssertionError(f"the daemon does not start: {self.log.read_text()}")
            time.sleep(0.01)
        self.port = int(said[1])

    def check_alive(self):
        if (status := self.process.poll()) is not None:
            said = self.log.read_text()[-4000:]
            raise AssertionError(f"the daemon ended with status {status}: {said}")
        if "panicked" in (said := self.log.read_text()):
            raise AssertionError(f"the daemon panicked: {said[-4000:]}")

    def kill(self):
        """Kills the daemon with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def most_memory(self):
        """Returns the peak of the daemon's memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10
