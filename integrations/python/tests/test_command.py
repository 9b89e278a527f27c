"""The command in the wheel."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = str(shutil.which("urlseen"))
COMMANDS = [[COMMAND], [sys.executable, "-m", "urlseen"]]


@pytest.mark.parametrize("command", COMMANDS, ids=["urlseen", "python -m urlseen"])
def test_the_command_has_the_outputs_and_statuses_of_the_binary(command: list[str]) -> None:
    def status(*arguments: str, given: str = "") -> tuple[int, str]:
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            input=given,
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        return done.returncode, done.stdout

    assert status("--version")[1].startswith("urlseen ")
    assert status("filter", given="http://a/\nhttp://b/\nhttp://a/\n") == (
        0,
        "http://a/\nhttp://b/\n",
    )
    assert status("fingerprint", given="no/scheme\n")[0] == 1
    assert status("nonsense")[0] == 2
    assert status("storage", "show", "--storage", "/nonexistent")[0] == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_daemon_in_an_orderly_way(
    number: signal.Signals, tmp_path: Path, redis_url: str
) -> None:
    command = [COMMAND, "run", "--set", f"redis.url={redis_url}", "--set", "filter.capacity=1000"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "this daemon has taken the lease" not in (line := process.stderr.readline()):
        assert line, "the daemon has ended"
    process.send_signal(number)
    assert process.wait(30) == 0
    assert "asked to stop" in process.stderr.read()


def test_ctrl_c_ends_a_command_at_once(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [COMMAND, "filter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"http://a/\n" * 100_000)
    process.stdin.flush()
    assert process.stdout.readline() == b"http://a/\n"
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    assert process.wait(30) != 0
    assert time.monotonic() - started < 20
