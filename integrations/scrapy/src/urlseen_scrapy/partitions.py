"""Partitions of a crawl, as one spider process uses them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from urlseen_scrapy.consumer import consumer_name
from urlseen_scrapy.delivery import Delivery
from urlseen_scrapy.heartbeat import Heartbeat
from urlseen_scrapy.keys import CrawlKeys
from urlseen_scrapy.nodes import check_slots
from urlseen_scrapy.partition import FULL, Partition, SourceItem
from urlseen_scrapy.record import Fit, Record, fields_of
from urlseen_scrapy.resting import RestingWires
from urlseen_scrapy.settings import partitions, whole
from urlseen_scrapy.table import Table
from urlseen_scrapy.wire import Away, Wire
from urlseen_scrapy.wires import Question, Wires, ask_all, try_all

if TYPE_CHECKING:
    from redis import Redis
    from scrapy.crawler import Crawler

T = TypeVar("T")

#: Maximum number of attempts to count requests. An attempt fails if consumers have joined or left,
#: or have popped requests.
COUNT_TRIES = 5


class Partitions:
    """Pops from the partitions of this spider in turn, and counts the requests of all partitions.

    The constructor reads the partition table of the crawl that has the key `source`, and the crawl
    records. It raises `Away` if a partition does not answer. All other methods raise `Away` only if
    no partition answers, except `leave`. Otherwise they leave out the partitions that are away. All
    methods raise `Refused` if Redis refuses a command, and `ValueError` if a setting does not fit a
    record or the table has changed.
    """

    def __init__(self, crawler: Crawler, server: Redis, source: str, fit: Fit) -> None:
        settings = crawler.settings
        self.source = source
        #: Name of this process among the consumers.
        self.name = consumer_name(settings)
        #: Maximum number of requests that this process holds.
        self.held_max = whole(settings, "URLSEEN_HELD_MAX", 1000, 1, 2000)
        self._crawler = crawler
        self._server = server
        self._fit = fit
        self._wires, self._beat_wires = RestingWires(server), Wires(server)
        self._wire = self._wires.for_key(source)
        self._keys = CrawlKeys.of_source(source)
        self._heartbeats: dict[Wire, Heartbeat] = {}
        found = fields_of(self._keys.crawl, self._wire.ask("HGETALL", self._keys.crawl))
        self._table = Table.of_fields(self._keys.crawl, found) if found else Table()
        if self._table == Table():
            check_slots(server, {"URLSEEN_SOURCE_KEY": source, fit.sink_setting: fit.sink})
        self.all = [self._make(suffix) for suffix in self._table.suffixes]
        own = partitions(settings, len(self.all))
        # Spiders that start at the same time begin with different partitions.
        first = random.randrange(len(own))
        #: Partitions of this spider. The next pop is from the first one.
        self._own = deque(self.all[number] for number in own[first:] + own[:first])
        self._requeued = 0
        #: Last suspect. Until it is finished, this process pops nothing.
        self._suspect: Delivery | None = None
        self._read(self.all, ask_all)
        self._check_types()

    def _make(self, suffix: str) -> Partition:
        key = self.source + suffix
        beat_wire = self._beat_wires.for_key(key)
        if beat_wire not in self._heartbeats:
            self._heartbeats[beat_wire] = Heartbeat(beat_wire)
        heartbeat, wire = self._heartbeats[beat_wire], self._wires.for_key(key)
        return Partition(self.source, suffix, wire, heartbeat, self.name, self.held_max)

    @property
    def open(self) -> list[Delivery]:
        """Unfinished deliveries of this process."""
        return [delivery for each in self.all for delivery in each.open.values()]

    @property
    def held(self) -> int:
        """Number of requests that this process holds, with those whose acknowledgement waits."""
        return sum(len(each.open) + len(each.ending) for each in self.all)

    @property
    def is_away(self) -> bool:
        """`True` if no partition can be asked now. Read this after a command has failed."""
        return self._wires.are_away

    @property
    def missing(self) -> list[Partition]:
        """Partitions that have no crawl record, because no urlseen has run for them yet."""
        return [each for each in self.all if each.consumer is None]

    def address(self, fingerprint: bytes, data: bytes) -> SourceItem:
        """Returns an item for the partition to which its fingerprint belongs."""
        return SourceItem(self.all[self._table.number(fingerprint)], data)

    def read_missing(self) -> None:
        """Reads the records of partitions that had none so far."""
        if missing := self.missing:
            self._read(missing, self._ask_each)

    def reconcile(self) -> None:
        """Requeues deliveries that this process lacks, after each heartbeat and new connection.

        Then the method also checks that the table and the records still fit.
        """
        if sum(self._for_each(self._own, Partition.reconcile)):
            self._read(self.all, self._ask_each)

    def pop(self) -> Delivery | bytes | None:
        """Pops the next request and holds it.

        Returns `None` if the sinks are empty or a suspect must be held alone, and `FULL` if this
        process holds its maximum.
        """
        if self._suspect is not None and not self._suspect.is_finished:
            return None
        if (held := self.held) >= self.held_max:
            return FULL
        for partition in self._in_turn():
            self._own.rotate(-self._own.index(partition))
            # If the reply is lost, the next pop from this partition repeats the lost one.
            pop = partial(Partition.pop, holds_others=held > 0)
            (popped,) = self._for_each([partition], pop) or (None,)
            self._own.rotate(-1)
            if popped is not None:
                if isinstance(popped, Delivery) and popped.is_suspect:
                    self._suspect = popped
                return popped
        return None

    def count(self) -> int:
        """Returns the number of requests in source, urlseen and sink, plus all held requests.

        The partitions are not counted at one moment, and a page that is finished meanwhile leads to
        requests in other partitions. So 0 counts only if it is also the result of a second count,
        and if no consumer has popped a request in between, which would change its heartbeat.
        Returns 1 if consumers pop or beat during every attempt, or if a partition is away.
        """
        self._for_each(self.all, Partition.reclaim)
        try:
            return self._count()
        except Away:
            if self.is_away:
                raise
            return 1

    def source_len(self) -> int:
        """Returns the number of items in the sources. Those of partitions that are away count 0."""
        lengths = [each.producer.source_len() for each in self.all] + self._unrouted()
        return sum(each for each in self._ask_each(lengths) if not isinstance(each, Away))

    def leave(self) -> int:
        """Requeues all deliveries of this process, and removes it from the consumers.

        Returns the number of requeued deliveries. Raises `Away` if a partition is away, after all
        others were left. Then call the method again.
        """
        failed = None
        for each in self._own:
            try:
                self._requeued += each.consumer.leave() if each.consumer else 0
            except Away as away:
                failed = away
        if failed is not None:
            raise failed
        return self._requeued

    def stop_heartbeats(self) -> None:
        """Ends the threads of the heartbeats."""
        for heartbeat in self._heartbeats.values():
            heartbeat.stop()

    def close(self) -> None:
        """Closes the connections."""
        self._wires.close()

    def _in_turn(self) -> Iterator[Partition]:
        """Yields the next partition, and then all others whose sinks are not empty."""
        first, *others = self._own
        yield first
        ready = [(each, each.consumer) for each in others if each.consumer]
        lengths = self._ask_each(consumer.sink_len() for _, consumer in ready)
        yield from (
            each
            for (each, _), length in zip(ready, lengths)
            if length and not isinstance(length, Away)
        )

    def _for_each(self, wanted: Iterable[Partition], action: Callable[[Partition], T]) -> list[T]:
        """Runs `action` for partitions, and returns the results of those that are not away."""
        results = []
        for partition in wanted:
            try:
                results.append(action(partition))
            except Away:
                if self.is_away:
                    raise
        return results

    def _ask_each(self, questions: Iterable[Question]) -> list[Any]:
        """Sends commands to partitions. In place of an answer can be the error `Away`."""
        answers = try_all(questions)
        for answer in answers:
            if isinstance(answer, Exception) and (not isinstance(answer, Away) or self.is_away):
                raise answer
        return answers

    def _count(self) -> int:
        if waiting := self._total():
            return waiting
        for _ in range(COUNT_TRIES):
            before = self._beats()
            if waiting := max(self._total(), self._total()):
                return waiting
            if self._beats() == before:
                return 0
        return 1

    def _total(self) -> int:
        """Returns the sum of the counts of all partitions, each at another moment."""
        lengths = [question for each in self.missing for question in each.lengths(self._fit)]
        total: int = sum(ask_all(lengths + self._unrouted()))
        # A daemon that began meanwhile may hold items that are in neither source nor sink.
        if missing := self.missing:
            self._read(missing, ask_all)
        consumers = [each.consumer for each in self.all if each.consumer]
        for _ in range(COUNT_TRIES):
            answers = ask_all(each.count() for each in consumers)
            counts = [each.counted(answer) for each, answer in zip(consumers, answers)]
            total += sum(count for count in counts if count is not None)
            consumers = [each for each, count in zip(consumers, counts) if count is None]
        # A crawl that consumers join or leave is not idle.
        return total + len(consumers)

    def _unrouted(self) -> list[Question]:
        """Returns the commands that count the items that still wait for `urlseen route`.

        They are at the keys of the whole crawl, which a crawl with one partition uses itself.
        """
        if self._table == Table():
            return []
        return [
            Question(self._wire, ("LLEN", self.source)),
            Question(self._wire, ("LLEN", self._keys.processing)),
        ]

    def _beats(self) -> list[object]:
        return ask_all(each.all_beats() for each in self.all)

    def _read(
        self, wanted: list[Partition], ask: Callable[[Iterable[Question]], list[Any]]
    ) -> None:
        """Reads the table and the records of the wanted partitions with `ask`, and checks both."""
        table = Question(self._wire, ("HGETALL", self._keys.crawl))
        first, *others = ask([table, *(each.read_record() for each in wanted)])
        if not isinstance(first, Away) and (found := fields_of(self._keys.crawl, first)):
            self._check_table(Table.of_fields(self._keys.crawl, found))
        for partition, answer in zip(wanted, others):
            key = partition.record_key
            if not isinstance(answer, Away) and (found := fields_of(key, answer)):
                self._use(partition, Record.of_fields(key, found))

    def _check_types(self) -> None:
        """Raises `ValueError` if a source or a sink in Redis has another type."""
        fit = self._fit
        keys = (
            ("URLSEEN_SOURCE_KEY", self.source, "list"),
            (fit.sink_setting, fit.sink, fit.sink_kind),
        )
        for setting, key, kind in keys:
            types = ask_all(each.type_of(key) for each in self.all)
            for partition, found in zip(self.all, types):
                if found.decode() not in ("none", kind):
                    raise ValueError(
                        f"{setting}: Redis holds a {found.decode()} in {key}{partition.suffix}, and"
                        f" {fit.component} needs a {kind}. PriorityQueue needs sink.kind ="
                        ' "zset" in urlseen\'s config, FifoQueue and SendDiscovered need "list"'
                    )

    def _check_table(self, table: Table) -> None:
        if table != self._table:
            raise ValueError(
                f"the crawl of {self.source} had {len(self.all)} partitions at the start of this"
                f" spider, and has {len(table.suffixes)} now (partitions.count in urlseen's"
                " config). Start the spider again"
            )

    def _use(self, partition: Partition, record: Record) -> None:
        if partition.consumer is not None and partition.consumer.record == record:
            return
        if record.partitions != str(len(self.all)):
            raise ValueError(
                f"the crawl record {partition.record_key} is of a crawl with {record.partitions}"
                f" partitions, and the crawl of {self.source} has {len(self.all)}. Restart the"
                " daemon, which writes the record again"
            )
        record.check(self._crawler, self._fit, partition.suffix)
        check_slots(self._server, record.keys)
        partition.use(record)
