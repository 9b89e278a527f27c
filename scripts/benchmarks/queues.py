"""Measurement of the cost of lists in Redis: push, pop, and waiting items."""

from itertools import islice

from .line import line
from .server import Server
from .wire import Wire, command

GROUP = "queues"
KEY = "list"


def measure(stock, rounds):
    """Returns lines with the cost of a push, of a pop, and of a waiting item."""
    lines = []
    with Server() as server:
        for batch in (1, 100):
            pushed, popped = zip(*(both(server, stock, batch) for _ in range(rounds)))
            lines.append(line(GROUP, f"RPUSH of {batch}", "server ns/item", pushed))
            lines.append(line(GROUP, f"LPOP of {batch}", "server ns/item", popped))
    with Server() as server:
        before = server.settled_memory()
        stock.load(server.socket, KEY)
        taken = (server.settled_memory() - before) / stock.count
    lines.append(line(GROUP, "an item that waits", "bytes beyond its own", [taken - stock.mean_bytes]))
    return lines


def both(server, stock, batch):
    """Pushes and pops all items. Returns the server's nanoseconds an item for push and pop."""
    with Wire(server.socket) as wire, open(stock.path, "rb") as lines:
        times = [server.processor_time()]
        calls = 0
        wire.send(command("CLIENT", "REPLY", "OFF"))
        while items := [item[:-1] for item in islice(lines, batch)]:
            wire.send(command("RPUSH", KEY, *items))
            calls += 1
        wire.ask(command("CLIENT", "REPLY", "ON"))
        times.append(server.processor_time())
        for _ in range(calls):
            wire.ask(command("LPOP", KEY, batch))
        times.append(server.processor_time())
    return [(end - begin) / stock.count for begin, end in zip(times, times[1:])]
