"""Connection to Redis without a client library. It uses little processor time for a command."""

import socket


class Wire:
    """Connection that sends commands and returns replies, both as bytes of the protocol."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def ask(self, request):
        self.send(request)
        return self.reply()

    def send(self, request):
        self.socket.sendall(request)

    def reply(self):
        """Returns the bytes of the next reply."""
        while True:
            end = end_of_reply(self.rest, 0)
            if end:
                reply, self.rest = self.rest[:end], self.rest[end:]
                if reply.startswith(b"-"):
                    raise RuntimeError(reply.decode(errors="replace").strip())
                return reply
            came = self.socket.recv(1 << 20)
            if not came:
                raise RuntimeError("the server closed the connection")
            self.rest += came


def end_of_reply(bytes, begin):
    """Returns the end of the reply that starts at `begin`, or `None` if it is incomplete."""
    line = bytes.find(b"\r\n", begin) + 2
    if line < 2:
        return None
    sign, count = bytes[begin : begin + 1], bytes[begin + 1 : line - 2]
    if sign == b"$":
        end = line + int(count) + 2 if int(count) >= 0 else line
        return end if end <= len(bytes) else None
    if sign == b"*":
        for _ in range(max(0, int(count))):
            line = end_of_reply(bytes, line)
            if line is None:
                return None
    return line


def command(*words):
    """Returns the bytes of a command."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%s" % (len(words), b"".join(parts))
