"""Components that let Scrapy and scrapy-redis drop duplicate requests with urlseen.

A project uses them through its settings:

    DUPEFILTER_CLASS             DupeFilter asks urlseen; NoDupeFilter passes all requests
    SCHEDULER_QUEUE_CLASS        PriorityQueue and FifoQueue send requests through urlseen
    SPIDER_MIDDLEWARES           SendDiscovered does the same for a RedisSpider
    DOWNLOADER_MIDDLEWARES       ForgetFailed lets failed requests pass again
    REQUEST_FINGERPRINTER_CLASS  ScrapyRedisFingerprinter computes scrapy-redis's fingerprints
    REDIS_PARAMS                 {"redis_cls": Redis} connects scrapy-redis to Sentinels or a cluster

For example, these settings of scrapy-redis send requests through urlseen:

    SCHEDULER = "scrapy_redis.scheduler.Scheduler"
    SCHEDULER_QUEUE_CLASS = "urlseen_scrapy.PriorityQueue"
    DUPEFILTER_CLASS = "urlseen_scrapy.NoDupeFilter"

Spiders can call `forget`. The package logs to "urlseen_scrapy" and counts `urlseen/…` in Scrapy's
stats.
"""

from urlseen_scrapy.discovered import SendDiscovered
from urlseen_scrapy.dupefilter import DupeFilter, NoDupeFilter
from urlseen_scrapy.fingerprinter import ScrapyRedisFingerprinter
from urlseen_scrapy.forget import ForgetFailed, forget
from urlseen_scrapy.nodes import Redis
from urlseen_scrapy.queue import FifoQueue, PriorityQueue

__all__ = [
    "DupeFilter",
    "FifoQueue",
    "ForgetFailed",
    "NoDupeFilter",
    "PriorityQueue",
    "Redis",
    "ScrapyRedisFingerprinter",
    "SendDiscovered",
    "forget",
]
