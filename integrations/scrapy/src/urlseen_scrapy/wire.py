"""Connection to a server with Redis's protocol, without retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

if TYPE_CHECKING:
    from redis import Redis
    from typing_extensions import Self

#: Temporary errors. The server did nothing, so the same command may be sent again, on a new
#: connection: it may reach another server. MASTERDOWN is a kind of CLUSTERDOWN.
ELSEWHERE = (exceptions.ClusterDownError, exceptions.ReadOnlyError, exceptions.TryAgainError)
#: Temporary errors for which redis-py has no class. The same command may be sent again.
PASSING_WORDS = ("BUSY ", "MISCONF ", "NOREPLICAS ")
#: Permanent errors. They are subclasses of redis-py's `ConnectionError`, so they are caught first.
REFUSING = (exceptions.AuthenticationError, exceptions.AuthorizationError)


class Away(Exception):
    """The server gave no answer, or answered that it cannot work now.

    If `sent` is true, the server may have executed the command nevertheless.
    """

    def __init__(self, reason: BaseException | str, *, sent: bool) -> None:
        super().__init__(str(reason))
        self.sent = sent


class Silent(Away):
    """The server gave no answer in time. It may have executed the command nevertheless."""


class Refused(Exception):
    """The server refused a command, and would refuse it again."""


class Wire:
    """Connection that sends one command at a time, and never repeats a command.

    After an error of the connection, the next command opens a new one. redis-py's client repeats a
    command whose reply was lost. Here the caller repeats the command, because only the caller knows
    if that is safe. A client with a pool also takes three times as long for each command.

    All commands raise `Away` or `Refused` if they fail.
    """

    def __init__(self, connection: Any, *, finds_node: bool = False) -> None:
        self._connection = connection
        # True if the connection finds the node of a cluster that serves its commands.
        self._finds_node = finds_node
        self._is_connected = False
        #: Number of connections that were opened so far.
        self.connects = 0

    @classmethod
    def of_client(cls, server: Redis, key: str) -> Self:
        """Makes a new connection to the server of the client `server`, with its options.

        In a Redis Cluster, the connection is to the node that serves `key`.
        """
        pool = server.connection_pool
        options = {
            name: value
            for name, value in pool.connection_kwargs.items()
            # These options work only with RESP3 and a pool.
            if not name.startswith("maint_notifications_")
        }
        options |= without_retries()
        finds_node = "nodes" in options
        if finds_node:
            options["nodes"] = options["nodes"].for_key(key)
        return cls(pool.connection_class(**options), finds_node=finds_node)

    @property
    def rests(self) -> Away | None:
        """Error because of which all commands now raise `Away` at once, or `None`."""
        return None

    @property
    def node(self) -> tuple[str, int] | None:
        """Host and port of the server of the last connection. `None` if there was none."""
        return (self._connection.host, self._connection.port) if self.connects else None

    def ask(self, *words: bytes | str | int) -> Any:
        """Sends a command and returns the answer. Strings of the answer are bytes."""
        return self.receive(self.send(*words))

    def ask_packed(self, packed: bytes) -> Any:
        """Sends a command in the form of Redis's protocol, and returns the answer."""
        return self.receive(self._send([packed]))

    def send(self, *words: bytes | str | int) -> int:
        """Sends a command and does not wait for its answer. Returns a ticket for `receive`.

        Several commands may be sent before their answers are received, in the same order.
        """
        return self._send(self._connection.pack_command(*words))

    def receive(self, ticket: int) -> Any:
        """Waits for the answer to a command that `send` has sent."""
        if not self._is_connected or ticket != self.connects:
            raise Away("the connection was lost before the answer came", sent=True)
        try:
            return self._connection.read_response(disable_decoding=True)
        except (exceptions.RedisError, OSError) as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Closes the connection. The next command opens a new one."""
        self._is_connected = False
        self._connection.disconnect()

    def _send(self, packed: list[bytes]) -> int:
        if not self._is_connected:
            self._connect()
        try:
            self._connection.send_packed_command(packed, check_health=False)
        except (exceptions.RedisError, OSError) as error:
            raise self._failure(error) from error
        return self.connects

    def _failure(self, error: Exception) -> Away | Refused:
        """Returns the error that a command raises. Closes a connection that is of no use."""
        if isinstance(error, exceptions.OutOfMemoryError):
            return Away(error, sent=False)
        if isinstance(error, REFUSING):
            self.close()
            return Refused(str(error))
        if isinstance(error, exceptions.AskError):
            self.close()
            return self._redirected(error)
        if isinstance(error, ELSEWHERE):
            self.close()
            return Away(error, sent=False)
        if isinstance(error, exceptions.ResponseError):
            is_passing = str(error).startswith(PASSING_WORDS)
            return Away(error, sent=False) if is_passing else Refused(str(error))
        # LOADING is one of the other errors. An urlseen that is stopping answers LOADING, and may
        # have added the fingerprint.
        self.close()
        kind = Silent if isinstance(error, exceptions.TimeoutError) else Away
        return kind(error, sent=True)

    def _redirected(self, error: exceptions.AskError) -> Away | Refused:
        """Returns the error for an answer with another node. MOVED is a kind of ASK."""
        verb = "at" if isinstance(error, exceptions.MovedError) else "being moved to"
        node = f"{error.host}:{error.port}"
        text = f"slot {error.slot_id} of the Redis Cluster is {verb} {node}"
        if self._finds_node:
            return Away(text, sent=False)
        return Refused(
            f'{text}, and REDIS_URL has a single server. Set REDIS_URL = "redis+cluster://{node}"'
            ' and REDIS_PARAMS = {"redis_cls": "urlseen_scrapy.Redis"}'
        )

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
    """Returns the options of a connection that fails at the first error."""
    return {"retry": Retry(NoBackoff(), 0), "protocol": 2}
