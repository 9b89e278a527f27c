"""Crawl with 16 partitions: the processes of urlseen, and their keys."""

import json
import signal

import redis

from .progress import Trouble, say, until

PARTITIONS, LIST = 16, "demo:discovered"
LIST_KEYS = (LIST, f"urlseen:{{{LIST}}}:processing")

#: Message of a process that was stopped and could not release a lease.
AWAY = "urlseen: stopped while Redis was away"

#: Deletes a lease of a process that was killed.
DROP_LEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class Process:
    """Process of urlseen on a host of its own."""

    def __init__(self, host, command, log):
        self.host, self.command, self.log = host, command, log
        self.words = " ".join(command[1:])
        self.running = None

    def start(self):
        log = self.log.open("ab")
        self.running = self.host.start(
            self.command, cwd=self.log.parent, stdout=log, stderr=log
        )

    def kill(self):
        """Kills the process. Returns its number."""
        self.check()
        self.running.kill()
        self.running.wait()
        return self.running.pid

    def stop(self):
        """Stops the process, which must end without an error, or because a server is away."""
        self.check()
        self.running.send_signal(signal.SIGTERM)
        if self.running.wait() and AWAY not in self.log.read_text()[-3000:]:
            self.fail()

    def pause(self):
        self.running.send_signal(signal.SIGSTOP)

    def resume(self):
        self.running.send_signal(signal.SIGCONT)

    def check(self):
        if self.running.poll() is not None:
            self.fail()

    def fail(self):
        code, log = self.running.returncode, self.log.read_text()[-1500:]
        raise Trouble(f"urlseen {self.words} ended with status {code}:\n{log}")


class Crawl:
    """All processes of urlseen of one crawl."""

    def __init__(self, folder, program, network, group, wait, place, items):
        self.group = group
        folder.mkdir()
        (folder / "config.toml").write_text(
            f'[redis]\nurl = "{group.url}"\nwait_replicas = {wait}\n'
            f"[source]\nbatch = 100\n[partitions]\ncount = {PARTITIONS}\n"
            f'[filter]\nplace = "{place}"\ncapacity = {max(1_000_000, items)}\n'
            'error_rate = 1e-9\n[log]\nprogress = "0s"\n'
        )
        standby = ["--standby"] if place == "redis" else []
        commands = {
            "first": ["run", "--set", "partitions.run=0-7", *standby],
            "second": ["run", "--set", "partitions.run=8-15", *standby],
            "router": ["route", "--standby"],
            "other-router": ["route", "--standby"],
        }
        self.processes = {
            name: Process(network.host(), [program, *words], folder / f"{name}.log")
            for name, words in commands.items()
        }
        self.runs = [self.processes["first"], self.processes["second"]]
        self.routers = [self.processes["router"], self.processes["other-router"]]

    def __enter__(self):
        return self

    def begin(self):
        """Starts all processes, and waits for the partition table."""
        for process in self.processes.values():
            process.start()
        record = f"urlseen:{{{LIST}}}:crawl"
        primary = self.group.primary_of(record)
        tags = until("partition table", lambda: primary.client.hget(record, "tags"))
        self.tags = tags.split(",")
        self.sources = [f"{LIST}:{{{tag}}}" for tag in self.tags]

    def lists(self):
        """Returns all lists of the partitions, in the order in which items pass them."""
        kinds = (f"{LIST}:{{}}", f"urlseen:{LIST}:{{}}:processing", "demo:unseen:{}", "demo:rejected:{}")
        kinds = [kind.replace("{}", "{{{}}}") for kind in kinds]
        return [kind.format(tag) for kind in kinds for tag in self.tags]

    def is_replicated(self):
        """Returns true if replicas have a batch of each partition."""
        states, known = [f"urlseen:{source}:state" for source in self.sources], set()
        for primary in self.group.primaries():
            for replica in self.group.replicas_of(primary):
                pipe = replica.client.pipeline(transaction=False)
                pipe.execute_command("READONLY")
                for state in states:
                    pipe.hget(state, "seq")
                pipe.execute_command("READWRITE")
                heads = pipe.execute(raise_on_error=False)[1:-1]
                known |= {state for state, head in zip(states, heads) if isinstance(head, str)}
        return len(known) == len(states)

    def waiting(self):
        """Counts the items that are not yet through."""
        keys = [*LIST_KEYS, *self.lists()[: 2 * PARTITIONS]]
        return sum(found for _, found in self.ask("LLEN", keys))

    def found(self):
        """Returns the items in all sinks, and those that were rejected."""
        sinks = self.lists()[2 * PARTITIONS :]
        return [it for key, items in self.ask("LRANGE", sinks, 0, -1) for it in read(key, items)]

    def ask(self, command, keys, *words):
        """Sends a command for each key to the primary that has it. Returns keys and answers."""
        answers = []
        for server in self.group.primaries():
            answers += ask(server.client, command, keys, *words)
        if len(answers) != len(keys):
            raise redis.RedisError(f"{len(answers)} of {len(keys)} keys were found")
        return answers

    def router(self):
        """Returns the router that has the lease of the list, and the other one."""
        holder = self.holder(LIST_LEASE)
        held = [it for it in self.routers if it.running.pid == holder]
        if not held:
            return None
        return held[0], next(it for it in self.routers if it is not held[0])

    def holder(self, key):
        """Returns the number of the process that has a lease."""
        server = self.group.primary_of(key)
        lease = server and server.client.get(key)
        return json.loads(lease.partition(" ")[2])["pid"] if lease else None

    def drop_leases(self, number):
        """Deletes the leases of a process that was killed, so that no other waits for their end."""
        for key in (LIST_LEASE, *(f"urlseen:{source}:lease" for source in self.sources)):
            until("lease", lambda: self.drop_lease(key, number))

    def drop_lease(self, key, number):
        if not (server := self.group.primary_of(key)):
            return False
        lease = server.client.get(key)
        if lease and json.loads(lease.partition(" ")[2])["pid"] == number:
            server.client.eval(DROP_LEASE, 1, key, lease)
        return True

    def check(self):
        for process in self.processes.values():
            process.check()

    def end(self):
        """Waits until all items are through, and stops all processes."""
        until("empty lists", lambda: self.check() or self.waiting() == 0)
        for process in self.processes.values():
            process.stop()
        say("all items are through")

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.running:
                process.running.kill()
                process.running.wait()


LIST_LEASE = f"urlseen:{{{LIST}}}:lease"


def ask(client, command, keys, *words):
    """Sends a command for each key to a server. Returns the keys that it has, with its answers."""
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.execute_command(command, key, *words)
    answers = zip(keys, pipe.execute(raise_on_error=False))
    return [it for it in answers if not isinstance(it[1], redis.RedisError)]


def read(key, items):
    """Returns the items of a list. A reject contains its item."""
    return [json.loads(it)["item"] for it in items] if "rejected" in key else items
