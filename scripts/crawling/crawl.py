"""One crawl of a site, with its kills and its outcome."""

import resource
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

from w3lib.url import canonicalize_url

from .cluster import RedisCluster
from .kills import DAEMON, PRIMARY, SPIDER, held_by
from .processes import Daemon, Redis, Spider, Trouble, until
from .ways import SOURCE, Partition

#: Number of seconds without a finished page after which the script gives up.
PATIENCE_S = 60
#: Number of seconds for which a daemon is stopped, so that items collect in its source.
PILE_S = 0.2


@dataclass
class Found:
    """Outcome of one crawl."""

    way: str
    spiders: int
    #: For each page and status: how often spiders have finished the page.
    done: Counter = field(default_factory=Counter)
    #: For each page: how often spiders have popped its request.
    popped: Counter = field(default_factory=Counter)
    #: For each page and status: how often the web server has logged it.
    fetched: Counter = field(default_factory=Counter)
    links: int = 0
    seconds: float = 0.0
    #: Processor seconds of the spiders, Redis and urlseen.
    processor_seconds: float = 0.0
    dedup_bytes: int = 0
    redis_bytes: int = 0
    filter_bytes: int = 0
    filter_keys: int = 0
    #: For each killed spider: the pages that it held, and the pages that all others finished.
    killed: list = field(default_factory=list)
    daemon_kills: int = 0
    primary_kills: int = 0
    #: Pages that a spider found and no spider finished.
    lost: set = field(default_factory=set)
    #: Items that killed daemons had claimed and not committed.
    claimed: int = 0
    waiting: int = 0
    rejected: int = 0
    errors: list = field(default_factory=list)

    @property
    def held(self):
        """Returns, for each page, the number of killed spiders that held it."""
        return Counter(page for killed in self.killed for page in killed.held)


@dataclass
class Killed:
    """Killed spider, with the pages that it held and the pages that all others finished."""

    spider: Spider
    held: set
    done_by_others: set = field(default_factory=set)


