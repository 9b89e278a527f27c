"""Real servers for the tests."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis

from scripts import prefix
from urlseen import fingerprint

FORMS = ["w3lib-2.4", "w3lib-2.5"]
#: Canonical form of the w3lib in this environment, which all commands have unless a test sets another.
FORM = FORMS[[*map(int, version("w3lib").split(".")[:2])] >= [2, 5]]
os.environ["URLSEEN_FINGERPRINT__CANONICAL"] = FORM
#: URL of the field `probe` of a crawl record.
PROBE = "https://example.com/?b=2&a=1"
ROOT = Path(__file__).resolve().parents[4]
URLSEEN = Path(os.environ.get("URLSEEN", ROOT / "target/debug/urlseen"))


#: Maximum number of seconds that a test waits for a condition.
PATIENCE_S = float(os.environ.get("TEST_PATIENCE_S", "30"))


def until(condition: Callable[[], Any], what: str) -> Any:
    """Waits until a condition is true."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.01)
    return found


#: Maximum number of seconds that a test waits for the end of a process.
END_S = 100.0

#: Sockets that reserve ports. Servers can listen there, but no other program gets the port.
_claims: list[socket.socket] = []


def free_port() -> int:
    """Reserves a port for a server of the tests, until this process ends."""
    claim = socket.socket()
    claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    claim.bind(("127.0.0.1", 0))
    _claims.append(claim)
    return int(claim.getsockname()[1])


class RedisServer:
    """Redis server of one test, which listens at `port`."""

    def __init__(self, folder: Path, *arguments: str, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        # No test waits for an answer for ever.
        self.client = redis.Redis(port=self.port, socket_timeout=END_S)
        self.start()

    def start(self) -> None:
        # The port is reserved only at this address.
        address = ["--bind", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            ["redis-server", *self._arguments, *address, "--appendonly", "yes"],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )
        until(self._answers, f"redis-server at {self.port}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(END_S)
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Pauses the server during the context, so that it does not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        # A server that shuts down can wait for ever for its replica, if it is replaced meanwhile.
        self.stop(signal.SIGKILL)
        self.client.close()

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, "redis-server has ended"
        try:
            return bool(redis.Redis(port=self.port).ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False


def write_record(client: redis.Redis, **fields: str | int) -> dict[str, str]:
    """Writes the crawl record of the crawl `demo`, for a test without a daemon."""
    record = {
        "protocol": "2",
        "urlseen": "0.1.0",
        "source": "demo:discovered",
        "push": "RPUSH",
        "sink": "demo:unseen",
        "sink_kind": "list",
        "pop": "LEFT",
        "emit": "item",
        "algorithm": "scrapy",
        "keep_fragments": "false",
        "canonical": "w3lib-2.5",
        "drop_tracking": "none",
        "same": "[]",
        "rejects": "demo:rejected",
        "forget": "demo:forget",
        "deliveries": "3",
        "held_timeout_ms": "60000",
        "partitions": "1",
        **{name: str(value) for name, value in fields.items()},
    }
    record.setdefault("probe", fingerprint(PROBE, algorithm=record["algorithm"]).hex())
    tagged = prefix(record["source"])
    record.setdefault("processing", f"{tagged}:processing")
    with client.pipeline(transaction=True) as pipe:
        pipe.delete(f"{tagged}:crawl")
        pipe.hset(f"{tagged}:crawl", mapping=record)
        pipe.execute()
    return record


class Daemon:
    """`urlseen run` for the crawl `demo`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._command = [str(URLSEEN), "run", *arguments]
        self._admin = ("127.0.0.1", free_port())
        self._log = folder / "urlseen.log"
        self.start()

    @classmethod
    def of_settings(cls, folder: Path, server: RedisServer, settings: dict[str, Any]) -> Daemon:
        """Starts a daemon without a config.toml."""
        sets = {"redis.url": f"{server.url}/0", **settings}
        return cls(folder, *(f"--set={key}={value}" for key, value in sets.items()))

    @classmethod
    def of_config(cls, folder: Path) -> Daemon:
        """Starts a daemon with the config.toml in `folder`."""
        return cls(folder)

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stderr=log,
                stdout=log,
                cwd=self._folder,
                env={**os.environ, "URLSEEN_ADMIN__LISTEN": "{}:{}".format(*self._admin)},
            )
        until(self._is_ready, "urlseen to be ready")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            assert self._process.wait(END_S) == 0, self._log.read_text()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"urlseen did not end: {self._log.read_text()}") from None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(END_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self.stop()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            with socket.create_connection(self._admin) as admin:
                admin.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return admin.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


class Asked:
    """`urlseen run` that only answers questions, without Redis."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        listen = f"--set=serve.listen=127.0.0.1:{self.port}"
        self.daemon = Daemon(folder, "--set=source.kind=none", listen, *arguments)
        self.client = redis.Redis(port=self.port)

    def close(self) -> None:
        self.daemon.close()
        self.client.close()


class Proxy:
    """Proxy to a server. It can lose a question or an answer, and then ends the connection."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port = int(self._listener.getsockname()[1])
        self.url = f"redis://127.0.0.1:{self.port}"
        #: The proxy loses only questions that contain these bytes, or the answers to them.
        self.about = b"SADD"
        #: Number of such questions or answers that the proxy will lose.
        self.to_lose = 0
        #: `True` if the proxy loses questions, `False` if it loses only their answers.
        self.loses_question = False
        #: Function that the proxy calls at a loss.
        self.action: Callable[[], object] | None = None
        #: Answer that the client gets at a loss. Empty if the client gets no answer.
        self.instead = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def lose(self, about: bytes, what: str, action: Callable[[], object] | None = None) -> None:
        """Loses the next question that contains `about`, or its answer.

        `what` is `question` or `answer`.
        """
        self.about, self.loses_question = about, what == "question"
        self.action = action
        self.to_lose = 1

    def lead_to(self, port: int) -> None:
        """Ends all connections. From now on, clients are connected to another server."""
        with self._lock:
            self._to = port
            for connection in self._open:
                # The client may have ended the connection itself just now.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                asker, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(asker,), daemon=True).start()

    def _serve(self, asker: socket.socket) -> None:
        with asker:
            with self._lock:
                self._open.add(asker)
                to = self._to
            try:
                with socket.create_connection(("127.0.0.1", to)) as server:
                    self._pass_on(asker, server)
            except OSError:
                pass
            finally:
                with self._lock:
                    self._open.discard(asker)

    def _pass_on(self, asker: socket.socket, server: socket.socket) -> None:
        is_lost = False
        while True:
            # A long question arrives in parts. The answer comes after the last part.
            ready, _, _ = select.select([asker, server], [], [])
            if asker in ready:
                if not (question := asker.recv(1 << 20)):
                    return
                if self._is_lost(question):
                    if self.loses_question:
                        return self._lose(asker)
                    is_lost = True
                server.sendall(question)
            if server in ready:
                if not (answer := server.recv(1 << 20)):
                    return
                if is_lost:
                    return self._lose(asker)
                asker.sendall(answer)

    def _is_lost(self, question: bytes) -> bool:
        if not self.to_lose or self.about not in question:
            return False
        self.to_lose -= 1
        return True

    def _lose(self, asker: socket.socket) -> None:
        if self.action is not None:
            self.action()
        if self.instead:
            asker.sendall(self.instead)
