"""Lines about the progress, and waits for conditions."""

import time

import redis

BEGIN = time.monotonic()
PATIENCE_S = 90


class Trouble(Exception):
    """Reason why a run failed."""


def say(words):
    print(f"{time.monotonic() - BEGIN:7.1f} s  {words}", flush=True)


def until(what, is_true, patience=PATIENCE_S):
    """Waits until the function returns a true value, and returns it. Ignores errors of Redis."""
    end, last = time.monotonic() + patience, None
    while True:
        try:
            if found := is_true():
                return found
        except redis.RedisError as error:
            last = error
        if time.monotonic() > end:
            raise Trouble(f"no {what} within {patience} s; the last error was: {last}")
        time.sleep(0.02)
