"""Partition of a crawl, with its own keys in Redis. A crawl that is not divided is one partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from urlseen_scrapy.consumer import LENGTHS, Consumer, Producer
from urlseen_scrapy.delivery import Delivery
from urlseen_scrapy.keys import CrawlKeys
from urlseen_scrapy.reclaim import Reclaimer
from urlseen_scrapy.record import Fit, Record
from urlseen_scrapy.wires import Question

if TYPE_CHECKING:
    from urlseen_scrapy.heartbeat import Heartbeat
    from urlseen_scrapy.wire import Wire

#: Number of heartbeats during the time-out of a consumer.
BEATS = 4
#: Answer to a pop if the consumer holds its maximum.
FULL = b"full"
#: Answer to a pop if a suspect is first, and the process holds other requests.
SUSPECT = b"suspect"


class SourceItem(NamedTuple):
    """Item on its way to the source of its partition."""

    partition: Partition
    data: bytes


class Partition:
    """Pops the requests of one partition, and knows which of them are unfinished.

    `suffix` is the end of its keys. `name` is the name of this process among the consumers, and
    `held_max` the maximum number of requests that it holds. All methods that use Redis raise `Away`
    or `Refused` if a command fails.
    """

    def __init__(
        self, source: str, suffix: str, wire: Wire, heartbeat: Heartbeat, name: str, held_max: int
    ) -> None:
        self.source = source + suffix
        self.suffix = suffix
        #: Calls of this partition. It is `None` until the partition has a crawl record.
        self.consumer: Consumer | None = None
        self.heartbeat = heartbeat
        #: Unfinished deliveries, by their numbers.
        self.open: dict[int, Delivery] = {}
        #: Numbers of finished deliveries that Redis still holds: their acknowledgements wait.
        self.ending: set[int] = set()
        self.wire = wire
        self._keys = CrawlKeys.of_source(self.source)
        self._producer = Producer(wire, self.source)
        self._reclaimer: Reclaimer | None = None
        self._name = name
        self._held_max = held_max
        #: Number of the next delivery. After a lost reply, the pop is repeated with this number.
        self._number = 1
        self._reconciled = 0

    @property
    def record_key(self) -> str:
        """Key of the crawl record."""
        return self._keys.crawl

    @property
    def producer(self) -> Producer:
        """Calls that need no crawl record."""
        return self.consumer or self._producer

    def read_record(self) -> Question:
        """Returns the command that reads the crawl record."""
        return Question(self.wire, ("HGETALL", self._keys.crawl))

    def type_of(self, key: str) -> Question:
        """Returns the command that reads the type of the partition's key for the crawl's `key`."""
        return Question(self.wire, ("TYPE", key + self.suffix))

    def use(self, record: Record) -> None:
        """Begins to use a crawl record that the caller has checked."""
        if self.consumer is not None:
            self.consumer.record = record
            return
        self.consumer = Consumer(self.wire, self._keys, record, self._name, self._held_max)
        self._reclaimer = Reclaimer(self.consumer, self.wire)

    def lengths(self, fit: Fit) -> list[Question]:
        """Returns the commands that count the requests of a partition without a crawl record."""
        sink = fit.sink + self.suffix
        return [
            self._producer.source_len(),
            Question(self.wire, (LENGTHS[fit.sink_kind], sink)),
        ]

    def all_beats(self) -> Question:
        """Returns the command that reads the heartbeats of all consumers."""
        return Question(self.wire, ("HGETALL", self._keys.consumers))

    def pop(self, *, holds_others: bool) -> Delivery | bytes | None:
        """Pops the next request and holds it. A suspect must be the only held request.

        Returns `None` if the sink is empty, a suspect must wait, or there is no crawl record.
        Returns `FULL` if this process holds its maximum.
        """
        if (consumer := self.consumer) is None:
            return None
        self.heartbeat.add(consumer, consumer.record.held_timeout_s / BEATS)
        value = consumer.pop(self._number, holds_others=holds_others)
        if value is None or value == SUSPECT:
            return None
        if value == FULL:
            return value
        _, count, item = value.split(b" ", 2)
        delivery = Delivery(self, self._number, item)
        delivery.is_suspect = int(count) >= consumer.record.suspect
        self.open[delivery.number] = delivery
        self._number += 1
        return delivery

    def reconcile(self) -> bool:
        """Requeues deliveries that Redis holds for this consumer, but that this process lacks.

        There are such deliveries if Redis executed a pop late, or if a failover lost an
        acknowledgement. Returns `False` if there was no heartbeat and no new connection since the
        last call.
        """
        if self.consumer is None:
            return False
        held = self.heartbeat.take_held(self.consumer)
        if self._reconciled != self.wire.connects:
            held = self.consumer.beat()
            self._reconciled = self.wire.connects
        if held is None:
            return False
        # Redis may have executed the pop with the next number. This pop will be repeated.
        known = {*self.open, *self.ending, self._number}
        unknown = [each for each in held if each not in known]
        if unknown:
            self.consumer.give_back(unknown)
        return True

    def reclaim(self) -> None:
        """Requeues the requests of consumers that have stopped."""
        if self._reclaimer is not None:
            self._reclaimer.look()
