"""Servers of the tests."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """Starts a Redis server with a Unix socket."""
    socket = tmp_path / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", ""]
    process = subprocess.Popen([*command, "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            assert process.poll() is None, "redis-server has ended"
            time.sleep(0.01)
        yield f"unix://{socket}"
    finally:
        process.kill()
        process.wait()
