"""Queue of a crawl in one process that survives a kill, in the folder `urlseen` of the JOBDIR."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from urlseen.scrapy.engine import check_engine
from urlseen.scrapy.local import PLACES, Decision, LocalQueue, open_filter
from urlseen.scrapy.pages import Page
from urlseen.scrapy.record import FOLDER, Key, Record, Row, payload
from urlseen.scrapy.settings import choice, held_max, logger
from urlseen.scrapy.takeover import import_seen, scrapys_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

#: Number of links of an unfinished page that are recorded early.
EARLY = 1000
#: Minimum number of seconds between two commits of requests that belong to no page.
COMMIT_S = 0.02
#: Number of seconds, or of keys, after which the database is synced and the filter gets its keys.
SYNC_S, SYNC_KEYS = 5.0, 50_000

#: Row of a request that the filter may drop, and the decision of the rules about it.
Link = tuple[Row, Decision]


class JobPage(Page):
    """Request in work, and the links of its page."""

    def __init__(self, number: int, item: bytes) -> None:
        super().__init__(payload(item))
        self.number = number
        #: Links that the filter may drop. They may be recorded before the page is finished.
        self.links: dict[Key, Link] = {}
        #: Links with `dont_filter`. They wait for the end of the page, so that a page that is
        #: fetched twice records them once.
        self.unfiltered: list[Row] = []


class Job(LocalQueue[JobPage]):
    """Queue, requests in work and filter in a JOBDIR.

    One transaction records the links of a page and its end. If the record cannot be written, the
    crawl ends, and the next run begins with the last commit.
    """

    def __init__(self, crawler: Crawler, jobdir: Path) -> None:
        self._jobdir, self._folder = jobdir, jobdir / FOLDER
        # A kill repeats no more pages than this.
        concurrent = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._held_max = held_max(crawler.settings, concurrent)
        level = choice(crawler.settings, "URLSEEN_SYNC", ("normal", "full"))
        check_engine()
        opened = open_filter(crawler, self._folder)
        self._record = Record(self._folder, opened, level)
        self._db = self._record.db
        super().__init__(crawler, opened, self._db)
        self._open: dict[JobPage, None] = {}
        for change, number in self._db.execute("SELECT change, number FROM counts"):
            self._rules.count(change, number)
        last = 0
        # The index has both columns, so this reads no items.
        for slot, waiting, used in self._db.execute(
            "SELECT slot, count(*), max(abs((number & ?) - ?)) FROM queue WHERE held = 0"
            " GROUP BY slot",
            (PLACES - 1, PLACES // 2),
        ):
            self._waiting[slot] = waiting
            last = max(last, used)
        self._numbers = count(last + 1)
        if self._waiting:
            logger.info("The crawl goes on: %d requests wait in %s", self.count(), self._folder)

    def take_over(self, item: Callable[[Request], bytes]) -> None:
        """Takes over the queue and the seen requests of Scrapy's own scheduler, once.

        Their files get other names after SQLite or the filter has them, so a kill loses nothing.
        Raises `ValueError` if the queue was not closed in order, and `OSError` if a file cannot be
        read.
        """
        queue, seen = self._jobdir / "requests.queue", self._jobdir / "requests.seen"
        is_taken = self._db.execute("SELECT 1 FROM notes WHERE name = 'taken'").fetchone()
        if queue.exists():
            if is_taken is None:
                self._insert(
                    (self._number(it, is_late=True), self._downloader.get_slot_key(it), item(it))
                    for it in scrapys_requests(self._crawler, queue, self._folder / "taken")
                )
                self._db.execute("INSERT INTO notes VALUES ('taken', 1)")
                self._record.commit_synced()
            imported = queue.with_name("requests.queue.imported")
            # A command such as `scrapy shell` makes a queue again.
            shutil.rmtree(imported, ignore_errors=True)
            queue.rename(imported)
        self._db.execute("DELETE FROM notes WHERE name = 'taken'")
        self._record.commit()
        if seen.exists():
            self._filter.close()
            import_seen(seen, self._folder)
            self._filter = self._record.filter = open_filter(self._crawler, self._folder)

    def is_seen(self, request: Request, fingerprint: bytes) -> bool:
        """Returns `True` if the request is recorded, or was found on the same page."""
        name, page = self._key(request, fingerprint), self._page(request)
        if name is None:
            return False
        return (page is not None and name in page.links) or self._record.knows(name)

    def collect(self, request: Request, item: bytes, fingerprint: bytes) -> None:
        """Keeps a link until its page is finished, or until there are enough links.

        A request that belongs to no page is committed at once, or together with others that come
        shortly after.
        """
        name = self._key(request, fingerprint)
        row = (self._number(request), self._downloader.get_slot_key(request), item)
        link = row, self._decision
        page = self._page(request)
        if page is None:
            with self._writing():
                self._add({} if name is None else {name: link}, [row] if name is None else [])
                self._tend()
        elif name is None:
            page.unfiltered.append(row)
        else:
            page.links[name] = link
            if len(page.links) >= EARLY:
                self._record_early(page)

    def pop(self) -> JobPage | None:
        """Pops the next request, and marks it as in work. Returns `None` if it cannot pop one now.

        If no request waits, the links of unfinished pages are recorded first.
        """
        if self._is_ended or len(self._open) >= self._held_max:
            return None
        if not self._waiting:
            for page in filter(lambda it: it.links, self._open):
                self._record_early(page)
        with self._writing():
            self._tend()
            slot = self._next_slot()
            if slot is None:
                return None
            number, item = self._db.execute(
                "SELECT number, item FROM queue WHERE slot = ? AND held = 0"
                " ORDER BY number DESC LIMIT 1",
                (slot,),
            ).fetchone()
            self._db.execute("UPDATE queue SET held = 1 WHERE number = ?", (number,))
            page = JobPage(number, item)
            self._open[page] = None
            self._watch()
            return page
        return None

    def reject(self, page: JobPage, reason: str) -> None:
        """Leaves a request in work until the next run, because this program cannot read it."""
        self._count_stat("unreadable")
        del self._open[page]

    def _forget_expired(self) -> None:
        with self._writing():
            super()._forget_expired()

    def _forget(self, keys: list[Key]) -> None:
        with self._writing():
            self._record.forget(keys)
            self._expiries.remove(keys)
            self._tend()

    def close(self) -> None:
        """Commits, and gives the filter all keys. The next run begins with the requests in work."""
        with self._writing():
            self._record.commit()
            self._record.sync()
            self._record.commit()
        self.release()

    def release(self) -> None:
        """Closes the files as they are."""
        self._record.close()

    def _finish_if_over(self, page: JobPage) -> None:
        if not page.is_over:
            return
        with self._writing():
            self._add(page.links, page.unfiltered)
            self._db.execute("DELETE FROM queue WHERE number = ?", (page.number,))
            self._record.commit()
            page.is_finished = True
            del self._open[page]
            self._tend()

    def _record_early(self, page: JobPage) -> None:
        with self._writing():
            self._add(page.links, [])
            self._record.commit()
            page.links = {}

    def _add(self, links: dict[Key, Link], unfiltered: list[Row]) -> None:
        """Adds links to the open transaction, except those that were recorded meanwhile, and those
        over a limit.
        """
        unseen = {name: link for name, link in links.items() if not self._record.knows(name)}
        new: dict[Key, Row] = {}
        for name, (row, decision) in unseen.items():
            if (changes := self._admit(decision)) is not None:
                new[name] = row
                self._record.count(changes)
                if decision.after is not None:
                    self._expiries.add(name, decision.after)
        self._insert([*new.values(), *unfiltered])
        self._record.know(new)
        if self._crawler.stats is not None:
            self._crawler.stats.inc_value("dupefilter/filtered", len(links) - len(unseen))

    def _insert(self, rows: Iterable[Row]) -> None:
        def waiting() -> Iterator[Row]:
            for row in rows:
                self._add_waiting(row[1])
                yield row

        self._record.insert(waiting())

    def _tend(self) -> None:
        """Commits what waits for it, and syncs, if it is time."""
        now, record = time.monotonic(), self._record
        if record.is_open and now >= record.committed + COMMIT_S:
            record.commit()
        if len(record.fresh) >= SYNC_KEYS or now >= record.synced + SYNC_S:
            record.sync()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Ends the crawl if the body cannot write."""
        try:
            yield
        except (sqlite3.Error, OSError, MemoryError) as error:
            # Nothing can be written after that, because queue and memory now differ.
            with suppress(sqlite3.Error):
                self._db.close()
            self._end(
                "urlseen_disk",
                f"{self._folder} cannot be written: {error}. It has everything up to its last"
                " commit: mend this, and start the crawl again with this JOBDIR",
            )
