"""Components that let Scrapy drop duplicate requests with urlseen.

A project uses them through one line of its settings, `ADDONS = {"urlseen.scrapy.Addon": 500}`, or
through these settings:

    SCHEDULER                    LocalScheduler is for a crawl in one process; Scheduler sends
                                 requests through urlseen
    DUPEFILTER_CLASS             DupeFilter asks urlseen
    REQUEST_FINGERPRINTER_CLASS  Fingerprinter computes the fingerprints of the crawl
    DOWNLOADER_MIDDLEWARES       ForgetFailed lets failed requests pass again

Spiders can call `forget`. The package logs to "urlseen.scrapy" and counts `urlseen/…` in Scrapy's
stats.
"""

from urlseen.scrapy.addon import Addon
from urlseen.scrapy.client import DupeFilter
from urlseen.scrapy.fingerprinter import Fingerprinter
from urlseen.scrapy.forget import ForgetFailed, forget
from urlseen.scrapy.local import LocalScheduler
from urlseen.scrapy.scheduler import Scheduler

__all__ = [
    "Addon",
    "DupeFilter",
    "Fingerprinter",
    "ForgetFailed",
    "LocalScheduler",
    "Scheduler",
    "forget",
]
