"""Programs that run in the background, and a Redis server."""

import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import redis


@contextmanager
def running(command, is_ready):
    """Runs a program, waits until it is ready, and ends it at the end of the context."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)

        def runs_and_is_ready():
            if process.poll() is not None:
                log.seek(0)
                raise RuntimeError(f"{command[0]} ended:\n{log.read()}")
            return is_ready()

        try:
            wait_until(runs_and_is_ready, f"{command[0]} is not ready")
            yield process
        finally:
            process.terminate()
            process.wait()


@contextmanager
def redis_server(*arguments):
    """Runs a Redis server on a Unix socket in a temporary folder. It keeps nothing on disk."""
    with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as folder:
        path = Path(folder) / "redis.sock"
        client = redis.Redis(unix_socket_path=str(path), protocol=2)
        command = ["redis-server", "--port", 0, "--unixsocket", path, "--dir", folder]
        with running([*command, "--save", "", *arguments], lambda: answers(client)) as process:
            yield SimpleNamespace(socket=path, client=client, process=process)


def answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def wait_until(condition, otherwise, seconds=60):
    """Waits until `condition` is true. If it stays false, raises an error with `otherwise`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{otherwise} after {seconds} s")
        time.sleep(0.005)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def cpu_seconds(pid):
    """Returns the processor seconds of a process so far, including threads that have ended."""
    # The id of the clock of a process, as in clock_getcpuclockid(3).
    return time.clock_gettime(~pid << 3 | 2)
