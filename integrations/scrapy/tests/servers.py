"""The real programs that the tests talk to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

ROOT = Path(__file__).resolve().parents[3]
URLSEEN = Path(os.environ.get("URLSEEN", ROOT / "target/debug/urlseen"))


def until(condition: Callable[[], Any], what: str, seconds: float = 30) -> Any:
    """Waits for a condition."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.01)
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class RedisServer:
    """A redis-server of one's own, at a port."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self.port)
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--appendonly", "yes", *self._arguments],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )
        until(self._answers, f"redis-server at {self.port}")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Answers nobody meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        yield
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        self.stop()
        self.client.close()

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, "redis-server has ended"
        try:
            return bool(redis.Redis(port=self.port).ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False


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
        """One without a config.toml."""
        sets = {"redis.url": f"{server.url}/0", **settings}
        return cls(folder, *(f"--set={key}={value}" for key, value in sets.items()))

    @classmethod
    def of_config(cls, folder: Path) -> Daemon:
        """One with the config.toml in `folder`."""
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
        assert self._process.wait() == 0, self._log.read_text()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        if self._process.poll() is None:
            self.stop()

    def _is_ready(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        try:
            with socket.create_connection(self._admin) as admin:
                admin.sendall(b"GET /readyz HTTP/1.1\r\nHost: urlseen\r\n\r\n")
                return admin.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


class Asked:
    """`urlseen run` for those who ask, with no Redis."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        listen = f"--set=serve.listen=127.0.0.1:{self.port}"
        self.daemon = Daemon(folder, "--set=source.kind=none", listen)
        self.client = redis.Redis(port=self.port)

    def close(self) -> None:
        self.daemon.close()
        self.client.close()


class Proxy:
    """Stands before a server, and can lose its answers on their way back."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        #: How many answers from now on are lost, each with its connection.
        self.to_lose = 0
        #: What is answered instead, if anything.
        self.instead = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                asker, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(asker,), daemon=True).start()

    def _serve(self, asker: socket.socket) -> None:
        with asker, socket.create_connection(("127.0.0.1", self._to)) as server:
            while question := asker.recv(65536):
                server.sendall(question)
                answer = server.recv(65536)
                if self.to_lose and b"SADD" in question:
                    self.to_lose -= 1
                    asker.sendall(self.instead)
                    return
                asker.sendall(answer)
