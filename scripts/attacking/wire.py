"""Both versions of Redis's protocol: commands as bytes, replies as values."""

import socket
from contextlib import closing

# Maximum number of seconds that a well-behaved client waits for an answer.
PATIENCE = 60


class Simple(str):
    """Simple string of the protocol."""


class Error(str):
    """Error of the protocol. An expected error has only the start of the error's text."""


def packed(*words):
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def inline(*words):
    """Returns a command as a line. Letters and digits are plain, other bytes are escaped."""
    byte = (b"%c", b"\\x%02x")
    quoted = (b"".join(byte[not chr(it).isalnum() or it > 127] % it for it in w) for w in words[1:])
    return words[0] + b"".join(b' "%s"' % word for word in quoted) + b"\r\n"


def connect(port):
    stream = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


class Reader:
    """Reader of the replies on a connection."""

    def __init__(self, stream):
        self.file = stream.makefile("rb")

    def close(self):
        """Closes the reader. Otherwise the connection would stay open."""
        self.file.close()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("no whole reply before the end")
        kind, text = line[:1], line[1:-2]
        match kind:
            case b"+":
                return Simple(text.decode())
            case b"-":
                return Error(text.decode(errors="replace"))
            case b":":
                return int(text)
            case b"#":
                return {b"t": True, b"f": False}[text]
            case b"_":
                return None
            case b"$":
                return None if text == b"-1" else self.bulk(int(text))
            case b"*":
                return [self.reply() for _ in range(int(text))]
            case b"%":
                return {self.reply(): self.reply() for _ in range(int(text))}
        raise AssertionError(f"not a reply: {line!r}")

    def bulk(self, size):
        data = self.file.read(size + 2)
        if len(data) < size + 2:
            raise ConnectionError("no whole reply before the end")
        if not data.endswith(b"\r\n"):
            raise AssertionError(f"a bulk string without an end: {data[-20:]!r}")
        return data[:-2]

    def is_ended(self):
        """Waits for the end of the connection. No other byte may come before the end."""
        return self.file.read(1) == b""


def matches(expected, reply):
    """Compares values and types: 1 is not `True`. Of an error, only the start must be equal."""
    if callable(expected):
        return expected(reply)
    if type(expected) is not type(reply):
        return False
    if isinstance(expected, Error):
        return reply.startswith(expected)
    if isinstance(expected, list):
        return len(expected) == len(reply) and all(map(matches, expected, reply))
    return expected == reply


def ask(port, password, *words):
    """Sends one command on a new connection."""
    with connect(port) as stream, closing(Reader(stream)) as reader:
        if password:
            stream.sendall(packed(b"AUTH", password))
            reader.reply()
        stream.sendall(packed(*words))
        return reader.reply()
