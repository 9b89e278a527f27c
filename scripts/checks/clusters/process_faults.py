"""Faults of the processes of urlseen."""

import threading
import time
from random import Random

import redis

from .crawl import LIST_LEASE
from .progress import say, until

#: Faults in the share in which they are drawn.
KINDS = ("kill_run",) * 3 + ("kill_router",) * 3
KINDS += ("pause_run", "replace_router", "stop", "cut_connections", "cut_off")


class ProcessFaults:
    """Draws faults of the processes and injects them, until those of the servers are done."""

    def __init__(self, group, crawl, network, seed, counts):
        self.group, self.crawl, self.network = group, crawl, network
        self.draw, self.counts = Random(f"{seed} processes"), counts

    def work(self, is_done: threading.Event, kinds):
        """Injects faults. In each round of these kinds, their order is another one."""
        while True:
            for kind in self.draw.sample(kinds, len(kinds)):
                if is_done.wait(self.draw.uniform(0, 0.8)):
                    return
                self.crawl.check()
                getattr(self, kind)()

    def kill(self, process):
        number = process.kill()
        self.counts["kills"] += 1
        say(f"killed: urlseen {process.words}")
        # Some processes wait until the lease of the killed one ends, which takes 15 s.
        if self.draw.random() < 0.7:
            self.crawl.drop_leases(number)
        process.start()

    def kill_run(self):
        self.kill(self.draw.choice(self.crawl.runs))

    def kill_router(self):
        self.kill((self.crawl_router() or self.crawl.routers)[0])

    def crawl_router(self):
        """Returns the routers, the active one first, or nothing while the list has no primary."""
        try:
            return self.crawl.router()
        except redis.RedisError:
            return None

    def stop(self):
        process = self.draw.choice(list(self.crawl.processes.values()))
        process.stop()
        process.start()
        self.counts["stops"] += 1
        say(f"stopped: urlseen {process.words}")

    def pause_run(self):
        process = self.draw.choice(self.crawl.runs)
        process.pause()
        time.sleep(self.draw.uniform(0.1, 2.5))
        process.resume()
        self.counts["pauses"] += 1
        say(f"paused: urlseen {process.words}")

    def replace_router(self):
        """Lets another router take over while the active one is paused with items on their way."""
        if not (routers := self.crawl_router()):
            return
        old, new = routers
        old.pause()
        self.crawl.drop_leases(old.running.pid)
        until("other router", lambda: self.crawl.holder(LIST_LEASE) == new.running.pid)
        old.resume()
        self.counts["pauses"] += 1
        say(f"paused: urlseen {old.words}; the other router has taken over")

    def cut_connections(self):
        """Closes all connections of a process to one server."""
        process = self.draw.choice(list(self.crawl.processes.values()))
        server = self.draw.choice(self.group.servers)
        closed = server.close_connections(process.host.address)
        self.counts["cuts"] += 1
        say(f"cut: {closed} connections of urlseen {process.words} to {server.node}")

    def cut_off(self):
        """Cuts a process off from all servers."""
        process = self.draw.choice(list(self.crawl.processes.values()))
        self.network.cut([process.host])
        time.sleep(self.draw.uniform(0.2, 3))
        self.network.heal([process.host])
        self.counts["cut-offs"] += 1
        say(f"cut off: urlseen {process.words}")
