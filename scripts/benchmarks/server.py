"""Redis server on a Unix socket in a temporary folder. It keeps nothing on disk."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis

from .wire import Wire, command

POLL = 0.005
PATIENCE = 600


class Server:
    """Context with a running server."""

    def __init__(self, program="redis-server", arguments=()):
        self.program, self.arguments = program, arguments

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="urlseen-bench-"))
        self.socket = self.folder / "redis.sock"
        self.process = subprocess.Popen(
            [
                self.program, "--port", "0", "--unixsocket", self.socket, "--dir", self.folder,
                "--save", "", "--appendonly", "no", "--loglevel", "warning", *self.arguments,
            ],
            stdout=subprocess.DEVNULL,
        )
        self.client = redis.Redis(unix_socket_path=str(self.socket), protocol=2)
        wait_until(self.answers, "redis-server does not answer")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"redis-server ended with status {self.process.returncode}")
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    @property
    def version(self):
        return self.client.info("server")["redis_version"]

    def processor_time(self):
        """Returns the processor nanoseconds of the main thread so far."""
        used = self.client.info("cpu")
        # Redis before 7.0 shows only the sum of all threads. Its other threads are idle here.
        last = "_main_thread" if "used_cpu_user_main_thread" in used else ""
        return 1e9 * (used[f"used_cpu_user{last}"] + used[f"used_cpu_sys{last}"])

    def settled_memory(self):
        """Returns the memory of the data in bytes, after all hash tables have their final size."""
        # The buffers of connections must not count.
        self.client.connection_pool.disconnect()
        last = -1
        while (used := self.client.info("memory")["used_memory"]) != last:
            last = used
            time.sleep(1)
        return used

    def delete(self, *keys):
        """Deletes keys, and waits until their memory is free again."""
        self.client.unlink(*keys)
        is_free = lambda: self.client.info("memory")["lazyfree_pending_objects"] == 0
        wait_until(is_free, "the server does not free memory")

    def wait_for_blocked(self, count=1):
        """Waits until `count` clients wait for items of a list."""
        are_waiting = lambda: self.client.info("clients")["blocked_clients"] >= count
        wait_until(are_waiting, "no client waits for the source")

    def time_until_gone(self, source, begin, *keys, watch=lambda: None):
        """Renames `begin` to `source`, and returns the seconds until all the keys are gone.

        The method looks at the keys a few hundred times a second. The cost of these commands is too
        small to change the result. `watch` is called with each look.
        """
        ask = command("EXISTS", source, *keys)
        with Wire(self.socket) as wire:
            begun = time.perf_counter()
            wire.ask(command("RENAME", begin, source))
            while wire.ask(ask) != b":0\r\n":
                watch()
                if time.perf_counter() - begun > PATIENCE:
                    raise RuntimeError(f"the source was not empty after {PATIENCE} s")
                time.sleep(POLL)
            return time.perf_counter() - begun


def wait_until(condition, otherwise, seconds=60):
    """Waits until `condition` is true. If it stays false, raises an error with `otherwise`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"{otherwise} after {seconds} s")
        time.sleep(0.01)
