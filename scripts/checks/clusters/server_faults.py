"""Faults of the servers. One fault ends before the next one begins."""

import time
from random import Random

from .cluster import size
from .crawl import LIST
from .progress import Trouble, say, until

#: Faults of any group of servers.
COMMON = ("kill_primary", "restart_primary", "pause_primary", "fail_over", "kill_replica", "lag")
COMMON += ("cut_off",)
#: Number of seconds within which a replica takes over after an order.
FAILOVER_S = 20


class ServerFaults:
    """Draws faults of the servers and injects them."""

    def __init__(self, group, crawl, network, seed, counts, oracle=None):
        """Compares datasets after each failover if there is an oracle."""
        self.group, self.crawl, self.network = group, crawl, network
        self.draw, self.counts, self.oracle = Random(f"{seed} servers"), counts, oracle

    def inject(self, kind):
        getattr(self, kind)()
        self.group.wait()

    def sleep(self, most):
        """Lets the crawl work for a random time while a fault lasts."""
        time.sleep(self.draw.uniform(0, most))

    def victim(self):
        """Draws a key. Returns it with its primary."""
        key = self.draw.choice(self.crawl.sources)
        if self.oracle is None and self.draw.random() < 0.3:
            key = LIST
        return key, self.group.primary_of(key)

    def replica(self):
        return self.draw.choice(self.group.replicas_of(self.victim()[1]))

    def wait_for_failover(self, key, old, patience=60):
        """Waits until another server is the primary of a key."""
        def primary():
            now = self.group.primary_of(key)
            return now if now is not old else None

        new = until("new primary", primary, patience)
        self.counts["failovers"] += 1
        return new

    def compare(self, old, new):
        """Notes what the new primary lacks. The old one must not take writes any more."""
        if self.oracle:
            say(f"  {new.node} lacks {self.oracle.compare(old, new)} items of {old.node}")

    def kill(self, server):
        server.kill()
        self.counts["kills"] += 1

    def kill_primary(self):
        key, old = self.victim()
        self.kill(old)
        new = self.wait_for_failover(key, old)
        say(f"killed: the primary {old.node}; {new.node} has taken over")
        self.compare(old, new)
        self.group.rejoin(old)

    def restart_primary(self):
        """Starts a killed primary again before or while its replica takes over."""
        _, old = self.victim()
        self.kill(old)
        if self.oracle is None:
            self.sleep(1.2)
        self.group.rejoin(old)
        say(f"killed and started: the primary {old.node}")

    def pause_primary(self):
        """Lets a primary come back that does not know of the failover."""
        key, old = self.victim()
        old.pause()
        new = self.wait_for_failover(key, old)
        say(f"paused: the primary {old.node}; {new.node} has taken over")
        if self.oracle:
            self.kill(old)
            self.compare(old, new)
            self.group.rejoin(old)
        else:
            old.resume()

    def fail_over(self):
        key, old = self.victim()
        for _ in range(3):
            self.group.order_failover(old)
            try:
                new = self.wait_for_failover(key, old, FAILOVER_S)
                break
            except Trouble:
                say(f"not failed over: {old.node}, ordered again")
        else:
            raise Trouble(f"{old.node} stays the primary")
        say(f"failed over: from {old.node} to {new.node}")

    def kill_replica(self):
        replica = self.replica()
        self.kill(replica)
        self.sleep(1)
        self.group.rejoin(replica)
        say(f"killed: the replica {replica.node}")

    def lag(self):
        replica = self.replica()
        replica.pause()
        self.sleep(2.5)
        replica.resume()
        self.counts["lags"] += 1
        say(f"lagged: the replica {replica.node}")

    def cut_off(self):
        """Cuts a primary off from the others, with or without one process of urlseen."""
        key, old = self.victim()
        hosts, beside = [old.host], ""
        if self.draw.random() < 0.6:
            process = self.draw.choice(list(self.crawl.processes.values()))
            hosts.append(process.host)
            beside = f" with urlseen {process.words}"
        self.network.cut(hosts)
        self.counts["cut-offs"] += 1
        new = self.wait_for_failover(key, old)
        self.sleep(2)
        if self.oracle:
            until("end of the writes", lambda: not self.group.is_up(old))
            self.compare(old, new)
        self.network.heal(hosts)
        say(f"cut off: the primary {old.node}{beside}; {new.node} has taken over")

    def lagged_failover(self):
        """Lets a replica take over that has not received the last writes."""
        key, old = self.victim()
        (new,) = self.group.replicas_of(old)
        self.network.cut([new.host])
        self.counts["cut-offs"] += 1
        time.sleep(self.draw.uniform(0.3, 1.5))
        # What a killed server has sent must not arrive any more.
        self.network.cut([old.host])
        self.kill(old)
        self.network.heal([new.host])
        self.wait_for_failover(key, old)
        self.compare(old, new)
        self.network.heal([old.host])
        self.group.rejoin(old)
        say(f"killed: the primary {old.node}; {new.node}, which lagged, has taken over")

    def reshard(self):
        """Moves many slots with redis-cli."""
        command = self.group.begin_reshard(self.draw.randint(300, 1500), self.draw)
        output, _ = command.communicate()
        if command.returncode != 0:
            raise Trouble(f"redis-cli --cluster reshard: {output.decode()[-1000:]}")
        slots = output.count(b"Moving slot ") // 2
        self.moved(slots, f"{slots} slots by redis-cli --cluster reshard")

    def move_slowly(self):
        """Moves the slot of one partition, and blocks it meanwhile."""
        key = self.draw.choice([LIST, *self.crawl.sources])
        slot, to = self.group.move_slot(key, self.draw, self.draw.uniform(0, 0.3))
        self.moved(1, f"slot {slot} to {to.node}, key by key")

    def move_atomically(self):
        slots, to = self.group.move_atomically(self.draw)
        self.moved(size(slots), f"slots {slots} to {to.node}, in one step")

    def moved(self, slots, words):
        self.counts["moves"] += 1
        self.counts["moved slots"] += slots
        say(f"moved: {words}")
        self.group.settle()
