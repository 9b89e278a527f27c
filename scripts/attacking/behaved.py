"""Well-behaved client, which knows every reply in advance."""

import threading
from contextlib import closing
from dataclasses import dataclass, field

from .wire import Error, Reader, Simple, connect, inline, matches, packed

KEY = b"demo"
OK, QUEUED = Simple("OK"), Simple("QUEUED")

# Commands that the daemon refuses, each with the start of its error. They change nothing.
REFUSED = [
    ([b"SADD", KEY], "ERR wrong number of arguments for 'sadd' command"),
    ([b"BF.EXISTS", KEY], "ERR wrong number of arguments for 'bf.exists' command"),
    ([b"BF.ADD", KEY, b"own", b"own"], "ERR wrong number of arguments for 'bf.add' command"),
    ([b"SISMEMBER", b"other", b"own"], "NOPERM urlseen answers only for the keys in serve.keys"),
    ([b"SADD", b"demo2", b"own"], "NOPERM urlseen answers only for the keys in serve.keys"),
    ([b"DEL", KEY], "NOPERM urlseen does not empty the filter"),
    ([b"GET", KEY], "ERR unknown command 'GET', with args beginning with: 'demo'"),
    ([b"POST", b"/"], "ERR unknown command 'POST'"),
    ([b"WATCH", KEY], "ERR unknown command 'WATCH'"),
    ([b"SELECT", b"3"], "ERR urlseen serves only database 0"),
    ([b"SELECT", b"99"], "ERR DB index is out of range"),
    ([b"BF.RESERVE", KEY, b"0.01", b"100"], "ERR item exists"),
    ([b"BF.RESERVE", KEY, b"2", b"100"], "ERR (0 < error rate range < 1)"),
    ([b"BF.RESERVE", KEY, b"0.1", b"none"], "ERR bad capacity"),
    ([b"BF.INSERT", KEY, b"WRONG", b"ITEMS", b"own"], "ERR unknown argument received"),
    ([b"BF.INFO", KEY, b"WRONG"], "Invalid information value"),
    ([b"CLIENT", b"WRONG"], "ERR unknown subcommand 'WRONG'"),
    ([b"HELLO", b"4"], "NOPROTO unsupported protocol version"),
]
# Commands that are errors outside a transaction.
ALONE = [
    ([b"EXEC"], "ERR EXEC without MULTI"),
    ([b"DISCARD"], "ERR DISCARD without MULTI"),
]
# Input that ends a connection, each with the last reply, if there is one.
ENDS = [
    (b"QUIT\r\n", OK),
    (packed(b"QUIT"), OK),
    (b"*1\r\n:1\r\n", Error("ERR Protocol error: expected '$', got ':'")),
    (b"*x\r\n", Error("ERR Protocol error: invalid multibulk length")),
    (b'PING "\r\n', Error("ERR Protocol error: unbalanced quotes in request")),
    (b"EHLO me\r\n", Error("ERR unknown command 'EHLO'")),
    (b"\x16\x03\x01\x02\r\n", Error("ERR unknown command '")),
    (b"POST /it's HTTP/1.1\r\n", None),
    (b"get / HTTP/1.0\r\n", None),
    (b"SADD demo HTTP/1.1\r\n", None),
    (b"Host: 127.0.0.1\r\n", None),
]


@dataclass
class Step:
    """Command, with the expected reply and the members that it changes."""

    command: bytes
    expected: object
    changes: list = field(default_factory=list)


