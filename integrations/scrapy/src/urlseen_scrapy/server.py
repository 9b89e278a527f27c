"""One connection to urlseen's `[serve]` address."""

from __future__ import annotations

from typing import Any

from redis.connection import Connection, parse_url

from urlseen_scrapy.wire import Wire, without_retries


class Server:
    """Asks about the fingerprints under one key, one at a time, each in one round trip."""

    def __init__(self, url: str, key: str, timeout_s: float) -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
        except ValueError:
            # The error's own text may hold a part of the password.
            raise ValueError(
                "URLSEEN_URL cannot be read; it is redis://[[user]:password@]host[:port],"
                " rediss://… for TLS or unix://[[user]:password@]/path, with special characters"
                " of a password written as %40"
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
        """Adds a fingerprint. Returns `True` if it was not there."""
        return bool(self._wire.ask_packed(self._add + _bulk(fingerprint.encode())))

    def remove(self, fingerprint: str) -> bool:
        """Forgets a fingerprint. Returns `True` if it was there."""
        return bool(self._wire.ask_packed(self._remove + _bulk(fingerprint.encode())))

    def check(self) -> None:
        """Raises an error if urlseen does not answer for the key."""
        self._wire.ask_packed(b"*2\r\n" + _bulk(b"SCARD") + _bulk(self._key))

    def close(self) -> None:
        """Ends the connection; the next question makes another."""
        self._wire.close()

    def _begin(self, command: bytes) -> bytes:
        return b"*3\r\n" + _bulk(command) + _bulk(self._key)


def _bulk(text: bytes) -> bytes:
    """Returns a bulk string of Redis's protocol."""
    return b"$%d\r\n%b\r\n" % (len(text), text)
