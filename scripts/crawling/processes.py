"""Programs of a crawl, each in its own process, and functions that wait for them."""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import redis

from .journal import Reader

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON_PATH = f"{HERE.parent}:{ROOT / 'integrations/scrapy/src'}"
POLL_S = 0.02
#: Longest time in seconds that a process runs between two checks before its kill.
MOMENT_S = 0.004


class Trouble(Exception):
    """An event did not come in time, or a program ended too early."""


def until(condition, what, seconds=60, watch=lambda: None):
    """Waits until a condition has a true value, and returns this value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        watch()
        if time.monotonic() > end:
            raise Trouble(f"waited {seconds} s for {what}")
        time.sleep(POLL_S)
    return found


class Process:
    """Context with a running program. At the end of the context, the program is killed."""

    def __init__(self, name, folder, command, environment=None, stdin=subprocess.DEVNULL):
        self.name = name
        self.log = Path(folder) / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], cwd=folder, stdin=stdin, stdout=log, stderr=log,
                env=os.environ | (environment or {}),
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def has_ended(self):
        return self.process.poll() is not None

    def check(self):
        """Raises an error if the program does not run."""
        if self.has_ended():
            raise Trouble(f"{self.name} ended with {self.process.returncode}:\n{self.said()}")

    def said(self):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])

    def end(self, seconds=60):
        """Asks the program to end, and waits for its end."""
        self.process.terminate()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Trouble(f"{self.name} does not end:\n{self.said()}") from None
        if status != 0:
            raise Trouble(f"{self.name} ended with {status}:\n{self.said()}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kill_when(self, condition, what, watch=lambda: None, seconds=60):
        """Stops the program (SIGSTOP) again and again, until the condition is true. Then kills it.

        While the program is stopped, it cannot change the condition.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            watch()
            self.check()
            self.process.send_signal(signal.SIGSTOP)
            until(self._is_stopped, f"{self.name} to stand still")
            if found := condition():
                self.kill()
                return found
            self.process.send_signal(signal.SIGCONT)
            time.sleep(random.uniform(0, MOMENT_S))
        raise Trouble(f"waited {seconds} s for {what}, to kill {self.name} then")

    def _is_stopped(self):
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"


class Web(Process):
    """Web server with the pages of sites, each site under its name."""

    def __init__(self, folder, sites):
        pages, port = Path(folder) / "pages", Path(folder) / "port"
        pages.mkdir()
        for site in sites:
            (pages / site.package).symlink_to(site.folder)
        self._fetched = Path(folder) / "fetched"
        command = [sys.executable, HERE / "web.py", pages, self._fetched, port]
        super().__init__("web", folder, command, stdin=subprocess.PIPE)
        until(port.exists, "the web server", watch=self.check)
        self.url = f"http://127.0.0.1:{port.read_text()}"

    def take_fetched(self):
        """Returns the URLs that were fetched since the last call, each with its status."""
        lines = self._fetched.read_text().splitlines() if self._fetched.exists() else []
        os.truncate(self._fetched, 0)
        fetched = (line.split(" ", 1) for line in lines)
        return [(self.url + path, int(status)) for status, path in fetched]


class Redis(Process):
    """Redis server that keeps nothing on disk."""

    #: Number of replicas for which the daemons wait.
    replicas = 0

    def __init__(self, folder):
        socket_file = Path(folder) / "redis.sock"
        command = ["redis-server", "--port", "0", "--unixsocket", socket_file, "--save", ""]
        super().__init__("redis", folder, command)
        self.url = f"unix://{socket_file}"
        self.client = redis.Redis(unix_socket_path=str(socket_file))
        until(self._answers, "redis-server", watch=self.check)

    def _answers(self):
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def names_of_clients(self):
        """Returns the names of all connections."""
        return {each["name"] for each in self.client.client_list()}

    def used(self):
        return self.client.info("memory")["used_memory"]

    def used_by(self, keys):
        """Returns the bytes of memory of some keys."""
        return sum(self.client.memory_usage(key, samples=0) or 0 for key in keys)


CONFIG = """\
[crawl]
name = "docs"
[redis]
url = "{redis}"
wait_replicas = {replicas}
[partitions]
count = {count}
run = "{run}"
[sink]
kind = "zset"
[held]
timeout = "3s"
# There are fewer kills, so no request is delivered too often and rejected.
deliveries = 20
"""


class Daemon(Process):
    """`urlseen run` for some partitions, with mostly default settings.

    `numbers` are the numbers of these partitions among the `count` partitions of the crawl. `rules`
    are tables for the end of the configuration.
    """

    def __init__(self, name, program, folder, redis, count, numbers, rules=""):
        self.numbers = numbers
        folder = Path(folder) / name
        folder.mkdir(exist_ok=True)
        storage = folder / "storage/docs"
        parts = [storage / str(number) for number in numbers] if count > 1 else [storage]
        self._sockets = [part / "admin.sock" for part in parts]
        run = f"{numbers[0]}-{numbers[-1]}" if count > 1 else "all"
        config = CONFIG.format(redis=redis.url, replicas=redis.replicas, count=count, run=run)
        (folder / "config.toml").write_text(config + rules)
        super().__init__(name, folder, [program, "run"])
        until(self.is_ready, f"{name} to be ready", watch=self.check)

    def statuses(self):
        """Returns the status of each partition."""
        return [json.loads(ask(admin, "/status")[1]) for admin in self._sockets]

    def is_ready(self):
        try:
            return all(ask(admin, "/readyz")[0] == 200 for admin in self._sockets)
        except (OSError, http.client.HTTPException):
            return False


def ask(admin, path):
    """Sends a request to the admin socket of a daemon. Returns the status and the body."""
    connection = http.client.HTTPConnection("urlseen", timeout=10)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(str(admin))
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


class Spider(Process):
    """Spider of the crawl, with its journal."""

    def __init__(self, number, folder, settings, scope, start, stays):
        self.journal = Reader(Path(folder) / f"journal-{number}")
        written = Path(folder) / f"settings-{number}.json"
        written.write_text(json.dumps(settings))
        stay = "stay" if stays else "end"
        command = [sys.executable, HERE / "spider.py", written, self.journal.path, stay, scope]
        environment = {"PYTHONPATH": PYTHON_PATH, "PYTHONDONTWRITEBYTECODE": "1"}
        super().__init__(f"spider-{number}", folder, [*command, *start], environment)

    def errors(self):
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if " ERROR: " in line or " CRITICAL: " in line]
