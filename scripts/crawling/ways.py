"""Ways of deduplication, with the settings of their READMEs."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Way:
    """Way of deduplication: a queue of requests, and a filter of seen requests."""

    name: str
    settings: dict
    #: Redis keys of the waiting requests.
    queue: list = field(default_factory=list)
    #: Redis keys of the filter.
    dedup: list = field(default_factory=list)
    spiders: int = 3
    #: Numbers of partitions and of daemons, in a way with urlseen.
    partitions: int = 0
    daemons: int = 0
    #: True if the crawl is on a Redis Cluster.
    has_cluster: bool = False

    @property
    def has_redis(self):
        return bool(self.queue or self.daemons)


SOURCE = "docs:discovered"


@dataclass(frozen=True)
class Partition:
    """Redis keys of a partition of a crawl with urlseen. `tag` is empty if there is only one."""

    tag: str = ""

    def named(self, name):
        return f"{name}:{{{self.tag}}}" if self.tag else name

    def own(self, name):
        """Returns a key that urlseen itself names."""
        return f"urlseen:{self.source}:{name}" if self.tag else f"urlseen:{{{SOURCE}}}:{name}"

    @property
    def source(self):
        return self.named(SOURCE)

    @property
    def rejected(self):
        return self.named("docs:rejected")

    @property
    def processing(self):
        return self.own("processing")

    @property
    def consumers(self):
        return self.own("consumers")

    @property
    def queue(self):
        return [self.source, self.processing, self.named("docs:unseen"), self.consumers]

    @property
    def dedup(self):
        return [self.source, self.processing, self.own("state"), self.own("lease")]


URLSEEN = Way(
    "urlseen",
    {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "SCHEDULER_QUEUE_CLASS": "urlseen_scrapy.PriorityQueue",
        "DUPEFILTER_CLASS": "urlseen_scrapy.NoDupeFilter",
    },
    partitions=1,
    daemons=1,
)
#: The same on a Redis Cluster. The daemons share the partitions.
ON_CLUSTER = replace(
    URLSEEN,
    settings=URLSEEN.settings
    | {"REDIS_PARAMS": {"redis_cls": "urlseen_scrapy.Redis", "socket_timeout": 5}},
    partitions=16,
    daemons=2,
    has_cluster=True,
)
WAYS = {
    way.name: way
    for way in (
        # The dupefilter of plain Scrapy is in memory, so this way has one process.
        Way("Scrapy", {}, spiders=1),
        URLSEEN,
        Way(
            "scrapy-redis",
            {
                "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
                "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
                "SCHEDULER_PERSIST": True,
            },
            queue=["docs:requests"],
            dedup=["docs:dupefilter"],
        ),
        Way(
            "scrapy-redis-bloomfilter",
            {
                "SCHEDULER": "scrapy_redis_bloomfilter.scheduler.Scheduler",
                "DUPEFILTER_CLASS": "scrapy_redis_bloomfilter.dupefilter.RFPDupeFilter",
                "SCHEDULER_PERSIST": True,
            },
            queue=["docs:requests"],
            dedup=["docs:bloomfilter"],
        ),
    )
}
