"""One connection to urlseen's `[serve]` address."""

from __future__ import annotations

from typing import Any

from redis import exceptions
from redis.backoff import NoBackoff
from redis.connection import Connection, parse_url
from redis.retry import Retry

#: Errors that pass by themselves: nothing was done, and the same question may be asked again.
PASSING = (
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
)
#: The same, where redis-py has no class for them.
PASSING_WORDS = ("BUSY ", "MISCONF ", "NOREPLICAS ", "TRYAGAIN ")
#: What no waiting mends, although redis-py counts it among the errors of a connection.
REFUSING = (exceptions.AuthenticationError, exceptions.AuthorizationError)


class Away(Exception):
    """No answer. `sent` says that the question may have been carried out all the same."""

    def __init__(self, reason: BaseException, *, sent: bool) -> None:
        super().__init__(str(reason))
        self.sent = sent


class Refused(Exception):
    """An answer that says no, and would say so again."""


class Server:
    """Asks about the fingerprints under one key, one at a time, each in one round trip.

    It has a connection of its own instead of a client with a pool, which would take three times
    as long for each question as this does.
    """

    def __init__(self, url: str, key: str, timeout_s: float) -> None:
        try:
            options: dict[str, Any] = dict(parse_url(url))
        except ValueError:
            # What it says may hold a part of the password.
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
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }
        self._connection = connection_class(**{**own, **options})
        self._is_connected = False
        self._key = key.encode()
        self._add = self._begin(b"SADD")
        self._remove = self._begin(b"SREM")

    def add(self, fingerprint: str) -> bool:
        """Adds it; `True` if it was not there."""
        return bool(self._ask(self._add + _bulk(fingerprint.encode())))

    def remove(self, fingerprint: str) -> bool:
        """Forgets it; `True` if it was there."""
        return bool(self._ask(self._remove + _bulk(fingerprint.encode())))

    def check(self) -> None:
        """Fails unless the key can be asked about."""
        self._ask(b"*2\r\n" + _bulk(b"SCARD") + _bulk(self._key))

    def close(self) -> None:
        """Ends the connection; the next question makes another."""
        self._is_connected = False
        self._connection.disconnect()

    def _begin(self, command: bytes) -> bytes:
        return b"*3\r\n" + _bulk(command) + _bulk(self._key)

    def _ask(self, packed: bytes) -> Any:
        if not self._is_connected:
            self._connect()
        connection = self._connection
        try:
            connection.send_packed_command([packed], check_health=False)
            return connection.read_response()
        except REFUSING as error:
            self.close()
            raise Refused(str(error)) from error
        except PASSING as error:
            raise Away(error, sent=False) from error
        except exceptions.ResponseError as error:
            if str(error).startswith(PASSING_WORDS):
                raise Away(error, sent=False) from error
            raise Refused(str(error)) from error
        except (exceptions.RedisError, OSError) as error:
            # LOADING is among these: an urlseen that is ending answers so, and does not say whether
            # it has added anything.
            self.close()
            raise Away(error, sent=True) from error

    def _connect(self) -> None:
        try:
            self._connection.connect()
        except REFUSING as error:
            self.close()
            raise Refused(str(error)) from error
        except exceptions.ConnectionError as error:
            self.close()
            raise Away(error, sent=False) from error
        except exceptions.ResponseError as error:
            self.close()
            raise Refused(str(error)) from error
        except (exceptions.RedisError, OSError) as error:
            self.close()
            raise Away(error, sent=False) from error
        self._is_connected = True


def _bulk(text: bytes) -> bytes:
    """A string as Redis's protocol has it."""
    return b"$%d\r\n%b\r\n" % (len(text), text)
