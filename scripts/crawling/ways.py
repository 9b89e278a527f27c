"""Ways to deduplicate a crawl, with the settings of their READMEs."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """A queue of requests and a memory of seen ones."""

    name: str
    settings: dict
    #: The keys of Redis with requests that wait.
    queue: list = field(default_factory=list)
    #: The keys of the deduplication.
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
#: The consumers; the keys of their held requests have names beside it.
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
        # Its dupefilter is in its memory, so it has one process.
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
