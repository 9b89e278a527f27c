"""Filters in memory, in a folder and in Redis."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from urlseen import Filter, fingerprint

KEYS = [f"key {number}" for number in range(1000)]


def test_a_filter_tells_whether_a_key_was_added() -> None:
    for kind in ("two-choice", "native", "exact", "redisbloom", "valkey-bloom"):
        seen = Filter(kind=kind)
        assert seen.add("a") and not seen.add("a")
        assert "a" in seen and "b" not in seen
        assert seen.add_many(["a", "b", "c", "b"]) == [False, True, True, False]
        assert seen.contains_many(iter(["c", "d"])) == [True, False]
        assert len(seen) == 3
        assert seen.forget("a") and not seen.forget("a")
        assert seen.forget_many(["b", "x"]) == [True, False]
        assert "a" not in seen and seen.add("a")
        seen.save()
        assert kind in repr(seen)


def test_a_key_is_text_or_a_digest(tmp_path: Path) -> None:
    digests = [fingerprint("https://example.com/"), bytes(16), bytes(32)]
    with Filter.open(tmp_path / "seen") as seen:
        for digest in digests:
            assert seen.add(digest) and seen.add(digest.hex()) and not seen.add(digest.hex())
        with pytest.raises(ValueError, match="16, 20 or 32 bytes, not 3"):
            seen.add(b"abc")
        for keys in (["a", 1], 7, "abc", digests[0]):
            for many in (seen.add_many, seen.contains_many, seen.forget_many):
                with pytest.raises(TypeError):
                    many(keys)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not str; put a single key into a list"):
            seen.add_many("abc")
        assert "a" not in seen and seen.forget(digests[0].hex())
    with Filter.open(tmp_path / "seen") as seen:
        assert seen.contains_many(digests) == [True] * 3
        assert seen.contains_many([digest.hex() for digest in digests]) == [False, True, True]


def test_a_filter_grows_and_keeps_all_keys() -> None:
    seen = Filter(1000, 1e-9, grow_to=1_000_000)
    numbers = [str(number) for number in range(100_000)]
    assert all(seen.add_many(numbers))
    assert all(seen.contains_many(numbers))
    assert len(seen) == 100_000


def test_wrong_parameters_raise_value_errors() -> None:
    for wrong, why in (
        (lambda: Filter(0), "capacity 0"),
        (lambda: Filter(error_rate=2.0), "error rate 2"),
        (lambda: Filter(10**9, 1e-12, grow_to=10**12), "raise error_rate, or lower grow_to"),
        (lambda: Filter(kind="cuckoo"), "cuckoo"),
        (lambda: Filter(1000, kind="exact"), "takes no capacity; it takes: "),
        (lambda: Filter(1000, kind="native", grow_to=2000), "takes no grow_to"),
        (lambda: Filter(kind="redisbloom", seed=1), "takes no seed"),
        (lambda: Filter(kind="scrapy-redis-bloomfilter"), "needs bit, which the Python package"),
        (lambda: Filter(kind="redisson"), "only in Redis; use Filter.open_redis"),
    ):
        with pytest.raises(ValueError, match=why) as raised:
            wrong()
        assert "filter." not in str(raised.value)
    for kind in ("native", "two-choice"):
        with pytest.raises(MemoryError, match="or lower capacity to"):
            Filter(10**12, kind=kind)
    assert Filter(1000, seed=7).add("a")


def test_the_numbers_of_a_filter_can_be_read() -> None:
    for kind in ("two-choice", "native", "redisbloom"):
        seen = Filter(1000, 1e-4, kind=kind)
        assert (seen.capacity >= 1000, seen.error_rate, seen.fill) == (True, 1e-4, 0.0)
        seen.add_many(KEYS[:500])
        assert 0 < seen.fill <= 0.6 and 1000 < seen.memory < 2**25
        numbers = f"capacity {seen.capacity}, error_rate 1e-4, fill 0.", f"memory {seen.memory}"
        assert all(number in repr(seen) for number in numbers)
    assert Filter(kind="exact").error_rate == 0
    seen.close()
    assert "not open" in repr(seen)


def test_a_folder_keeps_the_keys(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    with Filter.open(folder, 1000, 1e-6) as seen:
        assert all(seen.add_many(KEYS))
        with pytest.raises(OSError, match=f"in use by process {os.getpid()}"):
            Filter.open(folder)
    for closed in (lambda: seen.add("a"), lambda: "a" in seen, lambda: len(seen), seen.save):
        with pytest.raises(ValueError, match="is closed"):
            closed()
    seen.close()
    # Without parameters, the folder has those with which it was made.
    with Filter.open(folder) as seen:
        assert len(seen) == 1000 and not any(seen.add_many(KEYS))
        assert seen.forget(KEYS[0])
    with pytest.raises(ValueError, match=": error_rate is .*, or remove the folder$"):
        Filter.open(folder, 1000, 1e-3)
    with Filter.open(str(folder), 1000, 1e-6) as seen:
        assert seen.contains_many(KEYS[:2]) == [False, True]
    (folder / "header").write_text("nonsense")
    with pytest.raises(OSError, match="header"):
        Filter.open(folder)


def test_a_filter_cannot_be_copied_or_pickled(tmp_path: Path) -> None:
    with Filter.open(tmp_path / "seen") as seen:
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot pickle"):
                attempt(seen)


def test_a_child_process_is_refused_and_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    seen = Filter.open(folder)
    seen.add("a")
    child = os.fork()
    if child == 0:
        try:
            seen.add("b")
            os._exit(1)
        except RuntimeError as error:
            is_told = "before a fork" in str(error)
        seen.close()
        del seen
        os._exit(0 if is_told else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert seen.add("c")
    seen.close()
    with Filter.open(folder) as seen:
        assert seen.contains_many(["a", "b", "c"]) == [True, False, True]


def test_threads_share_a_filter() -> None:
    seen, new = Filter(100_000), []
    threads = [
        threading.Thread(target=lambda: new.append(sum(map(seen.add, KEYS)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(new) == len(KEYS) == len(seen)


def test_a_filter_in_redis_is_shared(redis_url: str) -> None:
    with (
        Filter.open_redis(redis_url, "demo:filter", 10_000, 1e-6) as one,
        Filter.open_redis(redis_url, "demo:filter", 10_000, 1e-6) as other,
    ):
        assert one.add("a") and not other.add("a")
        assert other.add_many(["a", "b"]) == [False, True]
        assert one.contains_many(["b", "c"]) == [True, False]
        with pytest.raises(TypeError, match="in Redis"):
            len(one)
        with pytest.raises(TypeError, match="in Redis"):
            one.forget("a")
        one.save()
        assert (one.capacity, one.error_rate) == (10_000, 1e-6)
        assert "capacity 10000, error_rate 1e-6>" in repr(one)
    with pytest.raises(ValueError, match="only in memory; use Filter or Filter.open"):
        Filter.open_redis(redis_url, "demo:filter", kind="two-choice")
    with pytest.raises(ValueError, match=": capacity is 20000"):
        Filter.open_redis(redis_url, "demo:filter", 20_000, 1e-6)


def test_a_redis_that_is_away_is_a_connection_error() -> None:
    with pytest.raises(ConnectionError):
        Filter.open_redis("redis://127.0.0.1:1", "demo:filter")
    with pytest.raises(ValueError):
        Filter.open_redis("nonsense", "demo:filter")


def test_ctrl_c_reaches_python_during_a_crawl(tmp_path: Path) -> None:
    # A shell that runs the tests in the background lets its programs ignore Ctrl-C.
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import urlseen; urlseen.Filter(); os.kill(os.getpid(), signal.SIGINT)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], check=False, stderr=subprocess.PIPE, text=True
    )
    assert process.returncode == -signal.SIGINT and "KeyboardInterrupt" in process.stderr