class Crawl:
    """Runs one crawl. `expected` is the number of pages, if it is known."""

    def __init__(self, way, web, scope, start, program, expected, kills=()):
        self.way, self.web, self.scope, self.start_pages = way, web, scope, start
        self.program, self.expected, self.kills = program, expected, kills
        self.all_spiders = []
        self.running = []
        self.redis, self.daemons, self.partitions = None, [], []
        self.found = Found(way.name, way.spiders)

    def run(self):
        before = processor_seconds()
        with ExitStack() as self.stack:
            self.folder = self.stack.enter_context(
                tempfile.TemporaryDirectory(prefix="urlseen-crawl-")
            )
            if self.way.has_redis:
                servers = RedisCluster if self.way.has_cluster else Redis
                self.redis = self.stack.enter_context(servers(self.folder))
            self.start_daemons()
            self.web.take_fetched()
            for _ in range(self.way.spiders):
                self.start_spider()
            if self.way.has_redis:
                self.crawl_together()
            else:
                self.crawl_alone()
            self.take_stock()
        # All these processes have ended. The web server has not, and does not count.
        self.found.processor_seconds = processor_seconds() - before
        return self.found

    def crawl_alone(self):
        (spider,) = self.running
        until(spider.has_ended, "Scrapy to end", 600, self.watch_progress())
        if spider.process.returncode != 0:
            raise Trouble(f"Scrapy ended with {spider.process.returncode}:\n{spider.said()}")
        spider.journal.update()
        self.found.lost = self.lost()

    def crawl_together(self):
        for kill in self.kills:
            if kill.victim == DAEMON and not self.daemons:
                continue
            self.wait_for_share(kill.share)
            if kill.pause_s is None:
                self.kill_at_work(kill.victim)
            else:
                time.sleep(kill.pause_s)
                self.kill_at_once(kill)
        self.wait_until_idle()
        self.found.lost = self.lost()
        for spider in self.running:
            spider.end()

    def kill_at_once(self, kill):
        if kill.victim == PRIMARY:
            # A spider that starts does not wait for Redis.
            until(self.all_work, "all spiders to work", watch=self.watch_progress())
            name = self.redis.kill_primary(kill.draw)
            self.found.primary_kills += 1
            say(f"  the primary {name} is killed, and its replica takes over")
            return
        if kill.victim == DAEMON:
            (daemon,) = kill.drawn(self.daemons)
            daemon.kill()
            self.restart_daemon(daemon, self.length(self.of(daemon), "processing"))
            return
        victims = kill.drawn(self.running)
        for victim in victims:
            victim.kill()
        self.restart_spiders({victim: self.held_by(victim) for victim in victims})

    def kill_at_work(self, victim):
        if victim == SPIDER:
            self.kill_spider()
        else:
            self.kill_daemon()

    def kill_spider(self):
        # The victim must be a spider that works.
        victim = max(self.running, key=lambda spider: sum(spider.journal.popped.values()))

        def is_the_moment():
            # A kill during a pop would leave the held pages unknown, so the kill waits.
            return victim.journal.is_handing_on() and victim.journal.update().held()

        held = victim.kill_when(is_the_moment, "it to hand on links", self.check)
        if self.daemons:
            held = self.held_by(victim)
        self.restart_spiders({victim: held})

    def all_work(self):
        return all(spider.journal.update().has_begun() for spider in self.running)

    def held_by(self, victim):
        return held_by(victim, self.redis, self.partitions)

    def restart_spiders(self, held):
        for victim, pages in held.items():
            self.running.remove(victim)
            self.found.killed.append(Killed(victim, pages))
            say(f"  {victim.name} is killed: it had popped {len(pages)} pages without finishing them")
        for _ in held:
            self.start_spider()

    def kill_daemon(self):
        daemon = self.daemons[0]
        partitions = self.of(daemon)

        def is_the_moment():
            # Items collect while the daemon is stopped, so it claims some as soon as it continues.
            end = time.monotonic() + PILE_S
            while not self.length(partitions, "source") and time.monotonic() < end:
                time.sleep(0.001)
            # Near the end of the crawl, there may be no items.
            return self.length(partitions, "processing") or (self.is_idle() and "no")

        taken = daemon.kill_when(is_the_moment, "it to hold items", self.check)
        self.restart_daemon(daemon, 0 if taken == "no" else taken)

    def restart_daemon(self, daemon, taken):
        self.found.claimed += taken
        self.found.daemon_kills += 1
        say(f"  {daemon.name} is killed: it had claimed {taken} items and not committed them")
        self.daemons[self.daemons.index(daemon)] = self.start_daemon(daemon.name, daemon.numbers)

    def start_daemons(self):
        """Starts the daemons, which share the partitions, and reads the tags of the partitions."""
        count, many = self.way.partitions, self.way.daemons
        for number in range(many):
            name = f"urlseen-{number + 1}" if many > 1 else "urlseen"
            numbers = range(count * number // many, count * (number + 1) // many)
            self.daemons.append(self.start_daemon(name, numbers))
        if count > 1:
            tags = self.redis.client.hget(f"urlseen:{{{SOURCE}}}:crawl", "tags")
            self.partitions = [Partition(tag) for tag in tags.decode().split(",")]
        elif many:
            self.partitions = [Partition()]

    def start_daemon(self, name, numbers):
        count = self.way.partitions
        daemon = Daemon(name, self.program, self.folder, self.redis, count, numbers)
        return self.stack.enter_context(daemon)

    def of(self, daemon):
        """Returns the partitions of a daemon."""
        return [self.partitions[number] for number in daemon.numbers]

    def length(self, partitions, name):
        """Returns the number of items in the lists with a name."""
        return sum(self.redis.client.llen(getattr(each, name)) for each in partitions)

    def start_spider(self):
        settings = dict(self.way.settings)
        number, stays = len(self.all_spiders) + 1, self.redis is not None
        if self.redis is not None:
            # The connections have the spider's name, so the script sees when they have ended.
            settings["REDIS_URL"] = f"{self.redis.url}?client_name=spider-{number}"
        spider = Spider(number, self.folder, settings, self.scope, self.start_pages, stays)
        self.stack.enter_context(spider)
        self.all_spiders.append(spider)
        self.running.append(spider)

    def wait_for_share(self, share):
        wanted = share * self.expected
        what = f"{wanted:.0f} pages of {self.expected}"
        until(lambda: self.count_done() >= wanted, what, 600, self.watch_progress())

    def wait_until_idle(self):
        until(self.is_idle, "the end of the crawl", 600, self.watch_progress())

    def is_idle(self):
        """Returns `True` if no item waits and no spider works, for some time."""
        before = self.settled()
        if before is None or any(self.queued().values()):
            return False
        return all(before == self.settled() for _ in range(3)) and not any(self.queued().values())

    def settled(self):
        """Returns the numbers of popped and finished pages of each spider.

        Returns `None` if a spider has not been idle yet, or has an unfinished page.
        """
        journals = [spider.journal.update() for spider in self.running]
        if not all(journal.has_been_idle for journal in journals):
            return None
        counts = [(sum(each.popped.values()), sum(each.done.values())) for each in journals]
        return counts if all(popped == done for popped, done in counts) else None

    def queued(self):
        """Returns the number of waiting requests under each key.

        The requests of a partition are counted at one moment.
        """
        count = """
            local counts = {}
            for at, key in ipairs(KEYS) do
                local kind = redis.call('TYPE', key).ok
                counts[at] = kind == 'zset' and redis.call('ZCARD', key)
                    or kind == 'list' and redis.call('LLEN', key) or 0
                for _, name in ipairs(kind == 'hash' and redis.call('HKEYS', key) or {}) do
                    local held = string.gsub(key, ':consumers$', ':held:') .. name
                    counts[at] = counts[at] + redis.call('HLEN', held)
                end
            end
            return counts
        """
        counts = {}
        for keys in [each.queue for each in self.partitions] or [self.way.queue]:
            counts |= zip(keys, self.redis.client.eval(count, len(keys), *keys))
        return counts

    def count_done(self):
        return sum(sum(spider.journal.update().done.values()) for spider in self.all_spiders)

    def watch_progress(self):
        """Returns a function that raises an error if no page is finished for a long time."""
        end = Patience(self.count_done)

        def watch():
            if self.redis is not None:
                self.check()
            if end.is_over():
                waits = self.queued() if self.redis is not None else {}
                said = "\n".join(spider.said() for spider in self.all_spiders)
                raise Trouble(f"no page for {PATIENCE_S} s; these items wait: {waits}\n{said}")

        return watch

    def check(self):
        for process in (self.web, self.redis, *self.daemons, *self.running):
            if process is not None:
                process.check()

    def lost(self):
        linked = set().union(*(spider.journal.linked for spider in self.all_spiders))
        done = (page for spider in self.all_spiders for page, _ in spider.journal.done)
        return linked - set(done)

    def take_stock(self):
        found, journals = self.found, [spider.journal.update() for spider in self.all_spiders]
        for journal in journals:
            found.done += journal.done
            found.popped += journal.popped
            found.links += journal.links()
        for killed in found.killed:
            others = (spider for spider in self.all_spiders if spider is not killed.spider)
            killed.done_by_others = {page for it in others for page, _ in it.journal.done}
        # A spider that was started late may have found no work.
        busy = [journal for journal in journals if journal.done]
        found.seconds = max(each.last for each in busy) - min(each.first for each in busy)
        fetched = self.web.take_fetched()
        found.fetched = Counter((canonicalize_url(url), status) for url, status in fetched)
        found.errors = [error for spider in self.all_spiders for error in spider.errors()]
        if self.redis is not None:
            found.waiting = sum(self.queued().values())
            keys = [key for each in self.partitions for key in each.dedup] or self.way.dedup
            found.dedup_bytes = self.redis.used_by(keys)
            found.redis_bytes = self.redis.used()
        found.rejected = self.length(self.partitions, "rejected")
        for daemon in self.daemons:
            # After a failover, a daemon can pause for some seconds before it connects again.
            until(daemon.is_ready, f"{daemon.name} to be ready", watch=daemon.check)
            filters = [status["filter"] for status in daemon.statuses()]
            found.filter_bytes += sum(each["bytes"] for each in filters)
            found.filter_keys += sum(each["keys"] for each in filters)
            daemon.end()


class Patience:
    """Timer that is over if a number has not changed for PATIENCE_S seconds."""

    def __init__(self, number):
        self._number = number
        self._last, self._since = -1, time.monotonic()

    def is_over(self):
        if (now := self._number()) != self._last:
            self._last, self._since = now, time.monotonic()
        return time.monotonic() - self._since > PATIENCE_S


def processor_seconds():
    """Returns the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def say(text):
    print(text, file=sys.stderr, flush=True)
