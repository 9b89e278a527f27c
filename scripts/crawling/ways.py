"""Ways of deduplication, with the settings of their READMEs."""

from dataclasses import dataclass, field


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

    @property
    def has_redis(self):
        return bool(self.queue)

    @property
    def has_urlseen(self):
        return self.name == "urlseen"


SOURCE, REJECTED = "docs:discovered", "docs:rejected"
PROCESSING = f"urlseen:{{{SOURCE}}}:processing"
#: Redis key of the consumers. The keys of held requests have similar names.
CONSUMERS = f"urlseen:{{{SOURCE}}}:consumers"
URLSEEN = Way(
    "urlseen",
    {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "SCHEDULER_QUEUE_CLASS": "urlseen_scrapy.PriorityQueue",
        "DUPEFILTER_CLASS": "urlseen_scrapy.NoDupeFilter",
    },
    queue=[SOURCE, PROCESSING, "docs:unseen", CONSUMERS],
    dedup=[SOURCE, PROCESSING, f"urlseen:{{{SOURCE}}}:state", f"urlseen:{{{SOURCE}}}:lease"],
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
