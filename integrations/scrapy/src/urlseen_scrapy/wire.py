"""One connection to a server that speaks Redis's protocol, without retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

if TYPE_CHECKING:
    from redis import Redis

#: Temporary errors: nothing was done, and the same command may be sent again.
PASSING = (
    exceptions.ClusterDownError,
    exceptions.MasterDownError,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
)
#: Temporary errors for which redis-py has no class.
PASSING_WORDS = ("BUSY ", "MISCONF ", "NOREPLICAS ", "TRYAGAIN ")
#: Lasting errors, although redis-py counts them among those of a connection.
REFUSING = (exceptions.AuthenticationError, exceptions.AuthorizationError)


class Away(Exception):
    """Error for no answer. If `sent`, the server may have carried out the command all the same."""

    def __init__(self, reason: BaseException, *, sent: bool) -> None:
        super().__init__(str(reason))
        self.sent = sent


class Refused(Exception):
    """Error for a refusal, which a repeat of the command would not change."""


class Wire:
    """Sends one command at a time, each in one round trip, and connects again when asked to.

    redis-py's client repeats a command whose reply was lost. Here the caller does that, because
    only the caller knows how to repeat it safely. A client with a pool also takes three times as
    long for each command.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._is_connected = False
        #: Number of connections made so far.
        self.connects = 0

    @classmethod
    def of_client(cls, server: Redis) -> Wire:
        """Makes a connection of its own, to the server of the client `server`."""
        pool = server.connection_pool
        options = {
            name: value
            for name, value in pool.connection_kwargs.items()
            # A server announces its maintenance in RESP3 only, and only to a pool.
            if not name.startswith("maint_notifications_")
        }
        options |= without_retries()
        return cls(pool.connection_class(**options))

    def ask(self, *words: bytes | str | int) -> Any:
        """Sends a command and returns the answer, with strings as bytes."""
        return self._ask(self._connection.pack_command(*words))

    def ask_packed(self, packed: bytes) -> Any:
        """Sends a packed command."""
        return self._ask([packed])

    def close(self) -> None:
        """Ends the connection; the next command makes another."""
        self._is_connected = False
        self._connection.disconnect()

    def _ask(self, packed: list[bytes]) -> Any:
        if not self._is_connected:
            self._connect()
        connection = self._connection
        try:
            connection.send_packed_command(packed, check_health=False)
            return connection.read_response(disable_decoding=True)
        except REFUSING as error:
            self.close()
            raise Refused(str(error)) from error
        except exceptions.ReadOnlyError as error:
            # The server's name may lead to the new primary by now.
            self.close()
            raise Away(error, sent=False) from error
        except PASSING as error:
            raise Away(error, sent=False) from error
        except exceptions.ResponseError as error:
            if str(error).startswith(PASSING_WORDS):
                raise Away(error, sent=False) from error
            raise Refused(str(error)) from error
        except (exceptions.RedisError, OSError) as error:
            # LOADING is among these: an urlseen that is ending answers it, and may have added the
            # fingerprint.
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
        self.connects += 1


def without_retries() -> dict[str, Any]:
    """Options of a connection that fails at the first error."""
    return {"retry": Retry(NoBackoff(), 0), "protocol": 2}
