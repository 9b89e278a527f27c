"""Connection to the address at which urlseen answers questions (`serve.listen`)."""

from __future__ import annotations

from typing import Any

from redis.connection import Connection, parse_url

from urlseen_scrapy.wire import Wire, without_retries


class Server:
    """Connection that asks urlseen about single fingerprints, under one key.

    `url` is the address, and `timeout_s` the maximum number of seconds for a connection or an
    answer. The constructor does not connect. It raises `ValueError` if `url` is invalid. Each
    method takes one round trip, and raises `Away` if urlseen does not answer, and `Refused` if
    urlseen refuses the question.
    """

    def __init__(self, url: str, key: str, timeout_s: float) -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
        except ValueError:
            # The text of this error may contain a part of the password.
            raise ValueError(
                "URLSEEN_URL cannot be read. Its form is redis://[[user]:password@]host[:port],"
                " rediss://… for TLS, or unix://[[user]:password@]/path. Write special characters"
                " of a password in the form %40"
            ) from None
        connection_class = options.pop("connection_class", Connection)
        self.name = str(
            options["path"]
            if "path" in options
            else f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
        )
        own: dict[str, Any] = {
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
            **without_retries(),
        }
        self._wire = Wire(connection_class(**{**own, **options}))
        self._key = key.encode()
        self._add = self._begin(b"SADD")
        self._remove = self._begin(b"SREM")

    def add(self, fingerprint: str) -> bool:
        """Adds a fingerprint (hex digits). Returns `True` if it was unseen."""
        return bool(self._wire.ask_packed(self._add + _bulk(fingerprint.encode())))

    def remove(self, fingerprint: str) -> bool:
        """Makes urlseen forget a fingerprint (hex digits). Returns `True` if it was seen."""
        return bool(self._wire.ask_packed(self._remove + _bulk(fingerprint.encode())))

    def check(self) -> None:
        """Checks that urlseen answers, and that it serves the key."""
        self._wire.ask_packed(b"*2\r\n" + _bulk(b"SCARD") + _bulk(self._key))

    def rules(self) -> tuple[str, str]:
        """Returns the rules of the crawl for URLs that are the same.

        They are the name of the list of tracking parameters, and the rules `[[same]]` as JSON.
        """
        info = self._wire.ask_packed(b"*1\r\n" + _bulk(b"INFO")).decode()
        found = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        return found.get("drop_tracking", "none"), found.get("same", "[]")

    def close(self) -> None:
        """Closes the connection. The next question opens a new one."""
        self._wire.close()

    def _begin(self, command: bytes) -> bytes:
        return b"*3\r\n" + _bulk(command) + _bulk(self._key)


def _bulk(text: bytes) -> bytes:
    """Returns a bulk string of Redis's protocol."""
    return b"$%d\r\n%b\r\n" % (len(text), text)
