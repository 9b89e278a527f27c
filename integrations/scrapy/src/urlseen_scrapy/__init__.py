"""Scrapy's dupefilter and scrapy-redis's queues, by urlseen.

What settings name is here: `DupeFilter` (or `NoDupeFilter`) for `DUPEFILTER_CLASS`, `PriorityQueue`
or `FifoQueue` for `SCHEDULER_QUEUE_CLASS`, `ForgetFailed` for `DOWNLOADER_MIDDLEWARES`,
`SendDiscovered` for `SPIDER_MIDDLEWARES` and `ScrapyRedisFingerprinter` for
`REQUEST_FINGERPRINTER_CLASS`. Spiders may call `forget`.
"""

from urlseen_scrapy.discovered import SendDiscovered
from urlseen_scrapy.dupefilter import DupeFilter, NoDupeFilter
from urlseen_scrapy.fingerprinter import ScrapyRedisFingerprinter
from urlseen_scrapy.forget import ForgetFailed, forget
from urlseen_scrapy.queue import FifoQueue, PriorityQueue

__all__ = [
    "DupeFilter",
    "FifoQueue",
    "ForgetFailed",
    "NoDupeFilter",
    "PriorityQueue",
    "ScrapyRedisFingerprinter",
    "SendDiscovered",
    "forget",
]
