"""Pushes items to a list at a steady rate, with single items that carry the time of their push.

    python -m benchmarks.feeder SOCKET KEY FILE ITEMS_PER_SECOND SECONDS

It runs as a separate process, so that it does not disturb the consumer of these items. At the end
it prints the rate that it reached.
"""

import hashlib
import itertools
import random
import sys
import time

from .wire import Wire, command

# Number of items in a push, about the number of links on a page.
CHUNK = 200
SEED = 1
# Mean seconds between two marked items.
PAUSE = 0.005
MARK = b"pushed at "


def marked():
    """Makes an unseen item with the present time, by a clock that all processes share."""
    now = time.monotonic_ns()
    fingerprint = hashlib.sha1(b"%d" % now).hexdigest().encode()
    return b"%s\t%s%d;" % (fingerprint, MARK, now)


def chunks(path):
    with open(path, "rb") as lines:
        while chunk := [line[:-1] for line in itertools.islice(lines, CHUNK)]:
            yield chunk


def main():
    socket, key, path, rate, seconds = sys.argv[1:]
    rate, seconds = float(rate), float(seconds)
    wanted = int(rate * seconds / CHUNK)
    # The commands are made in advance, so that the loop only sends.
    ready = [command("RPUSH", key, *chunk) for chunk in itertools.islice(chunks(path), wanted)]
    draw = random.Random(SEED).random
    with Wire(socket) as wire:
        begun = time.monotonic()
        next_mark = begun + PAUSE
        for number, push in enumerate(ready):
            due = begun + number * CHUNK / rate
            while True:
                now = time.monotonic()
                if now >= next_mark:
                    wire.ask(command("RPUSH", key, marked()))
                    next_mark = now + PAUSE * 2 * draw()
                if now >= due:
                    break
                time.sleep(min(due - now, 0.001))
            wire.ask(push)
        print(len(ready) * CHUNK / (time.monotonic() - begun))


if __name__ == "__main__":
    main()
