"""Connections to the nodes of a cluster that rest while their node is away."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from redis.exceptions import NoPermissionError, RedisError

from urlseen_scrapy.nodes import Cluster, is_cluster
from urlseen_scrapy.patience import FIRST_PAUSE_S, LONGEST_PAUSE_S
from urlseen_scrapy.wire import REFUSING, Away, Silent, Wire
from urlseen_scrapy.wires import Wires

logger = logging.getLogger("urlseen_scrapy")

#: Number of seconds after the end of a rest. If a command fails later, the pauses start again.
CALM_S = 10.0


class RestingWires(Wires):
    """Connections of the reactor. In a Redis Cluster, each of them can rest.

    If there is only one connection, it never rests: the spider has nothing else to do.
    """

    @property
    def are_away(self) -> bool:
        """`True` if no server can be asked now. Read this after a command has failed."""
        return len(self._wires) == 1 or all(wire.rests for wire in self._wires.values())

    def close(self) -> None:
        """Closes all connections, and ends the threads of those that rest."""
        for wire in self._wires.values():
            if isinstance(wire, RestingWire):
                wire.rest.stop()
        super().close()

    def went_away(self, wire: RestingWire, away: Away) -> None:
        """Begins the rest of a connection after a failed command.

        If the node gave no answer in time, its other connections rest, too. Otherwise the reactor
        would wait for an answer to each of them.
        """
        if len(self._wires) == 1:
            return
        wire.rest.begin(away)
        if isinstance(away, Silent):
            for other in self._wires.values():
                if isinstance(other, RestingWire) and other.node == wire.node:
                    other.close()
                    other.rest.begin(away)

    def _make(self, key: str) -> Wire:
        if not is_cluster(self._server):
            return super()._make(key)
        wire = RestingWire.of_client(self._server, key)
        nodes: Cluster = self._server.connection_pool.connection_kwargs["nodes"]
        wire.rest = Rest(key, nodes.for_key(key))
        wire.wires = self
        return wire


class RestingWire(Wire):
    """Connection that rests after a failed command: then all commands raise `Away` at once.

    So the reactor waits for a node that is away at most once.
    """

    rest: Rest
    wires: RestingWires

    @property
    def rests(self) -> Away | None:
        """Error that began the rest, or `None` if the connection does not rest."""
        return self.rest.reason

    def receive(self, ticket: int) -> Any:
        """Waits for the answer to a command that `send` has sent."""
        try:
            return super().receive(ticket)
        except Away as away:
            self.wires.went_away(self, away)
            raise

    def _send(self, packed: list[bytes]) -> int:
        if reason := self.rest.reason:
            raise Away(reason, sent=False)
        try:
            return super()._send(packed)
        except Away as away:
            self.wires.went_away(self, away)
            raise


class Rest:
    """Pause of a connection. A thread asks the cluster for the node of `key` until one answers.

    The pauses between the questions grow, up to `LONGEST_PAUSE_S`. If the connection fails again
    soon after its rest, they continue to grow.
    """

    def __init__(self, key: str, nodes: Cluster) -> None:
        self._key = key
        self._nodes = nodes
        self._pause = FIRST_PAUSE_S
        self._ended = float("-inf")
        self._stop = threading.Event()
        #: Error that began the rest, or `None` if there is no rest now.
        self.reason: Away | None = None

    def begin(self, away: Away) -> None:
        """Begins the rest and its thread. Does nothing during a rest."""
        if self.reason is not None:
            return
        self.reason = away
        is_said = time.monotonic() - self._ended > CALM_S
        if is_said:
            self._pause = FIRST_PAUSE_S
            logger.warning(
                "%s is away; this spider keeps its links, and goes on with other partitions: %s",
                self._key,
                away,
            )
        threading.Thread(
            target=self._ask, args=(is_said,), name="urlseen-rest", daemon=True
        ).start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()

    def _ask(self, is_said: bool) -> None:
        try:
            while not self._stop.wait(self._pause):
                self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
                try:
                    self._nodes.find()
                except (*REFUSING, NoPermissionError):
                    # The next command of the reactor ends the crawl, with this error.
                    return
                except (RedisError, OSError):
                    continue
                if is_said:
                    logger.info("%s answers again", self._key)
                return
        finally:
            self._ended = time.monotonic()
            self.reason = None
