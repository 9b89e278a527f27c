"""Clients that send wrong input, or behave badly in other ways."""

import socket
import struct
import time

from .wire import connect, packed

KEY = b"demo"
REQUEST_BYTES = 1 << 20
ASKING = [b"SISMEMBER", b"SMISMEMBER", b"BF.EXISTS", b"BF.MEXISTS", b"SCARD", b"BF.INFO"]
SAYING = [b"PING", b"ECHO", b"COMMAND", b"INFO", b"HELLO", b"CLIENT", b"SELECT", b"AUTH", b"DEL"]
ADDING = [b"SADD", b"BF.ADD", b"BF.MADD", b"BF.INSERT", b"SREM"]
METHODS = [b"GET", b"POST", b"PUT", b"OPTIONS", b"patch", b"SADD", b"X-OTHER"]
# Members that requests of browsers try to add. The filter must never have them.
BROWSED = [b"browsed-%d" % number for number in range(100)]


class Noise:
    """Client that behaves badly in many ways."""

    def __init__(self, port, chance, adds, stop, password):
        self.port, self.chance, self.stop, self.password = port, chance, stop, password
        self.names = ASKING + SAYING + (ADDING if adds else [])
        self.held = []

    def run(self):
        kinds = [self.bytes, self.mutated, self.lengths, self.nested, self.vanishes, self.deaf]
        silent = connect(self.port)
        while not self.stop.is_set():
            try:
                self.chance.choice([*kinds, self.half_closed, self.browser, self.mutated])()
            except OSError:
                # The daemon has closed the connection, as it must.
                pass
        self.ended(silent)
        for stream in self.held:
            stream.close()

    def command(self):
        chance = self.chance
        words = [chance.choice(self.names)]
        words += [KEY] if chance.random() < 0.9 else []
        for _ in range(chance.choice([0, 1, 1, 1, 2, 5, 50])):
            url = b"https://example.com/noise/%d" % chance.randrange(10_000)
            other = b"noise-%s" % chance.randbytes(chance.randrange(20))
            words.append(chance.choice([url, other, b"ITEMS", b"CAPACITY", b"3"]))
        if chance.random() < 0.2:
            return b" ".join(words[:4]) + chance.choice([b"\r\n", b"\n"])
        return packed(*words)

    def greeting(self):
        """Returns the command with the password, or nothing."""
        knows = self.password and self.chance.random() < 0.5
        return packed(b"AUTH", self.password) if knows else b""

    def commands(self, most):
        count = self.chance.randrange(1, most)
        return self.greeting() + b"".join(self.command() for _ in range(count))

    def bytes(self):
        with connect(self.port) as stream:
            self.pieces(stream, self.chance.randbytes(self.chance.choice([1, 10, 1000, 100_000])))

    def mutated(self):
        data = bytearray(self.commands(50))
        for _ in range(self.chance.randrange(4)):
            at = self.chance.randrange(len(data))
            match self.chance.randrange(4):
                case 0:
                    data[at] = self.chance.randrange(256)
                case 1:
                    del data[at : at + self.chance.randrange(1, 9)]
                case 2:
                    data[at:at] = self.chance.choice([b"\r\n", b"*", b"$", b"-", b"\0", b"9" * 9])
                case 3:
                    data[at:at] = data[at : at + self.chance.randrange(100)]
            if not data:
                return
        with connect(self.port) as stream:
            self.pieces(stream, bytes(data))

    def lengths(self):
        number = self.chance.choice([-(2**63), -2, -1, 0, 2**20, 2**20 + 1, 2**31, 2**63, 10**40])
        with connect(self.port) as stream:
            begins = [b"*%d\r\n", b"*1\r\n$%d\r\n", b"*3\r\n$4\r\nSADD\r\n$%d\r\n"]
            begin = self.chance.choice(begins)
            self.pieces(stream, self.commands(5) + begin % number + self.chance.randbytes(1000))

    def nested(self):
        with connect(self.port) as stream:
            kind = self.chance.choice([b"*1\r\n", b"%1\r\n", b"~1\r\n", b"|1\r\n", b">1\r\n"])
            self.pieces(stream, kind * self.chance.choice([3, 1000, 100_000]))

    def vanishes(self):
        """Disconnects in the middle of a command, sometimes with a reset."""
        streams = [connect(self.port) for _ in range(self.chance.randrange(1, 20))]
        for stream in streams:
            data = self.commands(30)
            stream.sendall(data[: self.chance.randrange(len(data))])
        for stream in streams:
            if self.chance.random() < 0.5:
                linger = struct.pack("ii", 1, 0)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            stream.close()

    def half_closed(self):
        """Closes its side of the connection. The daemon must still answer all earlier questions."""
        count = self.chance.randrange(1, 200)
        with connect(self.port) as stream:
            knows = packed(b"AUTH", self.password) if self.password else b""
            stream.sendall(knows + packed(b"ECHO", b"here") * count)
            stream.shutdown(socket.SHUT_WR)
            said = self.rest(stream)
        if said != (b"+OK\r\n" if knows else b"") + b"$4\r\nhere\r\n" * count:
            raise AssertionError(f"{len(said)} bytes of answer after the close: {said[-100:]!r}")

    def browser(self):
        """Sends the request of a web page, with commands as its body. It must get no answer."""
        method = self.chance.choice(METHODS)
        lines = [method + b" /it's HTTP/1.1", b"Host: 127.0.0.1", b"Content-Type: text/plain", b""]
        lines += [b"SADD demo " + self.chance.choice(BROWSED) for _ in range(20)]
        with connect(self.port) as stream:
            stream.sendall(b"\r\n".join([*lines, b""]))
            if said := self.rest(stream):
                raise AssertionError(f"a browser got the answer {said!r}")

    @staticmethod
    def rest(stream):
        said = bytearray()
        while more := stream.recv(1 << 16):
            said += more
        return bytes(said)

    def ended(self, silent):
        """Waits until the daemon closes the connection of a silent client."""
        with silent:
            try:
                said = self.rest(silent)
            except ConnectionError:
                # The daemon was killed.
                return
        if said:
            raise AssertionError(f"a silent client got the answer {said!r}")

    def deaf(self):
        """Sends as much as the daemon accepts, the largest possible command first. Reads nothing."""
        stream = connect(self.port)
        self.held.append(stream)
        if len(self.held) > 2:
            self.held.pop(0).close()
        stream.setblocking(False)
        large = packed(b"ECHO", b"x" * (REQUEST_BYTES - 1000))
        command = self.chance.choice([b"COMMAND\r\n", packed(b"INFO"), large, self.command()])
        data = large[:-500], large[-500:] + command * ((2 << 20) // len(command) + 1)
        for part in data:
            end = time.monotonic() + 0.5
            while part and time.monotonic() < end and not self.stop.is_set():
                try:
                    part = part[stream.send(part) :]
                except BlockingIOError:
                    self.stop.wait(0.01)

    def pieces(self, stream, data):
        """Sends data in random pieces, and sometimes reads the replies."""
        pieces = self.chance.choice([1, 2, 10])
        cuts = sorted(self.chance.randrange(len(data) + 1) for _ in range(pieces - 1))
        for begin, end in zip([0, *cuts], [*cuts, len(data)]):
            stream.sendall(data[begin:end])
        if self.chance.random() < 0.5:
            stream.settimeout(self.chance.choice([0.001, 0.05]))
            while stream.recv(1 << 16):
                pass
