"""One server of Redis or Valkey."""

import shutil
import signal
import subprocess
from contextlib import contextmanager

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .progress import until

#: Redis writes to its file before it answers, so a killed server keeps what it acknowledged.
DURABLE = (
    *("--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"),
    *("--save", "", "--enable-debug-command", "yes"),
)
REPLICATED = (
    *("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"),
    *("--min-replicas-max-lag", "2"),
)


def runs(server):
    return server.process is not None and not server.is_paused


def connect(socket):
    """Makes a client without retries. A path of a socket is valid in all network namespaces."""
    return redis.Redis(
        unix_socket_path=str(socket),
        decode_responses=True,
        socket_timeout=3,
        retry=Retry(NoBackoff(), 0),
    )


class Server:
    """Server on a host, in a folder of its own."""

    def __init__(self, folder, host, port, command):
        folder.mkdir(parents=True)
        self.folder, self.host, self.port = folder, host, port
        self.command = [*command, "--port", port, "--bind", host.address]
        self.command += ["--protected-mode", "no", "--unixsocket", folder / "socket"]
        self.node = f"{host.address}:{port}"
        self.process, self.is_paused = None, False
        self._client = connect(folder / "socket")

    @property
    def client(self):
        """Returns a client. A server that was killed or paused answers with an error at once."""
        if not runs(self):
            raise redis.ConnectionError(f"{self.node} does not run")
        return self._client

    def run(self, *words):
        return self.client.execute_command(*words)

    def facts(self, section):
        return self.client.info(section)

    def close_connections(self, address):
        """Closes the connections of the clients at an address. Returns their number."""
        if not runs(self):
            return 0
        found = [it["id"] for it in self.client.client_list() if f"{address}:" in it["addr"]]
        return sum(self.client.client_kill_filter(_id=id) for id in found)

    def start(self, *more):
        log = (self.folder / "log").open("ab")
        command = [*self.command, *more]
        self.process = self.host.start(command, cwd=self.folder, stdout=log, stderr=log)
        until("server", lambda: self.run("PING"))

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.process, self.is_paused = None, False

    def pause(self):
        self.is_paused = True
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    @contextmanager
    def past(self):
        """Gives a client of another server that has the data of this server's file."""
        folder = self.folder / "past"
        shutil.copytree(self.folder / "appendonlydir", folder / "appendonlydir")
        command = [self.command[0], "--port", "0", "--unixsocket", folder / "socket", *DURABLE]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            client = connect(folder / "socket")
            until("server with the earlier data", client.ping)
            yield client
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder)