class Behaved:
    """Client that sends valid commands and checks every reply.

    `model` has the members that only this client uses. `known` has the members that it shares with
    other clients. `others` is `None`, unless this client is alone. Then `others` is the number of
    members that are not its own, and the client forgets nothing. So it knows the number of all
    members.
    """

    def __init__(self, model, port, chance, known, stop, shared, password=None, others=None):
        self.model, self.port, self.chance, self.known = model, port, chance, known
        self.stop, self.shared, self.password, self.others = stop, shared, password, others
        self.version = 2

    def run(self):
        while not self.stop.is_set():
            with connect(self.port) as self.stream, closing(Reader(self.stream)) as self.reader:
                self.version = 2
                self.exchange(self.greeting())
                for _ in range(self.chance.randrange(1, 20)):
                    if not self.stop.is_set():
                        self.exchange(self.pipeline())
                if self.chance.random() < 0.7:
                    self.end()

    def exchange(self, steps):
        """Sends a pipeline in pieces, and checks each reply in order."""
        self.model.pending.extend(step.changes for step in steps)
        data = b"".join(step.command for step in steps)
        writing = threading.Thread(target=self.send, args=[data])
        writing.start()
        try:
            for step in steps:
                self.check(step, self.reader.reply())
        finally:
            writing.join()

    def check(self, step, reply):
        if not matches(step.expected, reply):
            expected = "something else" if callable(step.expected) else repr(step.expected)[:500]
            said = repr(reply)[:500]
            command = repr(step.command)[:500]
            raise AssertionError(f"the answer to {command} is {said}; {expected} was expected")
        self.model.answered()
        self.known.replies += 1

    def send(self, data):
        try:
            while data:
                size = self.chance.choice([1, 7, 100, 10_000, 100_000])
                self.stream.sendall(data[:size])
                data = data[size:]
        except OSError:
            # The reader also gets this error.
            pass

    def greeting(self):
        """Returns the first commands of a connection. Before the password, all are refused."""
        if not self.password:
            refusal = Error("ERR AUTH <password> called without any password configured")
            return [Step(packed(b"AUTH", b"wrong"), refusal)]
        steps = []
        if self.chance.random() < 0.5:
            member = self.model.spelling(1, self.chance)
            noauth = Error("NOAUTH ")
            steps += [Step(packed(b"SADD", KEY, member), noauth), Step(b"MULTI\r\n", noauth)]
            wrong = [b"wrong", self.password + b"1", self.password[:-1]]
            steps += [Step(packed(b"AUTH", it), Error("WRONGPASS ")) for it in wrong]
            steps.append(Step(b"PING\r\n", noauth))
        return [*steps, Step(packed(b"AUTH", b"default", self.password), OK)]

    def end(self):
        """Sends input that ends the connection. The daemon must not execute a later command."""
        command, last = self.chance.choice(ENDS)
        poison = packed(b"SADD", KEY, self.model.spelling(self.chance.randrange(100), self.chance))
        # Both are sent at once, because nothing can be sent on a closed connection.
        self.stream.sendall(command + poison)
        if last is not None:
            self.model.pending.append([])
            self.check(Step(command, last), self.reader.reply())
        if not self.reader.is_ended():
            raise AssertionError(f"the connection is still open after {command!r}")

    def pipeline(self):
        steps = []
        for _ in range(self.chance.randrange(1, 40)):
            kind = self.chance.randrange(12)
            if kind == 0:
                steps += self.transaction()
            elif kind == 1:
                steps.append(self.hello())
            elif kind == 2:
                words, said = self.chance.choice(ALONE)
                steps.append(Step(packed(*words), Error(said)))
            elif kind == 3 and self.others is None:
                steps.append(self.contended())
            else:
                steps.append(self.single())
        return steps

    def hello(self):
        version = self.chance.choice([2, 3])
        self.version = version
        says = lambda it: it.get(b"proto") == 3 if type(it) is dict else it[4:6] == [b"proto", 2]
        right = lambda it: type(it) is (dict if version == 3 else list) and says(it)
        return Step(packed(b"HELLO", b"%d" % version), right)

    def contended(self):
        """Makes a command that adds a member that other clients add, too.

        The member must be new to exactly one of the clients.
        """
        member = b"shared-%d" % self.chance.randrange(*self.shared)
        self.known.asked(member)

        kind = type(self.bloom(True))

        def right(reply):
            if type(reply) is not kind or reply not in (0, 1):
                return False
            self.known.told(member, bool(reply))
            return True

        return Step(packed(b"BF.ADD", KEY, member), right)

    def transaction(self):
        """Makes commands between MULTI and EXEC. The daemon executes all of them, or none."""
        count, fate = self.chance.randrange(5), self.chance.randrange(4)
        begin = [Step(b"MULTI\r\n", OK)]
        if fate == 0:
            words = packed(b"SADD", KEY, self.model.spelling(3, self.chance))
            return [*begin, *[Step(words, QUEUED)] * count, Step(b"DISCARD\r\n", OK)]
        if fate == 1:
            words = packed(b"SADD", KEY, self.model.spelling(5, self.chance))
            refused, said = self.chance.choice(REFUSED[:5])
            steps = [*begin, *[Step(words, QUEUED)] * count, Step(packed(*refused), Error(said))]
            return [*steps, Step(packed(b"EXEC"), Error("EXECABORT "))]
        steps = [self.single() for _ in range(count)]
        # A command that the daemon refuses at once would end the transaction.
        steps = [it for it in steps if not isinstance(it.expected, Error)]
        queued = [Step(step.command, QUEUED) for step in steps]
        changes = [change for step in steps for change in step.changes]
        return [*begin, *queued, Step(b"EXEC\r\n", [it.expected for it in steps], changes)]

    def single(self):
        """Makes a command that is permitted in a transaction."""
        kind = self.chance.randrange(14)
        if kind == 0:
            words, said = self.chance.choice(REFUSED)
            return Step(packed(*words), Error(said))
        if kind == 1:
            word = b"%d\r\n$:" % self.chance.randrange(1 << 60)
            return Step(packed(b"ECHO", word), word)
        if kind == 2:
            return self.count()
        if kind < 6:
            return self.test()
        # The number of forgotten members is not exact.
        return self.forget() if kind < 9 and self.others is None else self.add()

    def count(self):
        name = self.chance.choice([b"SCARD", b"BF.CARD"])
        if self.others is not None:
            return Step(packed(name, KEY), self.others + len(self.model.ahead))
        # Other clients add and forget members meanwhile.
        return Step(packed(name, KEY), lambda reply: type(reply) is int and reply >= 0)

    def members(self, most):
        count = self.chance.choice([1, 1, 2, 20, most])
        return self.model.some(self.chance, count)

    def spelled(self, name, members, *options):
        """Returns the bytes of a command with these members, as an array or sometimes as a line."""
        words = [self.model.spelling(member, self.chance) for member in members]
        pack = inline if len(members) < 5 and self.chance.random() < 0.2 else packed
        return pack(name, KEY, *options, *words)

    def bloom(self, is_so):
        """Returns the expected answer of a RedisBloom command that answers yes or no."""
        return bool(is_so) if self.version == 3 else int(is_so)

    def test(self):
        members = self.members(300)
        has = self.model.has(members)
        match self.chance.randrange(4):
            case 0:
                return Step(self.spelled(b"SISMEMBER", members[:1]), int(has[0]))
            case 1:
                return Step(self.spelled(b"SMISMEMBER", members), list(map(int, has)))
            case 2:
                return Step(self.spelled(b"BF.EXISTS", members[:1]), self.bloom(has[0]))
        return Step(self.spelled(b"BF.MEXISTS", members), list(map(self.bloom, has)))

    def forget(self):
        members = self.members(50)
        there = self.model.forget(members)
        return Step(self.spelled(b"SREM", members), sum(there), changes(members, False))

    def add(self):
        kind = self.chance.randrange(4)
        members = self.members(300)[: 1 if kind == 0 else None]
        command = [b"BF.ADD", b"SADD", b"BF.MADD", b"BF.INSERT"][kind]
        options = []
        if kind == 3:
            some = [[b"CAPACITY", b"10"], [b"NOCREATE"], [b"error", b"0.5", b"NonScaling"], []]
            options = [*self.chance.choice(some), b"ITEMS"]
        spelled = self.spelled(command, members, *options)
        new = self.model.add(members)
        bloom = list(map(self.bloom, new))
        expected = {0: bloom[0], 1: sum(new)}.get(kind, bloom)
        return Step(spelled, expected, changes(members, True))


def changes(members, is_there):
    """Returns the changes of a command, without unfiltered members: the filter never has them."""
    return [(member, is_there) for member in members if member >= 0]
